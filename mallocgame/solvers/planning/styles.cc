#include <algorithm>
#include <utility>
#include <vector>

#include "mallocgame/base/error.h"
#include "mallocgame/solvers/pipeline.h"
#include "mallocgame/solvers/planning/planners.h"
#include "mallocgame/solvers/styles/styles.h"

namespace mallocgame {

absl::StatusOr<SolveResult> SolveStyles(const SolveProblem& problem, const SolveLimits& limits) {
  const Game& game = *problem.game;
  Pipeline pipeline(game, limits);
  const Budget& budget = pipeline.budget();
  std::vector<Improvement> curve;
  const auto tell = [&](int64_t latency_ps) {
    curve.push_back({budget.seconds(), latency_ps, {}});
    if (limits.progress) limits.progress(curve.back().seconds, latency_ps);
  };
  FoundPlan played = PlayStyles(game, budget.deadline(), tell);
  MG_ASSIGN_OR_RETURN(SolveResult result, JudgePlan(game, std::move(played.plan)));
  result.decided = std::move(played.decided);
  result.evaluations = played.evaluations;
  pipeline.Count(played.evaluations);
  if (budget.limited() && !budget.Exhausted()) {
    MG_RETURN_IF_ERROR(pipeline.Anneal(game, 1, result));
    if (result.report.latency_ps < curve.back().latency_ps) tell(result.report.latency_ps);
  }
  if (budget.limited()) result.status = SolveStatus::kStopped;
  result.evaluations = pipeline.evaluations();
  result.curve = std::move(curve);
  return result;
}

}  // namespace mallocgame
