// Where the time of a plan goes, tick by tick: the numbers that Simulate adds up.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "mallocgame/plan/plan.h"
#include "mallocgame/program/cost_model.h"

namespace mallocgame {

// The time of one tick in picoseconds of one run of the program, all trips together. Over all ticks
// compute_ps and stall_ps add up to those of the Report.
struct TickTime {
  int64_t compute_ps = 0;  // the time in which the instruction runs
  int64_t stall_ps = 0;    // the time before it in which the program waits for copies
  // The part of compute_ps in which the instruction leaves the main-memory channel to copies.
  int64_t idle_ps = 0;
  // The part of idle_ps in which the channel serves copies. In a loop the second trip stands for
  // all further ones.
  int64_t copied_ps = 0;
  PriceSource source = PriceSource::kFree;
  // What the instruction moves of arrays in main memory, all trips together. Copies are not in it.
  int64_t main_bytes = 0;
  friend bool operator==(const TickTime&, const TickTime&) = default;
};

// One entry for each tick, with preloads done before the start and copies in one queue. Errors are
// those of Simulate.
absl::StatusOr<std::vector<TickTime>> Timeline(const CostModel& cost_model, const Plan& plan);

}  // namespace mallocgame
