// Plays many games at random, each decision uniform over the legal actions, and keeps the best.
// Each game has its own random stream.
#include <bit>

#include "mallocgame/base/error.h"
#include "mallocgame/base/rng.h"
#include "mallocgame/solvers/playing/players.h"

namespace mallocgame {

bool PlayRandom(const Game& game, Budget& budget) {
  const State start = game.InitialState();
  do {
    Rng rng(budget.seed(), static_cast<uint64_t>(budget.evaluations()));
    State state = start;
    while (!state.IsTerminal()) {
      uint32_t mask = state.legal_mask();
      for (uint32_t skip = rng.Below(std::popcount(mask)); skip > 0; --skip) mask &= mask - 1;
      MG_CHECK(state.Apply(static_cast<Action>(std::countr_zero(mask))).ok());
    }
    budget.Finished(state);
  } while (!budget.Exhausted());
  return false;
}

}  // namespace mallocgame
