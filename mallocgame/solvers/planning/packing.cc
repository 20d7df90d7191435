#include <algorithm>
#include <utility>

#include "mallocgame/base/error.h"
#include "mallocgame/game/priority/priority_state.h"
#include "mallocgame/search/game_variants.h"
#include "mallocgame/search/starts.h"
#include "mallocgame/solvers/anneal_result.h"
#include "mallocgame/solvers/planning/planners.h"
#include "mallocgame/solvers/playing/players.h"
#include "mallocgame/solvers/xla/heuristic.h"

namespace mallocgame {
namespace {

constexpr double kPriorityShare = 0.1;  // of the limits, for the priority game's first games

// The best of rent's plan, one like XLA's, and those of the priority game's first games.
absl::StatusOr<SolveResult> PackingStart(const Game& game, SolveLimits limits) {
  limits.progress = nullptr;  // The caller tells of the best.
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
  Budget budget(limits);
  MG_ASSIGN_OR_RETURN(SolveResult best, PackingStart(game, limits));
  budget.Found(ValueOf(game.program(), CostOf(best)));
  if (budget.limited()) MG_RETURN_IF_ERROR(AnnealResult(game, budget, best));
  best.status = SolveStatus::kStopped;
  best.play.reset();  // The plan was packed from what it made.
  budget.Count(1);
  budget.Finish(best, ValueOf(game.program(), CostOf(best)));
  return best;
}

}  // namespace mallocgame
