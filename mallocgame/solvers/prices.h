// What fast memory and the copy channel are worth, tick by tick.
#ifndef MALLOCGAME_SOLVERS_PRICES_H_
#define MALLOCGAME_SOLVERS_PRICES_H_

#include <vector>

#include "absl/status/status.h"
#include "mallocgame/game/game.h"

namespace mallocgame {

struct Prices {
  // For each tick, the picoseconds that a byte of fast memory costs while it is held there.
  std::vector<double> space_ps_per_byte;
  // For each tick, the picoseconds that a copy costs for each picosecond that it takes of the
  // channel's time. Empty if the channel is free.
  std::vector<double> channel_ps_per_ps;
};

// InvalidArgument unless there is a price of space for each tick of the program, and one of the
// channel for each or for none, all of them finite and not negative.
absl::Status ValidatePrices(const Program& program, const Prices& prices);

// A price of space that is the same at all ticks, and a free channel. With `scale` 1, all of fast
// memory over the whole program costs as much as the program takes with everything in main memory.
Prices UniformPrices(const Game& game, double scale);

}  // namespace mallocgame

#endif  // MALLOCGAME_SOLVERS_PRICES_H_
