// What each action at a position leads to: labels for learning, and one step of policy improvement.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "mallocgame/game/position.h"
#include "mallocgame/game/prices.h"

namespace mallocgame {

// For each action of the game, 1 - latency / all-main latency at the end of the game that takes it
// and plays on; NaN for an illegal one. Rent at `prices` (rent.h) plays on, or greedy if they are
// null. The position comes back unchanged. It takes as long as a game for each legal action.
//
// InvalidArgument: prices that ValidatePrices refuses, or prices for the priority game, where only
// greedy plays.
absl::StatusOr<std::vector<double>> ActionReturns(Position& position,
                                                  const Prices* prices = nullptr);

}  // namespace mallocgame
