// The transfers between main and fast memory that are under way, served in the time that
// instructions leave to them. Work is counted in picoseconds of the whole channel. Private to the
// folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace mallocgame {

// One queue for both directions, first in, first out.
class CopyChannel {
 public:
  // Copies are numbered [0, copies).
  explicit CopyChannel(size_t copies) : pending_(copies, 0) {}

  // A copy may stand in the queue more than once: in a loop, once for each pass.
  void Enqueue(size_t copy, int64_t service_ps);
  // Serves for at most `idle_ps`; returns what is left of it once nothing is queued any more.
  int64_t Drain(int64_t idle_ps);
  // Serves until `copy`, and with it all that is queued before it, is done; returns the time that
  // this takes, 0 if it is not queued.
  int64_t WaitFor(size_t copy);

 private:
  struct Entry {
    size_t copy;
    int64_t left_ps;
  };

  // Serves the front of the queue until it is done or `limit_ps` is over; returns the time that it
  // took.
  int64_t Step(int64_t limit_ps);

  std::deque<Entry> queue_;
  std::vector<int32_t> pending_;  // for each copy: how often it is queued
};

}  // namespace mallocgame
