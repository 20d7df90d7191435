// Where two priority games of one program differ, so that one that is played beside the other can
// take over what is the same.
#pragma once

#include <cstdint>
#include <vector>

#include "mallocgame/game/priority/priority_tables.h"

namespace mallocgame {

class PriorityDifference {
 public:
  explicit PriorityDifference(const PriorityTables& tables);

  // Both games stand at the same position.
  void Clear();
  // One of the games decided about a run, and perhaps split it.
  void Decide(int32_t run, bool split);
  // One of the games has a residence that the other one has not. RemoveResidence takes that back.
  void AddResidence(const PlannedResidence& placed) { Count(placed, 1); }
  void RemoveResidence(const PlannedResidence& placed) { Count(placed, -1); }

  // Whether the same runs are open in both games.
  bool SameOpen() const { return open_in_one_ == 0; }
  // Whether both games have the same residences at the ticks that `placed` takes, or would like to
  // have for its prefetch. Then both would place it alike. False is no proof of a difference.
  bool SameAround(const PlannedResidence& placed) const;

 private:
  void Toggle(int32_t run);
  void Count(const PlannedResidence& placed, int32_t by);

  const PriorityTables* tables_;
  std::vector<uint8_t> in_one_;   // for each run: it is open in one game only
  std::vector<int32_t> toggled_;  // runs of which in_one_ was changed
  int32_t open_in_one_ = 0;
  // For each block of ticks: the residences that one game has there and the other one has not.
  std::vector<int32_t> residences_;
};

}  // namespace mallocgame
