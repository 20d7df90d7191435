// Anneals the residences of a plan (residence_search.h), and plays no game. Where a program repeats
// itself, what stands for the repeats is annealed first, and taken over by the others. Where there
// is time for more, hotter chains follow the first, each from the best plan so far.
#ifndef MALLOCGAME_SEARCH_ANNEAL_PLAN_H_
#define MALLOCGAME_SEARCH_ANNEAL_PLAN_H_

#include <cstdint>
#include <functional>

#include "absl/status/statusor.h"
#include "mallocgame/game/game.h"
#include "mallocgame/plan/plan.h"
#include "mallocgame/search/found_plan.h"

namespace mallocgame {

// `plan` must be well formed. If it is valid, so is the result, which is never slower. If it isn't,
// the result is the best found from what of it the game allows. `used` gets the number of
// evaluations so far and returns the share of the limits that is used up; at 1 the search ends. If
// `used` depends on nothing else, the result depends on the plan and the seed only. Internal, and
// the rule that is broken, if what was found isn't valid.
absl::StatusOr<FoundPlan> AnnealPlan(const Game& game, const Plan& plan, uint64_t seed,
                                     const std::function<double(int64_t)>& used);

}  // namespace mallocgame

#endif  // MALLOCGAME_SEARCH_ANNEAL_PLAN_H_
