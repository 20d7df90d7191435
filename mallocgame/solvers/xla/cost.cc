// The arithmetic is in floating point, as XLA's is.
#include "mallocgame/solvers/xla/cost.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace mallocgame {
namespace {

constexpr double kPsPerSecond = 1e12;
constexpr double kMostPs = 0x1p60;
constexpr int32_t kNowhere = -2;  // no slot: an array without an access has -1

// Whether XLA's cost analysis gives the instruction any time. Even a bitcast gets one cycle.
bool Runs(const Instruction& instruction) {
  return instruction.kind == InstructionKind::kOrdinary && instruction.opcode != "parameter" &&
         instruction.opcode != "conditional" && instruction.opcode != "call";
}

double TimePs(double amount, int64_t per_second) {
  return amount * kPsPerSecond / static_cast<double>(per_second);
}

}  // namespace

XlaCost::XlaCost(const Program& program, const Hardware& hardware, const XlaOptions& options)
    : program_(program), hardware_(hardware), kernels_move_arrays_(options.kernels_move_arrays),
      weight_(program.regions().size(), 1) {
  for (size_t i = 0; i < weight_.size(); ++i) {
    for (int32_t r = static_cast<int32_t>(i); r >= 0; r = program.regions()[r].parent) {
      if (program.regions()[r].loop >= 0) weight_[i] *= options.loop_weight;
    }
  }
  elapsed_ps_.reserve(program.instructions().size());
  for (Tick t = 0; t < program.ticks(); ++t) {
    const Times times = TimesOf(t);
    elapsed_ps_.push_back(
        static_cast<int64_t>(std::min(kMostPs, std::max(times.compute_ps, times.memory_ps))));
  }
}

XlaCost::Times XlaCost::TimesOf(Tick tick) const {
  if (!Runs(program_.instruction(tick))) return {};
  const InstructionCost& cost = program_.cost().instructions[tick];
  double bytes = 0;
  for (const CostArray& array : cost.operands)
    bytes += static_cast<double>(OperandBytes(cost, array).all);
  for (const CostArray& array : cost.outputs)
    bytes += static_cast<double>(OutputBytes(cost, array).all);
  return {std::max({TimePs(1, hardware_.clock_hz),
                    TimePs(static_cast<double>(cost.flops), hardware_.flops_per_second),
                    TimePs(static_cast<double>(cost.transcendentals),
                           hardware_.transcendentals_per_second)}),
          TimePs(bytes, hardware_.main_bytes_per_second)};
}

XlaCost::Bytes XlaCost::OperandBytes(const InstructionCost& cost, const CostArray& array) const {
  if (!cost.kernel) return {array.accessed_bytes, array.accessed_bytes};
  if (kernels_move_arrays_) return {array.size_bytes, array.size_bytes};
  const bool estimated = cost.flops != 0 || cost.transcendentals != 0;
  return {estimated ? array.accessed_bytes : 0, array.size_bytes};
}

XlaCost::Bytes XlaCost::OutputBytes(const InstructionCost& cost, const CostArray& array) const {
  Bytes bytes = OperandBytes(cost, array);
  if (!cost.kernel || cost.outputs.size() == 1) return bytes;
  // The arrays of a tuple don't count as a kernel's own.
  bytes.own = 0;
  if (kernels_move_arrays_) bytes.all = 0;
  return bytes;
}

double XlaCost::MemorySavedPs(AccessId id) const {
  const InstructionCost& cost = program_.cost().instructions[program_.access(id).tick];
  const bool writes = program_.access(id).kind == AccessKind::kWrite;
  double bytes = 0;
  for (const CostArray& array : writes ? cost.outputs : cost.operands) {
    if (array.slot != program_.slot(id)) continue;
    bytes +=
        static_cast<double>((writes ? OutputBytes(cost, array) : OperandBytes(cost, array)).own);
  }
  return TimePs(bytes, hardware_.main_bytes_per_second) -
         TimePs(bytes, writes ? hardware_.fast_write_bytes_per_second
                              : hardware_.fast_read_bytes_per_second);
}

int64_t XlaCost::SavedPs(AccessId id) const {
  const Times times = TimesOf(program_.access(id).tick);
  const double before = std::max(times.compute_ps, times.memory_ps);
  const double after = std::max(times.compute_ps, times.memory_ps - MemorySavedPs(id));
  return static_cast<int64_t>(std::clamp(before - after, -kMostPs, kMostPs));
}

float XlaCost::MemorySeconds(Tick tick, int32_t read_slot, int32_t written_slot) const {
  const InstructionCost& cost = program_.cost().instructions[tick];
  float all = 0, read = 0, written = 0;
  const auto add = [&all](const Bytes& bytes, bool is_fast, float& fast) {
    all += static_cast<float>(bytes.all);
    if (is_fast) fast += static_cast<float>(bytes.own);
  };
  for (const CostArray& array : cost.operands)
    add(OperandBytes(cost, array), array.slot == read_slot, read);
  for (const CostArray& array : cost.outputs)
    add(OutputBytes(cost, array), array.slot == written_slot, written);
  return read / static_cast<float>(hardware_.fast_read_bytes_per_second) +
         written / static_cast<float>(hardware_.fast_write_bytes_per_second) +
         (all - read - written) / static_cast<float>(hardware_.main_bytes_per_second);
}

float XlaCost::Benefit(AccessId id) const {
  const Tick tick = program_.access(id).tick;
  const Times times = TimesOf(tick);
  if (times.memory_ps <= times.compute_ps)
    return static_cast<float>((times.memory_ps - times.compute_ps) / kPsPerSecond);
  const int32_t slot = program_.slot(id);
  const bool writes = program_.access(id).kind == AccessKind::kWrite;
  const float saved =
      MemorySeconds(tick, kNowhere, kNowhere) -
      (writes ? MemorySeconds(tick, kNowhere, slot) : MemorySeconds(tick, slot, kNowhere));
  return saved * static_cast<float>(weight_[program_.instruction(tick).region]);
}

float XlaCost::Boundedness(BufferId buffer) const {
  // A parameter or constant is defined without using memory, which saves 0. So it never counts as
  // bound by compute.
  const bool made = program_.buffer(buffer).origin == BufferOrigin::kInstruction;
  float sum = made ? -std::numeric_limits<float>::infinity() : 0;
  bool first = true;
  for (const AccessId id : program_.accesses_of(buffer)) {
    const AccessKind kind = program_.access(id).kind;
    const bool counts = kind == AccessKind::kRead || kind == AccessKind::kUpdate ||
                        (first && kind == AccessKind::kWrite);
    first = false;
    if (!counts) continue;
    const float benefit = Benefit(id);
    sum = sum > 0 && benefit > 0 ? sum + benefit : std::max(sum, benefit);
  }
  if (std::isinf(sum)) sum = 0;
  return static_cast<float>(sum /
                            std::sqrt(static_cast<double>(program_.buffer(buffer).size_bytes)));
}

int64_t XlaCost::AccessedBytes(AccessId id) const {
  const InstructionCost& cost = program_.cost().instructions[program_.access(id).tick];
  int64_t bytes = 0;
  const auto add = [&](const CostArray& array, const Bytes& counted) {
    if (array.slot == program_.slot(id)) bytes = std::min(int64_t{1} << 61, bytes + counted.own);
  };
  for (const CostArray& array : cost.operands) add(array, OperandBytes(cost, array));
  for (const CostArray& array : cost.outputs) add(array, OutputBytes(cost, array));
  return bytes;
}

}  // namespace mallocgame
