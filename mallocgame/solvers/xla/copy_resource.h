// How much time XLA's allocator believes the copies of one direction have: every tick leaves its
// whole time with everything in main memory, copies are served first in, first out in the order of
// their begins, and each must be through by its end. Prefetches and write-backs have one each and
// do not know of each other (XLA reference 4.6).
#ifndef MALLOCGAME_SOLVERS_XLA_COPY_RESOURCE_H_
#define MALLOCGAME_SOLVERS_XLA_COPY_RESOURCE_H_

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "mallocgame/base/ids.h"

namespace mallocgame {

class CopyResource {
 public:
  using Key = std::pair<Tick, int64_t>;  // names a copy: its begin and a running number

  // `time_ps`: what each tick leaves. Sums that leave 62 bits are cut off there.
  explicit CopyResource(absl::Span<const int64_t> time_ps);

  // Would a copy served in ticks [begin, end) that takes `work_ps` be through by its end, and leave
  // all others so? Copies that begin at the same tick are served before it. A copy without work has
  // always room.
  bool HasRoom(Tick begin, Tick end, int64_t work_ps) const;
  // Whether it has room or not.
  Key Add(Tick begin, Tick end, int64_t work_ps);
  void Remove(const Key& key);

 private:
  struct Entry {
    Tick end;
    int64_t work_ps;
    int64_t before_ps;  // work of those ahead of it that is left at its begin
  };
  using Copies = std::map<Key, Entry>;

  int64_t Between(Tick begin, Tick end) const { return sum_[end] - sum_[begin]; }
  // Work left at `begin` of the copies before `next`.
  int64_t LeftAt(Tick begin, Copies::const_iterator next) const;
  // Sets right what the copies from `next` on find.
  void Update(Copies::iterator next);

  std::vector<int64_t> sum_;  // of the time before each tick
  Copies copies_;
  int64_t count_ = 0;
};

}  // namespace mallocgame

#endif  // MALLOCGAME_SOLVERS_XLA_COPY_RESOURCE_H_
