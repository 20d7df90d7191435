// What the agent adds to each of the games that it plays.
#ifndef AGENTS_MUZERO_GAME_PARTS_H_
#define AGENTS_MUZERO_GAME_PARTS_H_

#include <memory>

#include "agents/muzero/baseline.h"
#include "agents/muzero/varying.h"
#include "mallocgame/game/game.h"

namespace mallocgame::muzero {

struct GameParts {
  // What the game that ended in `end` does and saves.
  std::unique_ptr<const Baseline> (*baseline)(const Position& end);
  // Null if the agent does not vary games of this kind.
  std::unique_ptr<Varying> (*vary)(const Task& task, const Start& start);
};

// The one place of the agent that asks which game it plays.
const GameParts& PartsOf(const Game& game);

}  // namespace mallocgame::muzero

#endif  // AGENTS_MUZERO_GAME_PARTS_H_
