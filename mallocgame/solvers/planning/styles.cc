#include <utility>

#include "mallocgame/base/error.h"
#include "mallocgame/solvers/anneal_result.h"
#include "mallocgame/solvers/budget.h"
#include "mallocgame/solvers/planning/planners.h"
#include "mallocgame/solvers/styles/styles.h"

namespace mallocgame {

absl::StatusOr<SolveResult> SolveStyles(const SolveProblem& problem, const SolveLimits& limits) {
  const Game& game = *problem.game;
  Budget budget(limits);
  FoundPlan played =
      PlayStyles(game, budget.deadline(), [&](int64_t latency_ps) { budget.Found(latency_ps); });
  MG_ASSIGN_OR_RETURN(SolveResult result, JudgePlan(game, std::move(played.plan)));
  result.play.emplace().decided = std::move(played.decided);
  if (budget.limited()) {
    MG_RETURN_IF_ERROR(AnnealResult(game, budget, result));
    result.status = SolveStatus::kStopped;
  }
  budget.Finish(result, ValueOf(game.program(), CostOf(result)));
  return result;
}

}  // namespace mallocgame
