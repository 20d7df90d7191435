// The transfers between main and fast memory that are under way, served in the time that
// instructions leave to them. Work is counted in picoseconds of the whole channel. Private to the
// folder.
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

// Queues are first in, first out. With kOneQueue there is one for both directions, exact in whole
// picoseconds. With kTwoQueues each direction has its own: while both hold copies, each is served
// at half speed; when one is empty, the other has the whole channel at once. Times that come out at
// half a picosecond are rounded up.
class CopyChannel {
 public:
  // Copies are numbered [0, copies).
  CopyChannel(CopyDiscipline discipline, size_t copies);

  // A copy may stand in the queue more than once: in a loop, once for each pass.
  void Enqueue(size_t copy, CopyKind direction, int64_t service_ps);
  // Serves for at most `idle_ps`; returns what is left of it once nothing is queued any more.
  int64_t Drain(int64_t idle_ps);
  // Serves until `copy`, and with it all that is queued before it, is done; returns the time that
  // this takes, 0 if it is not queued.
  int64_t WaitFor(size_t copy);

  // The work left in a direction's queue.
  int64_t QueuedPs(CopyKind direction) const;

 private:
  struct Entry {
    size_t copy;
    CopyKind direction;
    int64_t left;  // in half picoseconds
  };
  using Queue = std::deque<Entry>;

  // Serves the fronts of all queues by the same amount until one copy is done or `limit_ps` is
  // over; returns the time that it took.
  int64_t Step(int64_t limit_ps);

  CopyDiscipline discipline_;
  std::array<Queue, 2> queues_;   // the second is used with kTwoQueues only, for write-backs
  std::vector<int32_t> pending_;  // for each copy: how often it is queued
};

}  // namespace mallocgame

#endif  // MALLOCGAME_SIMULATOR_COPY_CHANNEL_H_
