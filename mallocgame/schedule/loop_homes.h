// Where values stay with respect to loops. Private to the core.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "mallocgame/program/program.h"

namespace mallocgame {

// The home of a value is the innermost condition or body of a loop, or the entry, that it never
// leaves. What a loop uses of a value whose home is outside of it, it uses all the time, because it
// runs again. Regions and loops are those of a program, and outlive this.
class LoopHomes {
 public:
  LoopHomes(absl::Span<const Region> regions, absl::Span<const Loop> loops, size_t values)
      : regions_(regions), loops_(loops), homes_(values, kNowhere) {}

  // `value` is used in a region. All uses are added before the first is widened.
  void Add(int32_t value, int32_t region);

  // The ticks [begin, end) of a use: its own, or those of the outermost loop around it that the
  // value comes from outside of, with entry and exit.
  std::pair<Tick, Tick> Widened(int32_t value, Tick tick, int32_t region) const;

 private:
  static constexpr int32_t kNowhere = -2;
  int32_t LoopRegionOf(int32_t region) const;

  absl::Span<const Region> regions_;
  absl::Span<const Loop> loops_;
  std::vector<int32_t> homes_;  // by value
};

}  // namespace mallocgame
