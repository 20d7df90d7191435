#include <utility>

#include "mallocgame/base/error.h"
#include "mallocgame/solvers/pipeline.h"
#include "mallocgame/solvers/planning/planners.h"
#include "mallocgame/solvers/recorder.h"
#include "mallocgame/solvers/styles/styles.h"

namespace mallocgame {

absl::StatusOr<SolveResult> SolveStyles(const SolveProblem& problem, const SolveLimits& limits) {
  const Game& game = *problem.game;
  Pipeline pipeline(game, limits);
  const Budget& budget = pipeline.budget();
  Recorder recorder(limits);
  FoundPlan played =
      PlayStyles(game, budget.deadline(), [&](int64_t latency_ps) { recorder.Found(latency_ps); });
  MG_ASSIGN_OR_RETURN(SolveResult result, JudgePlan(game, std::move(played.plan)));
  result.play.decided = std::move(played.decided);
  result.evaluations = played.evaluations;
  pipeline.Count(played.evaluations);
  if (budget.limited() && !budget.Exhausted()) {
    MG_RETURN_IF_ERROR(pipeline.Anneal(game, 1, result));
    recorder.Found(result.report.latency_ps);
  }
  if (budget.limited()) result.status = SolveStatus::kStopped;
  recorder.Count(pipeline.evaluations());
  recorder.Finish(result);
  return result;
}

}  // namespace mallocgame
