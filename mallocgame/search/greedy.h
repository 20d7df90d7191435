// Greedy's rule: the action with the best immediate saving, less a price for what it takes.
#ifndef MALLOCGAME_SEARCH_GREEDY_H_
#define MALLOCGAME_SEARCH_GREEDY_H_

#include <array>

#include "mallocgame/game/priority/priority_state.h"
#include "mallocgame/game/state.h"

namespace mallocgame {

// The action whose saving exceeds its rent, in picoseconds, the most. Ties go to Drop, which takes
// nothing from later decisions, then to NoCopy, which takes no bandwidth. The state must not be
// terminal; it comes back unchanged.
Action MostProfitable(State& state, const std::array<double, kActions>& rents);
// The same without rents. The state must not be terminal; it comes back unchanged.
Action GreedyAction(State& state);

// In the priority game: the action that serves a candidate from fast memory and saves most; -1:
// none saves anything. The state comes back unchanged.
int MostSaving(PriorityState& state, int candidate);

}  // namespace mallocgame

#endif  // MALLOCGAME_SEARCH_GREEDY_H_
