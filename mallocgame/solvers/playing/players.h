// The solvers that play the game, each defined in the file of its name, and what turns the best
// game that they leave in a Budget into a result.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "mallocgame/base/deadline.h"
#include "mallocgame/game/time/state.h"
#include "mallocgame/plan/plan.h"
#include "mallocgame/search/starts.h"
#include "mallocgame/solvers/budget.h"
#include "mallocgame/solvers/solver.h"

namespace mallocgame {

// A player finishes at least one game, whatever the limits, and leaves its best in `budget`. It
// returns true if it ended by itself and false if the limits ended it.
bool PlayGreedy(const Game& game, Budget& budget);
bool PlayRent(const Game& game, Budget& budget);
bool PlayAnneal(const Game& given, Budget& budget);
bool PlayRandom(const Game& game, Budget& budget);
bool PlayMcts(const Game& game, Budget& budget);

struct ExactOutcome {
  bool optimal = false;  // the best play is proven to be one
  int64_t bound_ps = 0;  // no play of the game has a lower latency
};
// Finishes at least one game and leaves the best in `budget`, as the players above do.
ExactOutcome PlayExact(const Game& game, Budget& budget);

// The best game in `budget` with its plan as Simulate judges it; the caller sets the status.
absl::StatusOr<SolveResult> JudgeBestGame(const Budget& budget);

// Solves by playing: runs `play`, which does as a player does, and judges the best game it leaves.
absl::StatusOr<SolveResult> SolveByPlaying(const SolveProblem& problem, const SolveLimits& limits,
                                           const std::function<bool(const Game&, Budget&)>& play);

// The players above as solvers.
absl::StatusOr<SolveResult> SolveGreedy(const SolveProblem& problem, const SolveLimits& limits);
absl::StatusOr<SolveResult> SolveRent(const SolveProblem& problem, const SolveLimits& limits);
absl::StatusOr<SolveResult> SolveAnneal(const SolveProblem& problem, const SolveLimits& limits);
absl::StatusOr<SolveResult> SolveRandom(const SolveProblem& problem, const SolveLimits& limits);
absl::StatusOr<SolveResult> SolveMcts(const SolveProblem& problem, const SolveLimits& limits);
absl::StatusOr<SolveResult> SolveExact(const SolveProblem& problem, const SolveLimits& limits);

// Where searches of the priority game start: the better one of rent's best game and of the best
// game by a priority rule. Each has half of the time until `deadline`.
FoundPlan StartingPlan(const Game& game, const Deadline& deadline);
// The starts of a search with `budget` (PriorityStarts), which follow StartingPlan unless there are
// too few games for that. Each of the two has its share of the time that is left.
std::vector<GameStart> StartsWithin(const PriorityGame& game, const Budget& budget,
                                    double plan_share, double starts_share);

}  // namespace mallocgame
