// The solvers that take a plan as it is: everything in main memory, XLA's own, and what XLA's
// allocator decides.
#include <utility>

#include "absl/strings/str_cat.h"
#include "mallocgame/base/deadline.h"
#include "mallocgame/base/error.h"
#include "mallocgame/plan/plan.h"
#include "mallocgame/solvers/planning/planners.h"
#include "mallocgame/solvers/xla/heuristic.h"

namespace mallocgame {

absl::StatusOr<SolveResult> SolveAllMain(const SolveProblem& problem,
                                         const SolveLimits& /*limits*/) {
  return JudgePlan(*problem.game, AllMainPlan(problem.game->program(), problem.game->hardware()));
}

absl::StatusOr<SolveResult> SolveXlaAssigned(const SolveProblem& problem,
                                             const SolveLimits& /*limits*/) {
  if (problem.xla_plan == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("xla-assigned: program '", problem.game->program().name(),
                     "' came without XLA's own assignment for ", problem.game->hardware().name,
                     "; import it with the module after assignment"));
  }
  return JudgePlan(*problem.game, *problem.xla_plan);
}

absl::StatusOr<SolveResult> SolveXlaHeuristic(const SolveProblem& problem,
                                              const SolveLimits& limits) {
  XlaOutcome outcome = PlanLikeXla(*problem.game, Deadline(limits.seconds, limits.cancel));
  MG_ASSIGN_OR_RETURN(SolveResult result, JudgePlan(*problem.game, std::move(outcome.plan)));
  if (!outcome.finished) result.status = SolveStatus::kStopped;
  return result;
}

}  // namespace mallocgame
