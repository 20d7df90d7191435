// Orders by the rules of the field: a list scheduler takes one ready unit after another.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"
#include "mallocgame/program/cost_model.h"
#include "mallocgame/schedule/units.h"

namespace mallocgame {

// Which of the ready units comes next. Ties go to the one that stands first in the program.
enum class ListRule : uint8_t {
  // The one that has become ready last: what has begun is carried on (XLA's DFSMemoryScheduler).
  kDepthFirst,
  // The one that has become ready first (XLA's BFScheduler).
  kBreadthFirst,
  // The one that frees most main memory, less what its results take (XLA's ListMemoryScheduler).
  kLeastMemory,
  // The one that keeps the channel busy and hidden, as XLA's LatencyHidingScheduler does with
  // collectives: of those whose parameters the time left by instructions so far could have fetched,
  // the one with most to fetch; if there is none, the one that fetches least and leaves most time.
  kLatencyHiding,
};
inline constexpr int kListRules = 4;
const char* ListRuleName(ListRule rule);  // "depth-first" ...
std::optional<ListRule> ListRuleOf(absl::string_view name);

// `cost_model` must be of the units' program.
UnitOrder ListSchedule(const ScheduleUnits& units, const CostModel& cost_model, ListRule rule);

}  // namespace mallocgame
