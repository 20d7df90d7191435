// What a plan costs at the prices of a game and, where its program has two sets of them, at the
// others (program/both_prices.h).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "mallocgame/game/game.h"
#include "mallocgame/plan/plan.h"
#include "mallocgame/simulator/report.h"

namespace mallocgame {

// The program at both sets of prices: its own, the compiler's, and those that a law makes of them.
// `plan`, if not null, is the one to be beaten on this hardware. InvalidArgument: as of
// CalibratePrices, the lean is not in [-1, 1], or the plan isn't valid.
absl::StatusOr<std::shared_ptr<const Program>> AtBothPrices(
    const std::shared_ptr<const Program>& program, const Hardware& hardware, const PriceLaw& law,
    const Plan* plan, double lean);
// Whether the program can be simulated at its other prices on this hardware, if it has them.
absl::Status CheckOtherPrices(const Program& program, const Hardware& hardware);

struct PlanCost {
  Report report;
  std::optional<Report> others;  // at the other prices; none: there is one set
};

// Has Simulate judge a plan of the game's program. InvalidArgument if it isn't valid.
absl::StatusOr<PlanCost> CostOf(const Game& game, const Plan& plan);

// The latency with preloads done before the start: what searches make small.
int64_t ValueOf(const Program& program, const PlanCost& cost);

// The latency in picoseconds, and 0.5 % of what preloads cost the first run: of two plans solvers
// prefer the one with less, so that a preload must save so much in every run.
double ValueWithPreloads(const Program& program, const PlanCost& cost);

}  // namespace mallocgame
