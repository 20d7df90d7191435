// The flattened schedule of a module: its control computations on one time axis (XLA reference
// 1.1), with a tick of its own before each loop. Private to the folder.
#ifndef MALLOCGAME_HLO_SCHEDULE_H_
#define MALLOCGAME_HLO_SCHEDULE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "mallocgame/hlo/module.h"
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
  int64_t unknown_trip_counts = 0;  // loops that were given `default_trips`
};

inline constexpr int64_t kMaxTrips = 1'000'000'000;

// Gives `default_trips` (1 to kMaxTrips) to loops whose trip count is not known. InvalidArgument: a
// control computation without a schedule or with two callers, a while with other than one operand
// and two computations of one parameter, or nested trip counts that multiply beyond kMaxTrips.
absl::StatusOr<Schedule> Flatten(const Module& module, int64_t default_trips);

}  // namespace mallocgame::hlo

#endif  // MALLOCGAME_HLO_SCHEDULE_H_
