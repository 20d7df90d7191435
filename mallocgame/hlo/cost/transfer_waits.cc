// Plays the schedule once, with one clock for the program and one for the channel.
#include "mallocgame/hlo/cost/transfer_waits.h"

#include <algorithm>

namespace mallocgame::hlo {

std::vector<int64_t> TransferWaits(absl::Span<const TimedTransfer> transfers, size_t ticks,
                                   const std::function<int64_t(Tick)>& least_ps) {
  const auto later = [](int64_t time, int64_t by) { return std::min(int64_t{1} << 60, time + by); };
  std::vector<int64_t> waits(ticks, 0);
  std::vector<int64_t> done(ticks, 0);  // by tick: when all transfers that it ends are over
  int64_t now = 0, channel_free = 0;
  size_t next = 0;
  for (Tick tick = 0; tick < static_cast<Tick>(ticks); ++tick) {
    for (; next < transfers.size() && transfers[next].begin == tick; ++next) {
      const TimedTransfer& transfer = transfers[next];
      channel_free = later(std::max(now, channel_free), transfer.ps);
      // What is begun and never ended is waited for at once.
      done[transfer.end] = std::max(done[transfer.end], channel_free);
    }
    waits[tick] = std::max<int64_t>(0, done[tick] - now);
    now = later(now, later(waits[tick], least_ps(tick)));
  }
  return waits;
}

}  // namespace mallocgame::hlo
