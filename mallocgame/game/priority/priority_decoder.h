// How a position of the priority game is decided: by greedy's rule, or as an intent wants. Ranks
// are priorities, and where a residence lies follows from what lies already.
#pragma once

#include "mallocgame/game/intent.h"
#include "mallocgame/game/mode.h"
#include "mallocgame/game/priority/priority_state.h"

namespace mallocgame {

// The action that serves a candidate from fast memory and saves most; -1: none saves anything. The
// state comes back unchanged.
int MostSaving(PriorityState& state, int candidate);
// The candidate with the lowest rank, of which there must be one.
int NextCandidate(const PriorityState& state, const Intent& intent);
// Serves a candidate in a mode. Returns how it is served.
Mode Serve(PriorityState& state, int candidate, Mode mode);

}  // namespace mallocgame
