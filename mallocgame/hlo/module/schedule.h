// The flattened schedule of a module: its control computations on one time axis (XLA reference
// 1.1), with a tick of its own before each loop. Private to the folder.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "mallocgame/hlo/module/module.h"
#include "mallocgame/program/program.h"

namespace mallocgame::hlo {

struct Schedule {
  struct Entry {
    // index into Module::instructions(); a kLoopEntry has the index of its while
    int32_t instruction = 0;
    InstructionKind kind = InstructionKind::kOrdinary;
    int32_t region = 0;
    int32_t logical_time = 0;
  };
  std::vector<Entry> ticks;  // ticks[t] becomes Program::instruction(t)
  std::vector<Region> regions;
  std::vector<Loop> loops;
  // by instruction: its tick (the kLoopExit of a while), or kNone if it is not on the time axis
  std::vector<Tick> tick_of;
  // computations on the time axis that the module gives no order for
  int64_t unscheduled_computations = 0;
};

struct FlattenOptions {
  int64_t default_trips = 1;             // of loops whose trip count can't be read; 1 to kMaxTrips
  std::map<std::string, int64_t> trips;  // by the name of the while; 0 to kMaxTrips; these win
  bool requires_schedule = false;        // else the order of the module's instructions is one too
};

// InvalidArgument: an option out of range, a name in `trips` that is no loop's, a while with other
// than one operand and two computations of one parameter, of which the condition gives one array,
// or a computation without the schedule
// that is required.
absl::StatusOr<Schedule> Flatten(const Module& module, const FlattenOptions& options = {});

// Sets how often regions run by the trips of their loops, at most `most` (1 or more) each. A loop
// that would run more often gets the trips that `most` leaves it, and they are no longer known.
void SetTrips(int64_t most, std::vector<Region>& regions, std::vector<Loop>& loops);

}  // namespace mallocgame::hlo
