// The search of the solver `priority`. Residences choose their offsets in fast memory one after the
// other; simulated annealing changes their order and what is wished for. It improves a given plan
// and plays no game.
#ifndef MALLOCGAME_SOLVERS_PLANNING_ARRANGE_PLAN_H_
#define MALLOCGAME_SOLVERS_PLANNING_ARRANGE_PLAN_H_

#include <cstdint>
#include <functional>

#include "mallocgame/game/game.h"
#include "mallocgame/plan/plan.h"

namespace mallocgame {

struct Arranged {
  Plan plan;  // valid, never slower than the one given if that is valid
  int64_t latency_ps = 0;
  int64_t evaluations = 0;
};

// `plan` must be well formed. If it isn't valid, the result is the best arrangement of what it
// serves from fast memory. What `plan` serves from there of the accesses that the game's options
// require, the result serves from there too, if `plan` is valid. `progress` gets the number of
// evaluations so far and returns the share of the limits that is used up; at 1 the search ends. If
// `progress` depends on nothing else, the result depends on the plan and the seed only.
Arranged ArrangePlan(const Game& game, const Plan& plan, uint64_t seed,
                     const std::function<double(int64_t)>& progress);

}  // namespace mallocgame

#endif  // MALLOCGAME_SOLVERS_PLANNING_ARRANGE_PLAN_H_
