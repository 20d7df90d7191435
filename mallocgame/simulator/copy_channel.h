// The transfers between main and fast memory that are on their way, served in the time that
// instructions leave to them. Private to the folder. Work is counted in picoseconds of the whole
// channel.
#ifndef MALLOCGAME_SIMULATOR_COPY_CHANNEL_H_
#define MALLOCGAME_SIMULATOR_COPY_CHANNEL_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "mallocgame/plan/plan.h"
#include "mallocgame/simulator/simulate.h"

namespace mallocgame {

// kOneQueue: first in, first out, whatever the direction; exact in whole picoseconds. kTwoQueues: a
// queue a direction, each first in, first out. While both hold copies, each is served at half
// speed; when one runs empty the other has the whole channel at once. Times that come out at half a
// picosecond are rounded up.
class CopyChannel {
 public:
  // Copies are numbered [0, copies).
  CopyChannel(CopyDiscipline discipline, size_t copies);

  // A copy may stand in the queue more than once: in a loop, once a pass.
  void Enqueue(size_t copy, CopyKind direction, int64_t service_ps);
  // Serves for at most `idle_ps`; returns what is left of it when nothing is queued any more.
  int64_t Drain(int64_t idle_ps);
  // Serves until `copy` is through, and with it all that is queued before it; returns the time that
  // takes. 0 if it isn't queued.
  int64_t WaitFor(size_t copy);

  // Work left in a direction's queue.
  int64_t QueuedPs(CopyKind direction) const;

 private:
  struct Entry {
    size_t copy;
    CopyKind direction;
    int64_t left;  // in half picoseconds
  };
  using Queue = std::deque<Entry>;

  // Serves the fronts, all the same amount, until one is through or `limit_ps` is over; returns the
  // time it took.
  int64_t Step(int64_t limit_ps);

  CopyDiscipline discipline_;
  std::array<Queue, 2> queues_;   // the second is used with kTwoQueues only, for write-backs
  std::vector<int32_t> pending_;  // one a copy: how often it is queued
};

}  // namespace mallocgame

#endif  // MALLOCGAME_SIMULATOR_COPY_CHANNEL_H_
