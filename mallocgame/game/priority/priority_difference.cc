#include "mallocgame/game/priority/priority_difference.h"

#include <algorithm>

namespace mallocgame {
namespace {

constexpr Tick kTicksOfBlock = 4;  // ticks

struct Blocks {
  Tick first, end;
};
Blocks BlocksOf(const PlannedResidence& placed) {
  const Tick wanted = std::min(placed.begin, placed.latest_fetch);
  return {wanted / kTicksOfBlock, (placed.end - 1) / kTicksOfBlock + 1};
}

}  // namespace

PriorityDifference::PriorityDifference(const PriorityTables& tables)
    : tables_(&tables), in_one_(tables.runs.size()),
      residences_(tables.arrangement.program.ticks() / kTicksOfBlock + 1) {}

void PriorityDifference::Clear() {
  for (const int32_t run : toggled_) in_one_[run] = 0;
  toggled_.clear();
  open_in_one_ = 0;
  std::fill(residences_.begin(), residences_.end(), 0);
}

void PriorityDifference::Toggle(int32_t run) {
  in_one_[run] ^= 1;
  open_in_one_ += in_one_[run] != 0 ? 1 : -1;
  toggled_.push_back(run);
}

void PriorityDifference::Decide(int32_t run, bool split) {
  Toggle(run);
  if (!split) return;
  for (const int32_t part : tables_->runs[run].parts) {
    if (part >= 0) Toggle(part);
  }
}

void PriorityDifference::Count(const PlannedResidence& placed, int32_t by) {
  const auto [first, end] = BlocksOf(placed);
  for (Tick block = first; block < end; ++block) residences_[block] += by;
}

bool PriorityDifference::SameAround(const PlannedResidence& placed) const {
  const auto [first, end] = BlocksOf(placed);
  int32_t any = 0;
  for (Tick block = first; block < end; ++block) any |= residences_[block];
  return any == 0;
}

}  // namespace mallocgame
