// Local refinement of a whole plan, for what the game's rules leave out. A prefetch may begin
// earlier or later. It begins earlier in slices where only part of its bytes is free by then, as
// XLA does when it streams weights through a full fast memory. It is removed if the channel is
// worth more than what it saves. A read from main memory may get a prefetch where bytes are free.
//
// No intent says any of that, so its solutions are plans.
#ifndef MALLOCGAME_SEARCH_REFINE_PLAN_H_
#define MALLOCGAME_SEARCH_REFINE_PLAN_H_

#include <cstdint>

#include "mallocgame/base/deadline.h"
#include "mallocgame/game/game.h"
#include "mallocgame/plan/plan.h"
#include "mallocgame/search/found_plan.h"

namespace mallocgame {

// `plan` must be valid for the game's program and hardware. So is the result, which is never
// slower. Accesses that the game's options forbid or require stay as they are. First it passes over
// the prefetches until a pass improves nothing, then it anneals with random changes: until
// `deadline` passes, or, if that has no time limit, so many that they take about as long as the
// passes.
FoundPlan RefinePlan(const Game& game, Plan plan, uint64_t seed, const Deadline& deadline);

}  // namespace mallocgame

#endif  // MALLOCGAME_SEARCH_REFINE_PLAN_H_
