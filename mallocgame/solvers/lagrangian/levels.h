// The time of a program as the Lagrangian dual sees it.
//
// A *level* is the ticks directly inside one loop, or inside none. Each of its ticks is a *point*,
// at which the contents of fast memory are looked at, before the instruction runs; the exit tick of
// a loop stands for the loop's end. Points cut the time of a level into *buckets*, in which copies
// are served. Levels stand one behind the other: `point` of a tick is the position of its point and
// of the bucket in front of it, point + 1 that of the bucket behind it, with the instruction's idle
// time. The last bucket of a level has no point.
#pragma once

#include <cstdint>
#include <vector>

#include "mallocgame/program/program.h"

namespace mallocgame::lagrangian {

struct Level {
  Tick begin = 0, end = 0;  // loops inside included
  int32_t parent = -1;
  int64_t trips = 1;         // runs of one of its ticks in one run of the program
  int64_t parent_trips = 1;  // those of the level around
  int32_t passes = 1;        // at most two passes serve copies from around the loop
  int32_t exit = -1;         // the position of the loop's end in the level around
  int32_t first = 0;         // its first position
  int32_t last = 0;          // the position of its last bucket
};

class Levels {
 public:
  explicit Levels(const Program& program);

  // Outer levels come first. Loops that never run are part of the level around them.
  const std::vector<Level>& levels() const { return levels_; }
  const Level& level_of(Tick tick) const { return levels_[level_of_[tick]]; }
  int32_t index_of(Tick tick) const { return level_of_[tick]; }
  int32_t positions() const { return positions_; }
  int32_t point(Tick tick) const { return point_[tick]; }
  // The level of the loop whose exit tick it is; -1 if it is none.
  int32_t loop_ending_at(Tick tick) const { return loop_ending_at_[tick]; }

 private:
  std::vector<Level> levels_;
  std::vector<int32_t> level_of_, point_, loop_ending_at_;
  int32_t positions_ = 0;
};

}  // namespace mallocgame::lagrangian
