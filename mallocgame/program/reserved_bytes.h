// The bytes of fast memory that instructions reserve for themselves, over ranges of ticks.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "mallocgame/base/ids.h"
#include "mallocgame/program/program.h"

namespace mallocgame {

// Answers from a table of the ranges whose length is a power of two.
class ReservedBytes {
 public:
  explicit ReservedBytes(const Program& program);
  explicit ReservedBytes(std::vector<int64_t> by_tick);

  // For each tick; empty if nothing is reserved at any.
  absl::Span<const int64_t> by_tick() const {
    return rows_.empty() ? absl::Span<const int64_t>() : absl::Span<const int64_t>(rows_[0]);
  }

  // The most over the ticks [begin, end), in constant time; 0 if there are none.
  int64_t Most(Tick begin, Tick end) const {
    if (rows_.empty() || begin >= end) return 0;
    const size_t k = std::bit_width(static_cast<uint32_t>(end - begin)) - 1;
    const std::vector<int64_t>& row = rows_[k];
    return std::max(row[begin], row[end - (Tick{1} << k)]);
  }

  // The first of the ticks [begin, end) that reserves more than `bytes` >= 0, in logarithmic time;
  // `end` if none does.
  Tick FirstAbove(Tick begin, Tick end, int64_t bytes) const;

 private:
  // Row k holds, for each tick, the most over 2^k ticks from there on. There are no rows if nothing
  // is reserved.
  std::vector<std::vector<int64_t>> rows_;
};

}  // namespace mallocgame
