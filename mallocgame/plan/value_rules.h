// The part of Validate that follows each buffer's value through time: where the newest one is, and
// whether every access, prefetch and eviction finds it there. Private to the folder.
#pragma once

#include "mallocgame/plan/plan.h"
#include "mallocgame/plan/validate.h"
#include "mallocgame/program/program.h"

namespace mallocgame {

// The plan must keep all rules that do not follow values (validate.cc). Takes (accesses + copies) *
// log(accesses + copies) time, doubled by each loop around them.
Verdict CheckValues(const Program& program, const Plan& plan);

}  // namespace mallocgame
