// Turns a plan into an offset problem, and takes over the offsets.
#include <utility>
#include <vector>

#include "mallocgame/base/error.h"
#include "mallocgame/plan/offsets.h"
#include "mallocgame/program/reserved_bytes.h"

namespace mallocgame {
namespace {

// The slices of a residence as they begin; `prefetches` stand in the order of their begins. There
// are no steps if the residence takes all its bytes at once, or if the slices do not fill it, which
// is not a matter of offsets.
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
