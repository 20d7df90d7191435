// The flattened schedule of a module: its control computations on one time axis (XLA reference 1.1,
// with a tick of its own before each loop).
#ifndef MALLOCGAME_HLO_SCHEDULE_H_
#define MALLOCGAME_HLO_SCHEDULE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "mallocgame/hlo/module.h"

namespace mallocgame::hlo {

// `default_trips` (> 0) is given to loops whose count isn't known. InvalidArgument: a control
// computation without a schedule or with two callers, a while or conditional of the wrong make,
// trip counts that multiply beyond kMaxTrips.
absl::StatusOr<Timeline> Flatten(const Module& module, int64_t default_trips);

inline constexpr int64_t kMaxTrips = 1'000'000'000;

}  // namespace mallocgame::hlo

#endif  // MALLOCGAME_HLO_SCHEDULE_H_
