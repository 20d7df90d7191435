#include "mallocgame/solvers/playing/players.h"

#include <optional>
#include <utility>

#include "mallocgame/base/error.h"
#include "mallocgame/search/game_variants.h"
#include "mallocgame/solvers/playing/rent.h"
#include "mallocgame/solvers/styles/styles.h"

namespace mallocgame {

absl::StatusOr<SolveResult> JudgeBestGame(const Budget& budget) {
  MG_ASSIGN_OR_RETURN(SolveResult result, JudgePlay(budget.best_play()));
  budget.Finish(result);
  return result;
}

absl::StatusOr<SolveResult> SolveByPlaying(const SolveProblem& problem, const SolveLimits& limits,
                                           const std::function<bool(const Game&, Budget&)>& play) {
  Budget budget(limits);
  const bool finished = play(*problem.game, budget);
  MG_ASSIGN_OR_RETURN(SolveResult result, JudgeBestGame(budget));
  result.status = finished ? SolveStatus::kHeuristic : SolveStatus::kStopped;
  return result;
}

absl::StatusOr<SolveResult> SolveGreedy(const SolveProblem& problem, const SolveLimits& limits) {
  return SolveByPlaying(problem, limits, PlayGreedy);
}

absl::StatusOr<SolveResult> SolveRent(const SolveProblem& problem, const SolveLimits& limits) {
  return SolveByPlaying(problem, limits, PlayRent);
}

absl::StatusOr<SolveResult> SolveAnneal(const SolveProblem& problem, const SolveLimits& limits) {
  return SolveByPlaying(problem, limits, PlayAnneal);
}

absl::StatusOr<SolveResult> SolveRandom(const SolveProblem& problem, const SolveLimits& limits) {
  return SolveByPlaying(problem, limits, PlayRandom);
}

absl::StatusOr<SolveResult> SolveMcts(const SolveProblem& problem, const SolveLimits& limits) {
  return SolveByPlaying(problem, limits, PlayMcts);
}

absl::StatusOr<SolveResult> SolveExact(const SolveProblem& problem, const SolveLimits& limits) {
  Budget budget(limits);
  const ExactOutcome outcome = PlayExact(*problem.game, budget);
  MG_ASSIGN_OR_RETURN(SolveResult result, JudgeBestGame(budget));
  result.status = outcome.optimal ? SolveStatus::kOptimal : SolveStatus::kStopped;
  result.bound_ps = outcome.bound_ps;
  return result;
}

FoundPlan StartingPlan(const Game& game, const Deadline& deadline) {
  const State rent = BestRentGame(*TimeGameOf(game), deadline.Share(0.5), /*small_buffers=*/true);
  FoundPlan ruled = PlayStyles(game, deadline);
  if (ruled.latency_ps >= rent.latency_ps()) return {rent.ToPlan(), rent.latency_ps()};
  return ruled;
}

std::vector<GameStart> StartsWithin(const PriorityGame& game, const Budget& budget,
                                    double plan_share, double starts_share) {
  std::optional<FoundPlan> first;
  if (!budget.HasFewGames()) first = StartingPlan(game, budget.deadline().Share(plan_share));
  return PriorityStarts(game, first ? &*first : nullptr, budget.deadline().Share(starts_share));
}

}  // namespace mallocgame
