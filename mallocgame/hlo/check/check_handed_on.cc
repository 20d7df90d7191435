// What one instruction hands on to another has one shape and one memory space on both sides: at
// calls of every kind, in transfers, and where values are passed on.
#include <string>
#include <utility>

#include "mallocgame/base/error.h"
#include "mallocgame/hlo/check/phase_reading.h"
#include "mallocgame/hlo/check/phase_rules.h"
#include "mallocgame/hlo/module/hlo.pb.h"

namespace mallocgame::hlo {
namespace {

std::string WithoutSpace(const ShapeProto& shape) {
  ShapeProto copy = shape;
  copy.mutable_layout()->clear_memory_space();
  return copy.SerializeAsString();
}

class HandedOnChecker {
 public:
  explicit HandedOnChecker(const PhaseReading& written)
      : written_(written), module_(*written.module), positions_(*written.positions) {}

  absl::Status Run() {
    for (int32_t i = 0; i < std::ssize(module_.instructions()); ++i) {
      const Opcode opcode = written_.opcode(i);
      MG_RETURN_IF_ERROR(opcode == kFusion ? CheckCall(i) : absl::OkStatus());
      if (written_.flow.Runs(i)) MG_RETURN_IF_ERROR(Check(i, opcode));
    }
    for (const Computation& computation : module_.computations())
      MG_RETURN_IF_ERROR(CheckProgramShape(computation));
    return absl::OkStatus();
  }

 private:
  // `a` and `b` are arrays, or tuples of as many.
  absl::Status Agree(int32_t i, PositionRange a, PositionRange b, bool spaces = true) const {
    if (a.count != b.count)
      return Refuse(PhaseRule::kShape, module_.Where(i), ": ", positions_.Name(a.first), " and ",
                    positions_.Name(b.first), " have other numbers of arrays");
    for (int32_t k = 0; k < a.count; ++k) {
      const Position &x = positions_[a.first + k], &y = positions_[b.first + k];
      if (x.is_tuple != y.is_tuple ||
          (!x.is_tuple && WithoutSpace(*x.shape) != WithoutSpace(*y.shape))) {
        return Refuse(PhaseRule::kShape, module_.Where(i), ": ", positions_.Name(a.first + k),
                      " has another shape than ", positions_.Name(b.first + k),
                      "; they must agree");
      }
      if (spaces && x.memory_space != y.memory_space) {
        return Refuse(PhaseRule::kMemorySpace, module_.Where(i), ": ", positions_.Name(a.first + k),
                      " lies in memory space ", x.memory_space, ", and ",
                      positions_.Name(b.first + k), " in ", y.memory_space, "; they must agree");
      }
    }
    return absl::OkStatus();
  }

  PositionRange Of(int32_t i) const { return positions_.Of(i); }
  PositionRange Part(int32_t i, int64_t element) const {
    return positions_.Element(Of(i).first, element).value_or(PositionRange{Of(i).first, 0});
  }
  PositionRange Root(int32_t computation) const {
    return Of(module_.computation(computation).root);
  }

  absl::Status CheckCall(int32_t i, size_t first_operand = 0) const {
    if (module_.called(i).empty()) return absl::OkStatus();
    const int32_t callee = module_.called(i)[0];
    const std::vector<int32_t>& parameters = module_.computation(callee).parameters;
    const absl::Span<const int32_t> operands = module_.operands(i);
    if (parameters.size() != operands.size())
      return Refuse(PhaseRule::kShape, module_.Where(i), ": it has ", operands.size(),
                    " operands, and what it calls has ", parameters.size(), " parameters");
    for (size_t k = first_operand; k < operands.size(); ++k)
      MG_RETURN_IF_ERROR(Agree(i, Of(operands[k]), Of(parameters[k])));
    return Agree(i, Of(i), Root(callee));
  }

  absl::Status Check(int32_t i, Opcode opcode) const {
    const absl::Span<const int32_t> operands = module_.operands(i), called = module_.called(i);
    if (opcode == kGetTupleElement)
      return Agree(i, Part(operands[0], written_.proto(i).tuple_index()), Of(i));
    if (opcode == kOptBarrier) return Agree(i, Of(operands[0]), Of(i));
    if (opcode == kBitcast) return CheckBitcast(i);
    if (opcode == kCall) return CheckCall(i);
    if (opcode == kCopyDone) return Agree(i, Part(operands[0], 0), Of(i));
    if (opcode == kAsyncDone) return Agree(i, Part(operands[0], 1), Of(i));
    if (opcode == kTuple) {
      for (size_t k = 0; k < operands.size(); ++k)
        MG_RETURN_IF_ERROR(Agree(i, Of(operands[k]), Part(i, static_cast<int64_t>(k))));
    } else if (opcode == kCopyStart) {
      MG_RETURN_IF_ERROR(Agree(i, Of(operands[0]), Part(i, 1)));
      return Agree(i, Part(i, 1), Part(i, 0), /*spaces=*/false);
    } else if (opcode == kWhile) {
      MG_RETURN_IF_ERROR(Agree(i, Of(operands[0]), Of(i)));
      for (const int32_t computation : called)
        MG_RETURN_IF_ERROR(Agree(i, Of(module_.computation(computation).parameters[0]), Of(i)));
      return Agree(i, Root(called[0]), Of(i));
    } else if (opcode == kConditional) {
      for (size_t b = 0; b < called.size(); ++b) {
        MG_RETURN_IF_ERROR(
            Agree(i, Of(operands[b + 1]), Of(module_.computation(called[b]).parameters[0])));
        MG_RETURN_IF_ERROR(Agree(i, Root(called[b]), Of(i)));
      }
    } else if (opcode == kAsyncStart && !operands.empty()) {
      const std::vector<int32_t>& parameters = module_.computation(called[0]).parameters;
      for (size_t k = 0; k < operands.size() && k < parameters.size(); ++k)
        MG_RETURN_IF_ERROR(Agree(i, Of(operands[k]), Of(parameters[k])));
      if (operands.size() == parameters.size()) return Agree(i, Part(i, 1), Root(called[0]));
    }
    return absl::OkStatus();
  }

  absl::Status CheckBitcast(int32_t i) const {
    const Position &from = positions_[Of(module_.operands(i)[0]).first],
                   &to = positions_[Of(i).first];
    if (from.memory_space == to.memory_space) return absl::OkStatus();
    return Refuse(PhaseRule::kMemorySpace, module_.Where(i), ": it lies in memory space ",
                  to.memory_space, ", its operand in ", from.memory_space, "; they must agree");
  }

  absl::Status CheckProgramShape(const Computation& computation) const {
    const ProgramShapeProto& shape = computation.proto->program_shape();
    const auto agree = [&](const ShapeProto& declared, int32_t i) {
      if (declared.SerializeAsString() == written_.proto(i).shape().SerializeAsString())
        return absl::OkStatus();
      return Refuse(PhaseRule::kMemorySpace, module_.Where(i),
                    ": the program shape of its computation has another shape or memory space");
    };
    if (shape.parameters_size() != std::ssize(computation.parameters))
      return Refuse(PhaseRule::kShape, "computation '", computation.proto->name(), "': it has ",
                    computation.parameters.size(), " parameters, its program shape ",
                    shape.parameters_size());
    for (int k = 0; k < shape.parameters_size(); ++k)
      MG_RETURN_IF_ERROR(agree(shape.parameters(k), computation.parameters[k]));
    return agree(shape.result(), computation.root);
  }

  const PhaseReading& written_;
  const Module& module_;
  const Positions& positions_;
};

}  // namespace

absl::Status CheckHandedOn(const PhaseReading& written) { return HandedOnChecker(written).Run(); }

}  // namespace mallocgame::hlo
