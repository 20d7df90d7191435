#include <algorithm>
#include <memory>
#include <utility>

#include "mallocgame/base/error.h"
#include "mallocgame/search/decoder.h"
#include "mallocgame/search/game_variants.h"
#include "mallocgame/search/starts.h"
#include "mallocgame/solvers/pipeline.h"
#include "mallocgame/solvers/planning/planners.h"
#include "mallocgame/solvers/playing/players.h"
#include "mallocgame/solvers/xla/heuristic.h"

namespace mallocgame {
namespace {

constexpr double kPriorityShare = 0.1;  // of the limits, for the priority game's first games
constexpr double kTrialOfPlace = 0.25;  // of the limits, for each place

// The best of rent's plan, one like XLA's, and those of the priority game's first games.
absl::StatusOr<SolveResult> PackingStart(const Game& game, const Prices* prices,
                                         const SolveLimits& limits) {
  Budget budget(limits);
  PlayRent(*TimeGameOf(game), prices, budget);
  MG_ASSIGN_OR_RETURN(SolveResult start, JudgeBestGame(budget));
  XlaOutcome outcome = PlanLikeXla(game, budget.deadline().Share(kXlaShare));
  MG_ASSIGN_OR_RETURN(SolveResult xla, JudgePlan(game, std::move(outcome.plan)));
  if (xla.report.latency_ps < start.report.latency_ps) start = std::move(xla);
  const FoundPlan followed = {.plan = start.plan};
  const GameStart order =
      PriorityStarts(game, &followed, budget.deadline().Share(kPriorityShare))[0];
  if (order.latency_ps >= start.report.latency_ps) return start;
  PriorityState end(order.game);
  PlayOn(end, order.intent);
  return JudgePlan(game, end.ToPlan());
}

}  // namespace

absl::StatusOr<SolveResult> SolvePacking(const SolveProblem& problem, const SolveLimits& limits) {
  std::shared_ptr<const Game> game = problem.game;
  Pipeline pipeline(*problem.game, limits);
  const Budget& budget = pipeline.budget();
  MG_ASSIGN_OR_RETURN(SolveResult best, PackingStart(*game, problem.prices, limits));
  const auto goes_on = [&budget] { return budget.limited() && !budget.deadline().Passed(); };
  double until = kTrialOfPlace;
  if (goes_on()) {
    if (const auto without = GameWithoutLargest(*game)) {
      SolveLimits quiet = limits;
      quiet.progress = nullptr;
      if (limits.seconds > 0) quiet.seconds = std::max(1e-9, limits.seconds - budget.seconds());
      MG_ASSIGN_OR_RETURN(SolveResult other, PackingStart(*without, problem.prices, quiet));
      MG_RETURN_IF_ERROR(pipeline.Pack(*without, until, other));
      until += kTrialOfPlace;
      MG_RETURN_IF_ERROR(pipeline.Pack(*game, until, best));
      if (other.report.latency_ps < best.report.latency_ps) {
        best = std::move(other);
        // Not in the full game: there, annealing falls back into what the trial got out of.
        game = without;
      }
    } else {
      MG_RETURN_IF_ERROR(pipeline.Pack(*game, until, best));
    }
  }
  if (goes_on()) {
    MG_ASSIGN_OR_RETURN(SolveResult annealed, AnnealedGame(*game, limits));
    pipeline.Count(annealed.evaluations);
    MG_RETURN_IF_ERROR(pipeline.Pack(*game, until + kTrialOfPlace, annealed));
    if (annealed.report.latency_ps < best.report.latency_ps &&
        LatencyWithPreloads(annealed.report) < LatencyWithPreloads(best.report)) {
      best = std::move(annealed);
      if (limits.progress) limits.progress(budget.seconds(), best.report.latency_ps);
    }
  }
  MG_RETURN_IF_ERROR(pipeline.Pack(*game, 1, best));
  best.evaluations = 1 + pipeline.evaluations();
  best.status = SolveStatus::kStopped;
  // What it was packed from is no longer what made it.
  best.actions.clear();
  best.game = nullptr;
  best.search = {};
  best.curve.clear();
  return best;
}

}  // namespace mallocgame
