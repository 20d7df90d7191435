#include <algorithm>
#include <utility>

#include "mallocgame/base/error.h"
#include "mallocgame/game/priority/priority_state.h"
#include "mallocgame/search/game_variants.h"
#include "mallocgame/search/starts.h"
#include "mallocgame/solvers/pipeline.h"
#include "mallocgame/solvers/planning/planners.h"
#include "mallocgame/solvers/playing/players.h"
#include "mallocgame/solvers/xla/heuristic.h"

namespace mallocgame {
namespace {

constexpr double kPriorityShare = 0.1;  // of the limits, for the priority game's first games

// The best of rent's plan, one like XLA's, and those of the priority game's first games.
absl::StatusOr<SolveResult> PackingStart(const Game& game, const SolveLimits& limits) {
  Budget budget(limits);
  PlayRent(*TimeGameOf(game), budget);
  MG_ASSIGN_OR_RETURN(SolveResult start, JudgeBestGame(budget));
  XlaOutcome outcome = PlanLikeXla(game, budget.deadline().Share(kXlaShare));
  MG_ASSIGN_OR_RETURN(SolveResult xla, JudgePlan(game, std::move(outcome.plan)));
  if (xla.report.latency_ps < start.report.latency_ps) start = std::move(xla);
  const FoundPlan followed = {.plan = start.plan};
  const GameStart order =
      PriorityStarts(*PriorityGameOf(game), &followed, budget.deadline().Share(kPriorityShare))[0];
  if (order.latency_ps >= start.report.latency_ps) return start;
  PriorityState end(order.game);
  end.PlayOn(order.intent);
  return JudgePlan(game, end.ToPlan());
}

}  // namespace

absl::StatusOr<SolveResult> SolvePacking(const SolveProblem& problem, const SolveLimits& limits) {
  const Game& game = *problem.game;
  Pipeline pipeline(game, limits);
  MG_ASSIGN_OR_RETURN(SolveResult best, PackingStart(game, limits));
  if (pipeline.budget().limited()) MG_RETURN_IF_ERROR(pipeline.Anneal(game, 1, best));
  best.evaluations = 1 + pipeline.evaluations();
  best.status = SolveStatus::kStopped;
  // What it was packed from is no longer what made it.
  best.play = {};
  best.curve.clear();
  return best;
}

}  // namespace mallocgame
