// Plays many games at random, each decision uniform over the legal actions, and keeps the best.
// Each game has its own random stream.
#include <memory>

#include "mallocgame/base/error.h"
#include "mallocgame/base/rng.h"
#include "mallocgame/solvers/playing/players.h"

namespace mallocgame {

bool PlayRandom(const Game& game, Budget& budget) {
  const std::unique_ptr<Position> start = game.NewInitialPosition();
  const std::unique_ptr<Position> position = start->Clone();
  do {
    Rng rng(budget.seed(), static_cast<uint64_t>(budget.evaluations()));
    position->CopyFrom(*start);
    while (!position->IsTerminal()) {
      const ActionSet legal = position->legal_actions();
      MG_CHECK(position->Apply(legal[rng.Below(legal.size())]).ok());
    }
    budget.Finished(*position);
  } while (!budget.Exhausted());
  return false;
}

}  // namespace mallocgame
