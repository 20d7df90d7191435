// Games played to the end: at random, and in every way there is.
#ifndef MALLOCGAME_TESTS_SUPPORT_PLAY_H_
#define MALLOCGAME_TESTS_SUPPORT_PLAY_H_

#include <cstdint>

#include "mallocgame/base/rng.h"
#include "mallocgame/game/game.h"
#include "mallocgame/game/state.h"

namespace mallocgame::testing {

// The end of a game in which every decision was drawn from the legal ones. It ends the process if
// the rules leave nothing to draw from, or refuse what they call legal.
State PlayAtRandom(const Game& game, Rng& rng);

// The least latency of all plays from `state` on, which is left as it was. Adds their number to
// `*games`.
int64_t BestLatency(State& state, int64_t* games = nullptr);

}  // namespace mallocgame::testing

#endif  // MALLOCGAME_TESTS_SUPPORT_PLAY_H_
