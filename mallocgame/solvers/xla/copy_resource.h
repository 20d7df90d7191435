// How much time XLA's allocator believes that the copies of one direction have. Every tick gives
// them all of the time that it takes with everything in main memory. Copies are served first in,
// first out in the order of their begins, and each must be through by its end. Prefetches and
// evictions have a resource each, and these do not know of each other (XLA reference 4.6).
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "mallocgame/base/ids.h"

namespace mallocgame {

class CopyResource {
 public:
  using Key = std::pair<Tick, int64_t>;  // a copy, by its start and a running number

  // `time_ps` is what each tick gives to copies. Sums stop at 2^61.
  explicit CopyResource(absl::Span<const int64_t> time_ps);

  // Says whether a copy that takes `work_ps` and is served in ticks [begin, end) would be through
  // by its end, and all others by theirs. Copies that begin at the same tick are served before it.
  // There is always room for a copy without work.
  bool HasRoom(Tick begin, Tick end, int64_t work_ps) const;
  // Adds a copy, whether there is room for it or not.
  Key Add(Tick begin, Tick end, int64_t work_ps);
  void Remove(const Key& key);

 private:
  struct Entry {
    Tick end;
    int64_t work_ps;
    int64_t before_ps;  // the work of the copies ahead of it that is left at its start
  };
  using Copies = std::map<Key, Entry>;

  int64_t Between(Tick begin, Tick end) const { return sum_[end] - sum_[begin]; }
  // The work of the copies before `next` that is left at `begin`.
  int64_t LeftAt(Tick begin, Copies::const_iterator next) const;
  // Brings before_ps of the copies from `next` on up to date.
  void Update(Copies::iterator next);

  std::vector<int64_t> sum_;  // the time before each tick
  Copies copies_;
  int64_t count_ = 0;
};

}  // namespace mallocgame
