#include "mallocgame/schedule/loop_homes.h"

#include <algorithm>

namespace mallocgame {

// The innermost region around it that is a loop's condition or body, or the entry: only what runs
// again keeps bytes for longer.
int32_t LoopHomes::LoopRegionOf(int32_t region) const {
  while (region > 0 && regions_[region].loop < 0) region = regions_[region].parent;
  return region;
}

void LoopHomes::Add(int32_t value, int32_t region) {
  int32_t& home = homes_[value];
  region = LoopRegionOf(region);
  if (home == kNowhere) home = region;
  // Regions are numbered as they begin, so the later one can't hold the other.
  while (home != region) {
    (home > region ? home : region) = LoopRegionOf(regions_[std::max(home, region)].parent);
  }
}

std::pair<Tick, Tick> LoopHomes::Widened(int32_t value, Tick tick, int32_t region) const {
  std::pair<Tick, Tick> use = {tick, tick + 1};
  for (int32_t r = LoopRegionOf(region); r != homes_[value]; r = LoopRegionOf(regions_[r].parent)) {
    const Loop& loop = loops_[regions_[r].loop];
    use = {loop.entry, loop.exit + 1};
  }
  return use;
}

}  // namespace mallocgame
