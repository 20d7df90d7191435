// Games for tests, and games played to the end: at random, and in every way there is.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

#include "mallocgame/base/rng.h"
#include "mallocgame/game/game.h"
#include "mallocgame/game/game_options.h"
#include "mallocgame/game/position.h"
#include "mallocgame/game/priority/priority_game.h"
#include "mallocgame/game/time/state.h"
#include "mallocgame/game/time/time_game.h"
#include "mallocgame/hardware/hardware.h"
#include "mallocgame/program/program.h"

namespace mallocgame::testing {

// Returns the options of a game by its name, with min_buffer_bytes 0 and those of `values` that it
// has.
std::unique_ptr<GameOptions> OptionsOf(
    absl::string_view game, const std::vector<std::pair<const char*, OptionValue>>& values = {});

// Returns the game that asks about every buffer that fits: `options` with min_buffer_bytes 0. The
// process ends if Game::Create refuses it.
std::shared_ptr<const Game> MakeGame(std::shared_ptr<const Program> program,
                                     const Hardware& hardware,
                                     const GameOptions& options = TimeGameOptions());
std::shared_ptr<const PriorityGame> MakeGame(std::shared_ptr<const Program> program,
                                             const Hardware& hardware,
                                             const PriorityGameOptions& options);
// The same with accesses that must be served from main memory.
std::shared_ptr<const Game> MakeGame(std::shared_ptr<const Program> program,
                                     const Hardware& hardware, std::vector<AccessId> forbidden);

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
