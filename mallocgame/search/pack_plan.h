// Anneals packings of a given plan (packing_search.h): it improves a plan, and plays no game.
#ifndef MALLOCGAME_SEARCH_PACK_PLAN_H_
#define MALLOCGAME_SEARCH_PACK_PLAN_H_

#include <cstdint>
#include <functional>

#include "absl/status/statusor.h"
#include "mallocgame/game/game.h"
#include "mallocgame/plan/plan.h"
#include "mallocgame/search/found_plan.h"

namespace mallocgame {

// `plan` must be well formed. If it is valid, so is the result, which is never slower, and serves
// from fast memory those of the accesses that the game's options require which `plan` does. If it
// isn't, the result is the best packing of what it serves from there. `used` gets the number of
// evaluations so far and returns the share of the limits that is used up; at 1 the search ends. If
// `used` depends on nothing else, the result depends on the plan and the seed only. Internal, and
// the rule that is broken, if the packing found isn't valid.
absl::StatusOr<FoundPlan> PackPlan(const Game& game, const Plan& plan, uint64_t seed,
                                   const std::function<double(int64_t)>& used);

}  // namespace mallocgame

#endif  // MALLOCGAME_SEARCH_PACK_PLAN_H_
