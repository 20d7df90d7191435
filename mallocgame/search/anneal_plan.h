// Anneals the residences of plans (residence_search.h), and plays no game. Of several plans each is
// annealed shortly, and the best one then is where the search goes on: a faster plan may be a worse
// start. Where a program repeats itself, what stands for the repeats is annealed first, and taken
// over by the others. Where there is time for more, hotter chains follow the first, each from the
// best plan so far.
#pragma once

#include <cstdint>
#include <functional>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "mallocgame/game/game.h"
#include "mallocgame/plan/plan.h"
#include "mallocgame/search/found_plan.h"

namespace mallocgame {

// There must be a plan, and all must be well formed. The result is never slower than the best of
// them that are valid, and valid; if none is, it is the best found from what of them the game
// allows. `used` gets the number of evaluations so far and returns the share of the limits that is
// used up; at 1 the search ends. If `used` depends on nothing else, the result depends on the plans
// and the seed only. Internal, and the rule that is broken, if what was found isn't valid.
absl::StatusOr<FoundPlan> AnnealPlan(const Game& game, absl::Span<const Plan> plans, uint64_t seed,
                                     const std::function<double(int64_t)>& used);

}  // namespace mallocgame
