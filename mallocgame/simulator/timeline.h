// Where the time of a plan goes, tick by tick: what Simulate adds up, before it is added up.
#ifndef MALLOCGAME_SIMULATOR_TIMELINE_H_
#define MALLOCGAME_SIMULATOR_TIMELINE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "mallocgame/plan/plan.h"
#include "mallocgame/program/cost_model.h"

namespace mallocgame {

// Picoseconds of one run of the program: all trips of the tick together. Over all ticks compute_ps
// and stall_ps add up to those of the Report.
struct TickTime {
  int64_t compute_ps = 0;  // the instruction runs
  int64_t stall_ps = 0;    // before it: waiting for copies
  // share of compute_ps in which it leaves the main-memory channel to copies
  int64_t idle_ps = 0;
  // share of idle_ps in which the channel served some; of a loop's trips the second stands for all
  // further ones
  int64_t copied_ps = 0;
  PriceSource source = PriceSource::kFree;
  friend bool operator==(const TickTime&, const TickTime&) = default;
};

// One a tick, with preloads done before the start and copies in one queue. Errors are those of
// Simulate.
absl::StatusOr<std::vector<TickTime>> Timeline(const CostModel& cost_model, const Plan& plan);

}  // namespace mallocgame

#endif  // MALLOCGAME_SIMULATOR_TIMELINE_H_
