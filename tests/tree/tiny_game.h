// A random game that is small enough for a search to find its best play.
#pragma once

#include <memory>

#include "mallocgame/base/rng.h"
#include "mallocgame/game/game.h"
#include "tests/support/dependences.h"
#include "tests/support/play.h"
#include "tests/support/programs.h"

namespace mallocgame::mcts {

// Draws a program with one loop, and a fast memory that holds only a part of it. The game asks
// about every buffer.
inline std::shared_ptr<const Game> TinyGame(Rng& rng, int instructions,
                                            const std::string& kind = "time") {
  auto program = mallocgame::testing::RandomProgram(
      rng, {.instructions = instructions, .loops = 1, .branches = 0});
  if (kind == "schedule") program = mallocgame::testing::WithDependences(*program);
  return *Game::Create(program, mallocgame::testing::TestHardware(6 + rng.Below(12)),
                       *mallocgame::testing::OptionsOf(kind));
}

}  // namespace mallocgame::mcts
