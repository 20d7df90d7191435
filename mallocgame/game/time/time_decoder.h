// How a position of the time game is decided: by greedy's rule, or as an intent wants.
#pragma once

#include <array>

#include "mallocgame/game/mode.h"
#include "mallocgame/game/time/state.h"

namespace mallocgame {

// What an action stands for.
Mode ModeOf(Action action);

// Greedy's rule: the action with the best immediate saving, less a price for what it takes. That
// is the one whose saving exceeds its rent, in picoseconds, the most. Ties go to Drop, which takes
// nothing from later decisions, then to NoCopy, which takes no bandwidth. The state must not be
// terminal; it comes back unchanged.
Action MostProfitable(State& state, const std::array<double, kActions>& rents);
// The same without rents.
Action GreedyAction(State& state);
// The action that a mode leads to.
Action ActionOf(State& state, Mode mode);

}  // namespace mallocgame
