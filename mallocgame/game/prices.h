// What fast memory and the copy channel are worth, tick by tick.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "mallocgame/base/ids.h"
#include "mallocgame/game/game.h"

namespace mallocgame {

struct Prices {
  // For each tick, the picoseconds that a byte of fast memory costs while it is held there.
  std::vector<double> space_ps_per_byte;
  // For each tick, the picoseconds that a copy costs for each picosecond that it takes of the
  // channel's time. Empty if the channel is free.
  std::vector<double> channel_ps_per_ps;
};

// Prices, added up so that what an action would pay is found at once.
class PriceSums {
 public:
  explicit PriceSums(const Prices& prices);

  // What `bytes` of fast memory over the ticks [begin, end) cost, in picoseconds.
  double OfSpace(int64_t bytes, Tick begin, Tick end) const {
    return static_cast<double>(bytes) * (space_[end] - space_[begin]);
  }
  // What a copy in the window [begin, end) costs, in picoseconds: it pays the mean price there.
  double OfCopy(int64_t copy_ps, Tick begin, Tick end) const {
    if (channel_.size() == 1) return 0;
    return static_cast<double>(copy_ps) * (channel_[end] - channel_[begin]) /
           std::max(1, end - begin);
  }

 private:
  std::vector<double> space_, channel_;  // at index t, the sum of the prices before tick t
};

// InvalidArgument unless there is a price of space for each tick of the program, and one of the
// channel for each or for none, all of them finite and not negative.
absl::Status ValidatePrices(const Program& program, const Prices& prices);

// A price of space that is the same at all ticks, and a free channel. With `scale` 1, all of fast
// memory over the whole program costs as much as the program takes with everything in main memory.
Prices UniformPrices(const Game& game, double scale);

}  // namespace mallocgame
