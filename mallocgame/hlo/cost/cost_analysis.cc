// Counts bytes by instruction and by fusion. A computation is described after all that it calls, so
// nothing here recurses.
#include "mallocgame/hlo/cost/cost_analysis.h"

#include <algorithm>
#include <numeric>

#include "absl/algorithm/container.h"
#include "mallocgame/hlo/cost/arithmetic.h"
#include "mallocgame/hlo/cost/kernels.h"
#include "mallocgame/hlo/cost/library_calls.h"
#include "mallocgame/hlo/module/hlo.pb.h"
#include "mallocgame/hlo/module/opcodes.h"
#include "mallocgame/hlo/module/shape_size.h"
#include "mallocgame/program/cost_model.h"

namespace mallocgame::hlo {
namespace {

int64_t AddBytes(int64_t a, int64_t b) { return AddUpTo(a, b, kMaxAccessedBytes); }

// `a` and `times` runs of `b`.
Operations Add(const Operations& a, const Operations& b, int64_t times = 1) {
  const auto add = [times](int64_t sum, int64_t part) {
    return AddUpTo(sum, TimesUpTo(times, part, kMaxWork), kMaxWork);
  };
  return {add(a.flops, b.flops), add(a.transcendentals, b.transcendentals)};
}

// Whether operand `k` is one of which the instruction touches a part only.
bool TouchesPart(Opcode opcode, size_t k) {
  return k == 0 && (opcode == kSlice || opcode == kDynamicSlice || opcode == kDynamicUpdateSlice ||
                    opcode == kGather || opcode == kScatter);
}

// Which operand of a scatter updates its k-th output. Its `operands` are n arrays to update, the
// indices, and n updates.
size_t UpdateOf(size_t operands, size_t k) { return operands / 2 + 1 + k; }

}  // namespace

CostAnalysis::CostAnalysis(const Module& module) : module_(module) {
  const auto instructions = static_cast<int32_t>(module.instructions().size());
  bytes_.reserve(module.instructions().size());
  source_.reserve(module.instructions().size());
  for (int32_t i = 0; i < instructions; ++i) {
    int64_t bytes = 0;
    for (const Array& array : module.arrays(i)) bytes = AddBytes(bytes, array.size_bytes);
    bytes_.push_back(bytes);
    const bool bitcast = module.opcode(i) == kBitcast && module.operands(i).size() == 1;
    source_.push_back(bitcast ? source_[module.operands(i)[0]] : i);
  }
  bodies_.reserve(module.computations().size());
  for (const Computation& computation : module.computations())
    bodies_.push_back(Describe(computation));
}

CostAnalysis::Body CostAnalysis::Describe(const Computation& computation) const {
  Body body;
  AddReads(computation, body);
  const int32_t root = ThroughBitcasts(computation.root);
  if (module_.opcode(root) == kTuple) {
    for (const int32_t element : module_.operands(root))
      body.moved = AddBytes(body.moved, Moved(ThroughBitcasts(element)));
  } else {
    body.moved = Moved(root);
  }
  body.written = WrittenByRoot(computation.root);
  for (int32_t i = 0; i < computation.instruction_count; ++i) {
    body.operations = Add(body.operations, OperationsOf(computation.first_instruction + i));
  }
  return body;
}

Work CostAnalysis::Of(int32_t instruction) const {
  Work work;
  const size_t operands = module_.operands(instruction).size(),
               arrays = module_.arrays(instruction).size();
  if (RunsComputations(module_.opcode(instruction)) || IsBitcast(instruction)) {
    work.read.resize(operands);
    work.written.resize(arrays);
    return work;
  }
  work.read.reserve(operands);
  for (size_t k = 0; k < operands; ++k) work.read.push_back(Read(instruction, k));
  work.written = Written(instruction);
  const auto kernel = EstimateOf(*module_.instruction(instruction).proto);
  if (kernel) ShareOut(kernel->bytes_accessed, work.read, work.written);
  work.operations = OperationsOf(instruction);
  return work;
}

// Whether a transpose leaves every byte where it is: it names the dimensions anew, in the order in
// which they lie.
bool CostAnalysis::IsBitcast(int32_t transpose) const {
  const HloInstructionProto& proto = *module_.instruction(transpose).proto;
  const absl::Span<const int32_t> operands = module_.operands(transpose);
  if (module_.opcode(transpose) != kTranspose || operands.size() != 1) return false;
  const ShapeProto& from = module_.instruction(operands[0]).proto->shape();
  const LayoutProto &before = from.layout(), &after = proto.shape().layout();
  const int rank = proto.dimensions_size();
  if (from.element_type() != proto.shape().element_type() || Bytes(operands[0]) != Bytes(transpose))
    return false;
  if (before.minor_to_major_size() != rank || after.minor_to_major_size() != rank) return false;
  for (int k = 0; k < rank; ++k) {
    const int64_t d = after.minor_to_major(k);
    if (d < 0 || d >= rank || proto.dimensions(static_cast<int>(d)) != before.minor_to_major(k))
      return false;
  }
  return absl::c_equal(before.tiles(), after.tiles(), [](const TileProto& a, const TileProto& b) {
    return absl::c_equal(a.dimensions(), b.dimensions());
  });
}

int64_t CostAnalysis::MovedBytes(int32_t instruction) const {
  const int64_t moved = std::min(Moved(instruction), Bytes(instruction));
  if (moved == Moved(instruction)) return moved;
  int64_t both = moved;
  for (size_t k = 0; k < module_.operands(instruction).size(); ++k) {
    const int64_t bytes = Bytes(module_.operands(instruction)[k]);
    if (bytes >= kSmallArrayBytes && ReadsWhole(instruction, k)) both = AddBytes(both, bytes);
  }
  return std::max(moved, both - both / 2);
}

// Module bounds how deep computations call each other.
int64_t CostAnalysis::BytesOfRun(int32_t computation) const {
  const Computation& runs = module_.computation(computation);
  int64_t sum = 0;
  for (int32_t i = runs.first_instruction; i < runs.first_instruction + runs.instruction_count;
       ++i) {
    if (RunsComputations(module_.opcode(i))) {
      for (const int32_t callee : module_.called(i)) sum = AddBytes(sum, BytesOfRun(callee));
    } else if (!MovesNothing(module_.instruction(i))) {
      const Work work = Of(i);
      sum = std::accumulate(work.read.begin(), work.read.end(), sum, AddBytes);
      sum = std::accumulate(work.written.begin(), work.written.end(), sum, AddBytes);
    }
  }
  return sum;
}

int64_t CostAnalysis::Moved(int32_t instruction) const {
  const Opcode opcode = module_.opcode(instruction);
  const absl::Span<const int32_t> operands = module_.operands(instruction);
  const Body* body = opcode == kFusion ? Called(instruction) : nullptr;
  if (body != nullptr) return body->moved;
  std::vector<int64_t> bytes = Written(instruction);
  if (opcode == kScatter) {
    for (size_t k = 0; k < bytes.size() && UpdateOf(operands.size(), k) < operands.size(); ++k)
      bytes[k] = Bytes(operands[UpdateOf(operands.size(), k)]);
  }
  return std::accumulate(bytes.begin(), bytes.end(), int64_t{0}, AddBytes);
}

// The bytes read of each parameter. Slices and updates touch their part. All other uses together
// read it whole once, and each broadcast or reshape reads it once more. XLA:TPU counts a reshape
// that pads as if it read what it writes.
void CostAnalysis::AddReads(const Computation& computation, Body& body) const {
  const size_t parameters = computation.parameters.size();
  body.read.resize(parameters);
  body.reads_whole.resize(parameters);
  std::vector<bool> read_once(parameters);
  // also through bitcasts
  std::vector<int32_t> parameter_of(computation.instruction_count, kNone);
  for (size_t p = 0; p < parameters; ++p) {
    parameter_of[computation.parameters[p] - computation.first_instruction] =
        static_cast<int32_t>(p);
  }
  for (int32_t i = 0; i < computation.instruction_count; ++i) {
    const int32_t user = computation.first_instruction + i;
    const Opcode opcode = module_.opcode(user);
    const absl::Span<const int32_t> operands = module_.operands(user);
    for (size_t k = 0; k < operands.size(); ++k) {
      const int32_t p = parameter_of[operands[k] - computation.first_instruction];
      if (p == kNone) continue;
      const bool part = TouchesPart(opcode, k);
      if (opcode == kBitcast && module_.arrays(user).size() == 1) {
        parameter_of[i] = p;
        continue;
      }
      if (part || opcode == kFusion || opcode == kBroadcast || opcode == kReshape) {
        body.read[p] = AddBytes(body.read[p], Read(user, k));
      } else {
        read_once[p] = true;
      }
      if (!part) body.reads_whole[p] = body.reads_whole[p] || ReadsWhole(user, k);
    }
    if (user == computation.root && parameter_of[i] != kNone) read_once[parameter_of[i]] = true;
  }
  for (size_t p = 0; p < parameters; ++p) {
    if (!read_once[p]) continue;
    body.read[p] = AddBytes(body.read[p], Bytes(computation.parameters[p]));
    body.reads_whole[p] = true;
  }
}

bool CostAnalysis::ReadsWhole(int32_t instruction, size_t operand) const {
  const Opcode opcode = module_.opcode(instruction);
  if (opcode != kFusion) return opcode != kTuple && !TouchesPart(opcode, operand);
  const Body* body = Called(instruction);
  return body == nullptr || operand >= body->reads_whole.size() || body->reads_whole[operand];
}

int64_t CostAnalysis::Read(int32_t instruction, size_t operand) const {
  const Opcode opcode = module_.opcode(instruction);
  const absl::Span<const int32_t> operands = module_.operands(instruction);
  const int64_t whole = Bytes(operands[operand]);
  if (opcode == kTuple) return 0;
  if (opcode == kFusion) {
    const Body* body = Called(instruction);
    return body != nullptr && operand < body->read.size() ? body->read[operand] : whole;
  }
  if (opcode == kScatter && operand < operands.size() / 2) {
    const size_t update = UpdateOf(operands.size(), operand);
    return update < operands.size() ? ScatteredBytes(instruction, operand, operands[update])
                                    : whole;
  }
  if (operand != 0) return whole;
  if (opcode == kDynamicUpdateSlice) return 0;
  // They read a triangle of a matrix.
  if (opcode == kCholesky || opcode == kTriangularSolve) return whole / 2;
  if (opcode == kSlice || opcode == kDynamicSlice) return Bytes(instruction);
  if (opcode == kReshape) return std::max(whole, Bytes(instruction));
  if (opcode == kGather) return GatheredBytes(instruction);
  return whole;
}

// What a gather reads of its first operand.
int64_t CostAnalysis::GatheredBytes(int32_t gather) const {
  const HloInstructionProto& proto = *module_.instruction(gather).proto;
  ShapeProto slice = module_.instruction(module_.operands(gather)[0]).proto->shape();
  if (slice.dimensions_size() != proto.gather_slice_sizes_size()) return Bytes(gather);
  for (int d = 0; d < slice.dimensions_size(); ++d)
    slice.set_dimensions(d, proto.gather_slice_sizes(d));
  return BytesOfSlices(slice, gather, proto.gather_dimension_numbers().offset_dims());
}

// What a scatter reads, and writes, of the operand that `updates` change.
int64_t CostAnalysis::ScatteredBytes(int32_t scatter, size_t operand, int32_t updates) const {
  const ScatterDimensionNumbers& numbers =
      module_.instruction(scatter).proto->scatter_dimension_numbers();
  const ShapeProto& update = module_.instruction(updates).proto->shape();
  ShapeProto slice = module_.instruction(module_.operands(scatter)[operand]).proto->shape();
  int window = 0;
  for (int d = 0; d < slice.dimensions_size(); ++d) {
    const bool inserted = absl::c_linear_search(numbers.inserted_window_dims(), d) ||
                          absl::c_linear_search(numbers.input_batching_dims(), d);
    if (!inserted && window == numbers.update_window_dims_size()) return Bytes(updates);
    const int64_t from = inserted ? 0 : numbers.update_window_dims(window++);
    if (from < 0 || from >= update.dimensions_size()) return Bytes(updates);
    slice.set_dimensions(d, inserted ? 1 : update.dimensions(static_cast<int>(from)));
  }
  return BytesOfSlices(slice, updates, numbers.update_window_dims());
}

// The bytes of slices in whole tiles, one for each place of an array's dimensions outside of the
// window. Places that are padding count too.
int64_t CostAnalysis::BytesOfSlices(const ShapeProto& slice, int32_t array,
                                    absl::Span<const int64_t> window) const {
  const ShapeProto& shape = module_.instruction(array).proto->shape();
  const auto tiled = TiledBytes(slice, kMaxAccessedBytes);
  if (!tiled.ok()) return Bytes(array);
  int64_t bytes = *tiled;
  for (int d = 0; d < shape.dimensions_size(); ++d) {
    if (!absl::c_linear_search(window, d))
      bytes = TimesUpTo(bytes, PaddedExtent(shape, d), kMaxAccessedBytes);
  }
  return bytes;
}

std::vector<int64_t> CostAnalysis::Written(int32_t instruction) const {
  const Opcode opcode = module_.opcode(instruction);
  const absl::Span<const Array> arrays = module_.arrays(instruction);
  std::vector<int64_t> written;
  written.reserve(arrays.size());
  for (size_t k = 0; k < arrays.size(); ++k)
    written.push_back(IsWorkspace(module_, instruction, k) ? 0 : arrays[k].size_bytes);
  const absl::Span<const int32_t> operands = module_.operands(instruction);
  if (opcode == kDynamicUpdateSlice && operands.size() > 1 && arrays.size() == 1) {
    written[0] = Bytes(operands[1]);
  } else if (opcode == kCholesky && arrays.size() == 1) {
    written[0] /= 2;
  } else if (opcode == kScatter) {
    for (size_t k = 0; k < arrays.size() && UpdateOf(operands.size(), k) < operands.size(); ++k) {
      written[k] = ScatteredBytes(instruction, k, operands[UpdateOf(operands.size(), k)]);
    }
  } else if (opcode == kFusion) {
    const Body* body = Called(instruction);
    if (body != nullptr && body->written.size() == arrays.size()) return body->written;
  }
  return written;
}

// The bytes written by array of a fusion's root, seen through a bitcast, and through a tuple
// element by element.
std::vector<int64_t> CostAnalysis::WrittenByRoot(int32_t root) const {
  root = ThroughBitcasts(root);
  if (module_.opcode(root) != kTuple) return Written(root);
  std::vector<int64_t> written;
  for (const int32_t element : module_.operands(root)) {
    const std::vector<int64_t> part = Written(ThroughBitcasts(element));
    if (written.size() + part.size() > module_.arrays(root).size()) return {};
    written.insert(written.end(), part.begin(), part.end());
  }
  return written;
}

Operations CostAnalysis::OperationsOf(int32_t instruction) const {
  const Arithmetic arithmetic = ArithmeticOf(module_, instruction);
  Operations sum = {arithmetic.flops, arithmetic.transcendentals};
  const absl::Span<const int32_t> called = module_.called(instruction);
  for (size_t k = 0; k < std::min(called.size(), arithmetic.applications.size()); ++k)
    sum = Add(sum, bodies_[called[k]].operations, arithmetic.applications[k]);
  return sum;
}

const CostAnalysis::Body* CostAnalysis::Called(int32_t instruction) const {
  const absl::Span<const int32_t> called = module_.called(instruction);
  return called.empty() ? nullptr : &bodies_[called[0]];
}

}  // namespace mallocgame::hlo
