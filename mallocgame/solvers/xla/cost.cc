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

double TimePs(double amount, int64_t per_second) {
  return amount * kPsPerSecond / static_cast<double>(per_second);
}

}  // namespace

XlaCost::XlaCost(const Program& program, const Hardware& hardware, double loop_weight)
    : program_(program), hardware_(hardware), weight_(program.regions().size(), 1) {
  for (size_t i = 0; i < weight_.size(); ++i) {
    for (int32_t r = static_cast<int32_t>(i); r >= 0; r = program.regions()[r].parent) {
      if (program.regions()[r].loop >= 0) weight_[i] *= loop_weight;
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
  const InstructionCost& cost = program_.cost().instructions[tick];
  double bytes = 0;
  for (const auto* arrays : {&cost.operands, &cost.outputs}) {
    for (const CostArray& array : *arrays) bytes += static_cast<double>(array.accessed_bytes);
  }
  return {std::max(TimePs(static_cast<double>(cost.flops), hardware_.flops_per_second),
                   TimePs(static_cast<double>(cost.transcendentals),
                          hardware_.transcendentals_per_second)),
          TimePs(bytes, hardware_.main_bytes_per_second)};
}

double XlaCost::MemorySavedPs(AccessId id) const {
  const InstructionCost& cost = program_.cost().instructions[program_.access(id).tick];
  const bool writes = program_.access(id).kind == AccessKind::kWrite;
  double bytes = 0;
  for (const CostArray& array : writes ? cost.outputs : cost.operands) {
    if (array.slot == program_.slot(id)) bytes += static_cast<double>(array.accessed_bytes);
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
  const auto add = [&all](const std::vector<CostArray>& arrays, int32_t slot, float& fast) {
    for (const CostArray& array : arrays) {
      const auto bytes = static_cast<float>(array.accessed_bytes);
      all += bytes;
      if (array.slot == slot) fast += bytes;
    }
  };
  add(cost.operands, read_slot, read);
  add(cost.outputs, written_slot, written);
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
  for (const auto* arrays : {&cost.operands, &cost.outputs}) {
    for (const CostArray& array : *arrays) {
      if (array.slot == program_.slot(id))
        bytes = std::min(int64_t{1} << 61, bytes + array.accessed_bytes);
    }
  }
  return bytes;
}

}  // namespace mallocgame
