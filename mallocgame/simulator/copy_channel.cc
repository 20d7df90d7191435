// Both disciplines have one stepping rule: each step serves the front of every busy queue with an
// equal share of the channel.
#include "mallocgame/simulator/copy_channel.h"

#include <algorithm>
#include <limits>

namespace mallocgame {
namespace {

constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max() / 4;

}  // namespace

CopyChannel::CopyChannel(CopyDiscipline discipline, size_t copies)
    : discipline_(discipline), pending_(copies, 0) {}

void CopyChannel::Enqueue(size_t copy, CopyKind direction, int64_t service_ps) {
  if (service_ps <= 0) return;
  const bool second =
      discipline_ == CopyDiscipline::kTwoQueues && direction == CopyKind::kWriteBack;
  queues_[second ? 1 : 0].push_back({copy, direction, 2 * service_ps});
  ++pending_[copy];
}

int64_t CopyChannel::Step(int64_t limit_ps) {
  int64_t busy = 0, served = std::numeric_limits<int64_t>::max();
  for (const Queue& queue : queues_) {
    if (queue.empty()) continue;
    ++busy;
    served = std::min(served, queue.front().left);
  }
  if (busy == 0) return 0;
  // In a picosecond the channel serves two half picoseconds of work: both of one queue, or one of
  // each.
  const int64_t halves_per_ps = 2 / busy;
  served = std::min(served, limit_ps * halves_per_ps);
  for (Queue& queue : queues_) {
    if (queue.empty()) continue;
    Entry& front = queue.front();
    front.left -= served;
    if (front.left == 0) {
      --pending_[front.copy];
      queue.pop_front();
    }
  }
  return (served + halves_per_ps - 1) / halves_per_ps;
}

int64_t CopyChannel::Drain(int64_t idle_ps) {
  idle_ps = std::min(idle_ps, kNoLimit);
  while (idle_ps > 0 && !(queues_[0].empty() && queues_[1].empty())) idle_ps -= Step(idle_ps);
  return std::max<int64_t>(idle_ps, 0);
}

int64_t CopyChannel::WaitFor(size_t copy) {
  int64_t waited = 0;
  while (pending_[copy] > 0) waited = std::min(waited + Step(kNoLimit), kNoLimit);
  return waited;
}

int64_t CopyChannel::QueuedPs(CopyKind direction) const {
  int64_t halves = 0;
  for (const Queue& queue : queues_) {
    for (const Entry& entry : queue) {
      if (entry.direction == direction) halves += entry.left;
    }
  }
  return (halves + 1) / 2;
}

}  // namespace mallocgame
