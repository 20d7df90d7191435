#include "mallocgame/solvers/lagrangian/levels.h"

#include <algorithm>

namespace mallocgame::lagrangian {

Levels::Levels(const Program& program)
    : level_of_(program.ticks(), 0), point_(program.ticks()), loop_ending_at_(program.ticks(), -1) {
  levels_.push_back({.begin = 0, .end = program.ticks()});
  std::vector<Loop> loops(program.loops().begin(), program.loops().end());
  std::sort(loops.begin(), loops.end(),
            [](const Loop& a, const Loop& b) { return a.entry < b.entry; });
  for (const Loop& loop : loops) {
    const Tick begin = loop.entry + 1;
    if (begin >= loop.exit || program.trips(begin) == 0) continue;
    Level level = {.begin = begin, .end = loop.exit, .parent = level_of_[loop.entry]};
    level.parent_trips = levels_[level.parent].trips;
    level.trips = level.parent_trips * loop.trips;
    level.passes = static_cast<int32_t>(std::min<int64_t>(2, loop.trips));
    const auto index = static_cast<int32_t>(levels_.size());
    std::fill(level_of_.begin() + begin, level_of_.begin() + loop.exit, index);
    loop_ending_at_[loop.exit] = index;
    levels_.push_back(level);
  }
  for (size_t i = 0; i < levels_.size(); ++i) {
    Level& level = levels_[i];
    level.first = positions_;
    for (Tick tick = level.begin; tick < level.end; ++tick) {
      if (level_of_[tick] == static_cast<int32_t>(i)) point_[tick] = positions_++;
    }
    level.last = positions_++;
  }
  for (Level& level : levels_) {
    if (level.parent >= 0) level.exit = point_[level.end];
  }
}

}  // namespace mallocgame::lagrangian
