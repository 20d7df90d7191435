#include "mallocgame/game/priority/gaps.h"

#include <algorithm>
#include <iterator>

namespace mallocgame {
namespace {

// The first gap that goes on above an offset.
template <class List>
auto FirstAbove(List& gaps, int64_t offset) {
  return std::partition_point(gaps.begin(), gaps.end(),
                              [offset](const auto& gap) { return gap.second <= offset; });
}

}  // namespace

void Subtract(Gaps& gaps, int64_t from, int64_t top, int64_t shortest) {
  if (gaps.empty() || top <= gaps.front().first || gaps.back().second <= from) return;
  auto first = FirstAbove(gaps, from);
  auto last = std::find_if(first, gaps.end(), [top](const auto& gap) { return gap.first >= top; });
  if (first == last) return;
  const std::pair below(first->first, from), above(top, std::prev(last)->second);
  const bool keeps_above = above.second - above.first >= shortest;
  if (below.second - below.first >= shortest) {
    *first++ = below;
    if (keeps_above && first == last) {
      gaps.insert(first, above);
      return;
    }
  }
  if (keeps_above) *--last = above;
  gaps.erase(first, last);
}

void Intersect(Gaps& gaps, const Gaps& with, int64_t shortest) {
  static thread_local Gaps common;
  common.clear();
  auto other = with.begin();
  for (const auto& [from, top] : gaps) {
    while (other != with.end() && other->second <= from) ++other;
    for (auto at = other; at != with.end() && at->first < top; ++at) {
      const std::pair both(std::max(from, at->first), std::min(top, at->second));
      if (both.second - both.first >= shortest) common.push_back(both);
    }
  }
  gaps.assign(common.begin(), common.end());
}

bool Contain(const Gaps& gaps, const Gaps& part) {
  return std::all_of(part.begin(), part.end(), [&gaps](const auto& of) {
    const auto first = FirstAbove(gaps, of.first);
    return first != gaps.end() && first->first <= of.first && of.second <= first->second;
  });
}

}  // namespace mallocgame
