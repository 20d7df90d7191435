// The solvers that play the game, each defined in the file of its name, and what turns the best
// game that they leave in a Budget into a result.
#ifndef MALLOCGAME_SOLVERS_PLAYING_PLAYERS_H_
#define MALLOCGAME_SOLVERS_PLAYING_PLAYERS_H_

#include <array>
#include <cstdint>
#include <functional>

#include "absl/status/statusor.h"
#include "mallocgame/base/deadline.h"
#include "mallocgame/game/state.h"
#include "mallocgame/plan/plan.h"
#include "mallocgame/solvers/playing/budget.h"
#include "mallocgame/solvers/playing/order_preferences.h"
#include "mallocgame/solvers/solver.h"

namespace mallocgame {

// A player finishes at least one game, whatever the limits, and leaves its best in `budget`. It
// returns true if it ended by itself and false if the limits ended it.
bool PlayGreedy(const Game& game, Budget& budget);
// `prices` are tried beside rent's own unless they are null.
bool PlayRent(const Game& game, const Prices* prices, Budget& budget);
bool PlayAnneal(const Game& game, Budget& budget);
bool PlayRandom(const Game& game, Budget& budget);

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

// Where searches of the order game start: the better one of rent's best game and of the best game
// in a style. Each has half of the time until `deadline`.
FollowedPlan StartingPlan(const Game& game, const Deadline& deadline);

// The action whose saving exceeds its rent, in picoseconds, the most. Ties go to Drop, which takes
// nothing from later decisions, then to NoCopy, which takes no bandwidth. The state must not be
// terminal; it comes back unchanged.
Action MostProfitable(State& state, const std::array<double, kActions>& rents);
// What greedy plays in `state`, which must not be terminal; it comes back unchanged.
Action GreedyAction(State& state);
// Plays `state` to the end by greedy's rule.
void PlayGreedyFrom(State& state);

}  // namespace mallocgame

#endif  // MALLOCGAME_SOLVERS_PLAYING_PLAYERS_H_
