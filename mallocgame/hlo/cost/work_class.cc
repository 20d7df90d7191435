#include "mallocgame/hlo/cost/work_class.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "mallocgame/hlo/module/hlo.pb.h"
#include "mallocgame/hlo/module/shape_size.h"

namespace mallocgame::hlo {
namespace {

constexpr Opcode kMatmulOpcodes[] = {kConvolution, kDot, kRaggedDot};
constexpr Opcode kReduceOpcodes[] = {kReduce, kReduceWindow, kSelectAndScatter, kSort};
// These give values another place or another layout, or name them.
constexpr Opcode kMoveOpcodes[] = {kBitcast,      kConcatenate,     kConstant,  kCopy,
                                   kDynamicSlice, kGetTupleElement, kParameter, kReshape,
                                   kSlice,        kTranspose,       kTuple};

template <class List>
bool IsIn(const List& list, Opcode opcode) {
  return std::find(std::begin(list), std::end(list), opcode) != std::end(list);
}

}  // namespace

uint8_t WorkClasses::BitsOf(Opcode opcode) {
  if (IsIn(kMatmulOpcodes, opcode)) return kMatmuls;
  if (IsIn(kReduceOpcodes, opcode)) return kReduces;
  return IsIn(kMoveOpcodes, opcode) ? 0 : kComputes;
}

WorkClasses::WorkClasses(const Module& module)
    : module_(module), found_(module.computations().size(), 0) {
  // A computation comes after all that it calls.
  for (size_t c = 0; c < found_.size(); ++c) {
    const Computation& computation = module.computation(static_cast<int32_t>(c));
    for (int32_t i = computation.first_instruction;
         i < computation.first_instruction + computation.instruction_count; ++i) {
      found_[c] |= BitsOf(module.opcode(i));
      for (const int32_t callee : module.called(i)) found_[c] |= found_[callee];
    }
  }
}

WorkClass WorkClasses::Of(int32_t instruction) const {
  const Opcode opcode = module_.opcode(instruction);
  uint8_t found = 0;
  if (opcode == kFusion) {
    for (const int32_t callee : module_.called(instruction)) found |= found_[callee];
  } else {
    found = BitsOf(opcode);
  }
  if ((found & kMatmuls) != 0) return WorkClass::kMatmul;
  if (opcode == kCustomCall) return WorkClass::kKernel;
  if ((found & kReduces) != 0) return WorkClass::kReduction;
  return (found & kComputes) != 0 ? WorkClass::kVector : WorkClass::kCopy;
}

int32_t WidestElementBits(const Module& module, int32_t instruction) {
  // Elements by their bits. Products of dimensions may exceed an integer.
  std::map<int64_t, double> elements;
  double all = 0;
  const auto add = [&](int32_t of) {
    for (const Array& array : module.arrays(of)) {
      const ShapeProto& shape = ArrayOf(*array.shape);
      const int64_t bits = ElementBits(shape);
      if (bits == 0) continue;
      double count = 1;
      for (const int64_t dimension : shape.dimensions()) count *= static_cast<double>(dimension);
      elements[bits] += count;
      all += count;
    }
  };
  add(instruction);
  for (const int32_t operand : module.operands(instruction)) add(operand);
  int64_t widest = 0;
  for (const auto& [bits, count] : elements) {
    if (count > 0 && 4 * count >= all) widest = bits;
  }
  return static_cast<int32_t>(widest);
}

}  // namespace mallocgame::hlo
