// The priority solver: buffers choose their places in fast memory one after the other, and that
// order, with what is asked for, is annealed. A plan in, a better one out; nothing is played.
#ifndef MALLOCGAME_SOLVERS_PLANNING_ARRANGE_PLAN_H_
#define MALLOCGAME_SOLVERS_PLANNING_ARRANGE_PLAN_H_

#include <cstdint>
#include <functional>

#include "mallocgame/game/game.h"
#include "mallocgame/plan/plan.h"

namespace mallocgame {

struct Arranged {
  Plan plan;  // valid, never slower than the one given
  int64_t latency_ps = 0;
  int64_t evaluations = 0;
};

// `plan` must be valid for the game's program and hardware. Accesses that the game's options
// require and the plan serves from fast memory still are. `progress` says, given the evaluations so
// far, which share of the limits is used up; at 1 it ends. If that depends on nothing else, the
// result depends on the seed and the plan only.
Arranged ArrangePlan(const Game& game, const Plan& plan, uint64_t seed,
                     const std::function<double(int64_t)>& progress);

}  // namespace mallocgame

#endif  // MALLOCGAME_SOLVERS_PLANNING_ARRANGE_PLAN_H_
