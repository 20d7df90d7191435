// The part of Validate that follows each buffer's value through time: where is the newest one, and
// does every access, prefetch and write-back find it there? Private to the folder.
#ifndef MALLOCGAME_PLAN_VALUE_RULES_H_
#define MALLOCGAME_PLAN_VALUE_RULES_H_

#include "mallocgame/plan/plan.h"
#include "mallocgame/plan/validate.h"
#include "mallocgame/program/program.h"

namespace mallocgame {

// The plan must keep all rules that look at no values (validate.cc). Time: (accesses + copies) x
// log, times two for each loop around.
Verdict CheckValues(const Program& program, const Plan& plan);

}  // namespace mallocgame

#endif  // MALLOCGAME_PLAN_VALUE_RULES_H_
