// Greedy play that pays rent: an action is worth what it saves, less the prices of the fast memory
// and of the channel time that it takes. So a buffer that saves little for its bytes and its time
// leaves its place to others, which greedy, who doesn't look ahead, can't know of.
#pragma once

#include <array>

#include "mallocgame/base/deadline.h"
#include "mallocgame/base/ids.h"
#include "mallocgame/game/prices.h"
#include "mallocgame/game/time/state.h"

namespace mallocgame {

class Rent {
 public:
  explicit Rent(const Prices& prices) : prices_(prices) {}

  // What each legal action of the current decision costs, in picoseconds. A new residence pays for
  // all its ticks, one that is kept only for those that it gets in addition. A copy pays the
  // channel's mean price in its window. The state must not be terminal.
  std::array<double, kActions> Of(const State& state) const;

 private:
  PriceSums prices_;
};

// The most profitable action (game/time/time_decoder.h) by `rent`. The state must not be terminal;
// it comes back unchanged.
Action RentAction(State& state, const Rent& rent);
// Plays `state` to the end by that rule.
void PlayRentFrom(State& state, const Rent& rent);

// The end of the best game at some twenty prices; of fewer, but one at least, if `deadline` passes.
// It is never slower than greedy's. With `small_buffers` it may be a game that asks about small
// buffers too (search/game_variants.h).
State BestRentGame(const Game& game, const Deadline& deadline, bool small_buffers = false);

}  // namespace mallocgame
