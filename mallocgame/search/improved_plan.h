// What a search makes of a plan that it is given.
#ifndef MALLOCGAME_SEARCH_IMPROVED_PLAN_H_
#define MALLOCGAME_SEARCH_IMPROVED_PLAN_H_

#include <cstdint>

#include "mallocgame/plan/plan.h"

namespace mallocgame {

struct ImprovedPlan {
  Plan plan;  // valid, never slower than the one given if that is valid
  int64_t latency_ps = 0;
  int64_t evaluations = 0;
};

}  // namespace mallocgame

#endif  // MALLOCGAME_SEARCH_IMPROVED_PLAN_H_
