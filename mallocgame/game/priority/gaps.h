// The stretches of offsets that are free, each as [first, second), in order; no two touch.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace mallocgame {

using Gaps = std::vector<std::pair<int64_t, int64_t>>;

// Whether some of the bytes [from, top), or all of `part`, lie in the gaps.
inline bool Overlap(const Gaps& gaps, int64_t from, int64_t top) {
  if (gaps.empty() || top <= gaps.front().first || gaps.back().second <= from) return false;
  for (const auto& gap : gaps) {
    if (from < gap.second) return gap.first < top;
  }
  return false;
}
bool Contain(const Gaps& gaps, const Gaps& part);

// Takes the bytes [from, top) out of the gaps. What is left of a gap and shorter than `shortest`,
// which is above 0, goes too.
void Subtract(Gaps& gaps, int64_t from, int64_t top, int64_t shortest);
// Leaves what both have, without stretches shorter than `shortest`.
void Intersect(Gaps& gaps, const Gaps& with, int64_t shortest);

}  // namespace mallocgame
