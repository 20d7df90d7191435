// A queue of work: what is left of it at the start of a copy follows from what was left at the
// start of the copy before.
#include "mallocgame/solvers/xla/copy_resource.h"

#include <algorithm>
#include <iterator>
#include <limits>

namespace mallocgame {
namespace {

constexpr int64_t kMost = int64_t{1} << 61;

int64_t Added(int64_t a, int64_t b) { return std::min(kMost, a + b); }

}  // namespace

CopyResource::CopyResource(absl::Span<const int64_t> time_ps) : sum_(time_ps.size() + 1, 0) {
  for (size_t t = 0; t < time_ps.size(); ++t)
    sum_[t + 1] = Added(sum_[t], std::clamp(time_ps[t], int64_t{0}, kMost));
}

int64_t CopyResource::LeftAt(Tick begin, Copies::const_iterator next) const {
  if (next == copies_.begin()) return 0;
  const auto& [key, last] = *std::prev(next);
  return std::max<int64_t>(0, Added(last.before_ps, last.work_ps) - Between(key.first, begin));
}

bool CopyResource::HasRoom(Tick begin, Tick end, int64_t work_ps) const {
  if (work_ps <= 0) return true;
  auto next = copies_.lower_bound({begin, std::numeric_limits<int64_t>::max()});
  Tick at = begin;
  int64_t left = Added(LeftAt(begin, next), std::min(work_ps, kMost));
  if (left > Between(begin, end)) return false;
  for (; next != copies_.end(); ++next) {
    const auto& [key, copy] = *next;
    const int64_t before = std::max<int64_t>(0, left - Between(at, key.first));
    if (before <= copy.before_ps) return true;
    left = Added(before, copy.work_ps);
    if (left > Between(key.first, copy.end)) return false;
    at = key.first;
  }
  return true;
}

CopyResource::Key CopyResource::Add(Tick begin, Tick end, int64_t work_ps) {
  const Key key(begin, count_++);
  const auto added =
      copies_.emplace(key, Entry{end, std::clamp(work_ps, int64_t{0}, kMost), 0}).first;
  added->second.before_ps = LeftAt(begin, added);
  Update(std::next(added));
  return key;
}

void CopyResource::Remove(const Key& key) {
  const auto found = copies_.find(key);
  if (found != copies_.end()) Update(copies_.erase(found));
}

void CopyResource::Update(Copies::iterator next) {
  for (; next != copies_.end(); ++next) {
    const int64_t before = LeftAt(next->first.first, next);
    if (before == next->second.before_ps) return;
    next->second.before_ps = before;
  }
}

}  // namespace mallocgame
