#include "mallocgame/simulator/copy_channel.h"

#include <algorithm>
#include <limits>

namespace mallocgame {
namespace {

constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max() / 4;

}  // namespace

void CopyChannel::Enqueue(size_t copy, int64_t service_ps) {
  if (service_ps <= 0) return;
  queue_.push_back({copy, service_ps});
  ++pending_[copy];
}

int64_t CopyChannel::Step(int64_t limit_ps) {
  Entry& front = queue_.front();
  const int64_t served_ps = std::min(front.left_ps, limit_ps);
  front.left_ps -= served_ps;
  if (front.left_ps == 0) {
    --pending_[front.copy];
    queue_.pop_front();
  }
  return served_ps;
}

int64_t CopyChannel::Drain(int64_t idle_ps) {
  idle_ps = std::min(idle_ps, kNoLimit);
  while (idle_ps > 0 && !queue_.empty()) idle_ps -= Step(idle_ps);
  return idle_ps;
}

int64_t CopyChannel::WaitFor(size_t copy) {
  int64_t waited_ps = 0;
  while (pending_[copy] > 0) waited_ps = std::min(waited_ps + Step(kNoLimit), kNoLimit);
  return waited_ps;
}

}  // namespace mallocgame
