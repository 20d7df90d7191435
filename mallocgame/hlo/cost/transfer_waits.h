// How long a program waits for transfers that go one after another, on a channel of their own:
// links between chips, or the way to the host. Private to the folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "absl/types/span.h"
#include "mallocgame/program/program.h"

namespace mallocgame::hlo {

// It may go on from tick `begin` on, and the instruction at `end` waits for it. The two are the
// same where one instruction does all of it.
struct TimedTransfer {
  Tick begin = 0, end = 0;
  int64_t ps = 0;
};

// By tick: how long the instruction waits in one run. `transfers` stand in the order of their
// begins. `least_ps` is the least time of a tick by itself: that much of a transfer is hidden. A
// loop counts as one trip, so what is hidden is never too much.
std::vector<int64_t> TransferWaits(absl::Span<const TimedTransfer> transfers, size_t ticks,
                                   const std::function<int64_t(Tick)>& least_ps);

}  // namespace mallocgame::hlo
