// Takes the action with the best immediate saving.

#include <memory>

#include "mallocgame/search/decoder.h"
#include "mallocgame/solvers/playing/players.h"

namespace mallocgame {

bool PlayGreedy(const Game& game, Budget& budget) {
  const std::unique_ptr<Position> position = game.Start();
  PlayOn(*position, OpenIntent(game));
  budget.Finished(*position);
  return true;
}

}  // namespace mallocgame
