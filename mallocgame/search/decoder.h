// From an intent to a plan: plays the games as an intent wants. What is illegal when its turn
// comes gives way to the nearest mode that is legal, so every intent leads to a whole, valid game.
// A *schedule generation scheme*, as in resource-constrained project scheduling (Kolisch, 1996: a
// serial one): ranks are priorities, and where a residence lies follows from what lies already.
#ifndef MALLOCGAME_SEARCH_DECODER_H_
#define MALLOCGAME_SEARCH_DECODER_H_

#include "mallocgame/game/position.h"
#include "mallocgame/game/priority/priority_state.h"
#include "mallocgame/game/state.h"
#include "mallocgame/search/intent.h"

namespace mallocgame {

// The functions take a dense intent of the position's game (intent.h). In the schedule game the
// program's own order is kept as far as possible, and placement is open.

// Takes one decision. The position must not be terminal.
void Decide(Position& position, const Intent& intent);
// Plays a position to its end.
void PlayOn(Position& position, const Intent& intent);

// What Decide consists of. In the time game: the action that a mode leads to. The state must not be
// terminal; it comes back unchanged.
Action ActionOf(State& state, Mode mode);
// In the priority game: the candidate with the lowest rank, of which there must be one; and serving
// a candidate in a mode. Returns how it is served.
int NextCandidate(const PriorityState& state, const Intent& intent);
Mode Serve(PriorityState& state, int candidate, Mode mode);

}  // namespace mallocgame

#endif  // MALLOCGAME_SEARCH_DECODER_H_
