// Games for tests, and games played to the end: at random, and in every way there is.
#ifndef MALLOCGAME_TESTS_SUPPORT_PLAY_H_
#define MALLOCGAME_TESTS_SUPPORT_PLAY_H_

#include <cstdint>
#include <memory>

#include "mallocgame/base/rng.h"
#include "mallocgame/game/game.h"
#include "mallocgame/game/position.h"
#include "mallocgame/game/state.h"
#include "mallocgame/hardware/hardware.h"
#include "mallocgame/program/program.h"

namespace mallocgame::testing {

// Returns the game that asks about every buffer that fits: `options` with min_buffer_bytes 0. The
// process ends if Game::Create refuses it.
std::shared_ptr<const Game> MakeGame(std::shared_ptr<const Program> program,
                                     const Hardware& hardware, GameOptions options = {});

// Draws one of the legal actions of a position that is not the game's end.
int RandomAction(const Position& position, Rng& rng);

// Plays on to the end of the game; every action is drawn from the legal ones. The process ends if
// the rules leave nothing to draw from, or refuse what they call legal.
void PlayOnAtRandom(Position& position, Rng& rng);
// The same from the start of a time game, whose end is returned.
State PlayAtRandom(const Game& game, Rng& rng);

// Returns the least latency of all plays from `state` on, which is left as it was, and adds their
// number to `*games`.
int64_t BestLatency(State& state, int64_t* games = nullptr);

}  // namespace mallocgame::testing

#endif  // MALLOCGAME_TESTS_SUPPORT_PLAY_H_
