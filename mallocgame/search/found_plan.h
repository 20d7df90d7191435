// A plan that a search has found.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "mallocgame/plan/plan.h"
#include "mallocgame/search/intent.h"

namespace mallocgame {

struct FoundPlan {
  Plan plan;
  // Or its value by two sets of prices (plan_cost.h); at first there is no plan.
  int64_t latency_ps = std::numeric_limits<int64_t>::max();
  int64_t evaluations = 0;  // that the search took
  // What the priority game decided that led to it, in its order; empty: none did.
  Intent decided = {};
  size_t start = 0;  // of several plans that a search began with: the one that led to it
};

}  // namespace mallocgame
