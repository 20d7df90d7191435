// A plan as an offset problem, and back.
#include <algorithm>
#include <utility>
#include <vector>

#include "mallocgame/base/error.h"
#include "mallocgame/plan/offsets.h"

namespace mallocgame {
namespace {

// The most that an instruction of a range of ticks reserves: a table of the ranges of 2^k ticks.
class ReservedBytes {
 public:
  explicit ReservedBytes(const Program& program) : tables_(1) {
    for (const Instruction& instruction : program.instructions())
      tables_[0].push_back(instruction.reserved_bytes);
    for (size_t length = 1; 2 * length <= tables_[0].size(); length *= 2) {
      const std::vector<int64_t>& half = tables_.back();
      std::vector<int64_t> table(half.size() - length);
      for (size_t t = 0; t < table.size(); ++t) table[t] = std::max(half[t], half[t + length]);
      tables_.push_back(std::move(table));
    }
  }

  int64_t Most(Tick begin, Tick end) const {
    size_t k = 0;
    while (Tick{2} << k <= end - begin) ++k;
    const std::vector<int64_t>& table = tables_[k];
    return std::max(table[begin], table[end - (size_t{1} << k)]);
  }

 private:
  std::vector<std::vector<int64_t>> tables_;
};

// The slices of a residence as they begin. `prefetches` stand in the order of their begins. None if
// it takes all its bytes at once, or if they don't fill it, which is not a matter of offsets.
std::vector<OffsetStep> StepsOf(const Residence& residence, int64_t size,
                                const std::vector<const Copy*>& prefetches) {
  std::vector<OffsetStep> steps;
  for (const Copy* copy : prefetches) {
    if (!steps.empty() && copy->part_end <= steps.back().size) continue;
    if (!steps.empty() && copy->begin == steps.back().begin) {
      steps.back().size = copy->part_end;
    } else {
      steps.push_back({copy->begin, copy->part_end});
    }
  }
  const bool fill = steps.size() > 1 && steps.front().begin == residence.begin &&
                    steps.back().begin < residence.end && steps.back().size == size;
  return fill ? steps : std::vector<OffsetStep>();
}

}  // namespace

absl::StatusOr<OffsetResult> RepairOffsets(const Program& program, const Hardware& hardware,
                                           Plan& plan, const OffsetLimits& limits) {
  MG_RETURN_IF_ERROR(CheckWellFormed(program, hardware, plan));
  std::vector<std::vector<const Copy*>> prefetches(plan.residences.size());
  for (const Copy& copy : plan.copies) {
    if (copy.kind == CopyKind::kPrefetch) prefetches[copy.residence.index()].push_back(&copy);
  }
  const ReservedBytes reserved(program);
  OffsetProblem problem;
  problem.capacity = hardware.fast_bytes;
  problem.alignment = hardware.alignment_bytes;
  problem.intervals.reserve(plan.residences.size());
  for (size_t i = 0; i < plan.residences.size(); ++i) {
    const Residence& r = plan.residences[i];
    const int64_t size = program.buffer(r.buffer).size_bytes;
    problem.intervals.push_back({.begin = r.begin,
                                 .end = r.end,
                                 .size = size,
                                 .min_offset = reserved.Most(r.begin, r.end),
                                 .steps = StepsOf(r, size, prefetches[i])});
  }
  MG_ASSIGN_OR_RETURN(OffsetResult result, SolveOffsets(problem, limits));
  if (result.status == OffsetStatus::kFeasible) {
    for (size_t i = 0; i < plan.residences.size(); ++i)
      plan.residences[i].offset = result.offsets[i];
  }
  return result;
}

}  // namespace mallocgame
