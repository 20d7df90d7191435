// Takes the action with the best immediate saving.

#include <memory>

#include "mallocgame/solvers/playing/players.h"

namespace mallocgame {

bool PlayGreedy(const Game& game, Budget& budget) {
  const std::unique_ptr<Position> position = game.NewInitialPosition();
  position->PlayOn(game.OpenIntent());
  budget.Finished(*position);
  return true;
}

}  // namespace mallocgame
