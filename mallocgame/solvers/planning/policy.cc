#include <utility>

#include "mallocgame/base/error.h"
#include "mallocgame/solvers/planning/planners.h"
#include "mallocgame/solvers/policy/policy_game.h"
#include "mallocgame/solvers/recorder.h"

namespace mallocgame {

absl::StatusOr<SolveResult> SolvePolicy(const SolveProblem& problem, const SolveLimits& limits) {
  const Game& game = *problem.game;
  Recorder recorder(limits);
  PolicyGame::Played played = PolicyGame(game).Play(LearnedPolicyWeights());
  recorder.Found(played.latency_ps);
  MG_ASSIGN_OR_RETURN(SolveResult result, JudgePlan(game, std::move(played.plan)));
  recorder.Count(1);
  recorder.Finish(result);
  return result;
}

}  // namespace mallocgame
