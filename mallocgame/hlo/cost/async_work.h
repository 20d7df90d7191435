// Work that runs beside the program: what an async-start wraps, and copies within main memory.
// Private to the folder.
#pragma once

#include <cstdint>
#include <vector>

#include "mallocgame/hlo/cost/cost_analysis.h"
#include "mallocgame/hlo/module/module.h"
#include "mallocgame/hlo/module/schedule.h"

namespace mallocgame::hlo {

// It may go on from tick `begin` on, and the instruction at `end` waits for it. The two are the
// same where nothing in the computation ends it.
struct AsyncWork {
  Tick begin = 0, end = 0;
  int64_t bytes = 0;  // that it reads and writes, all of them in main memory
  Operations operations;
};

// What each async-start and copy-start of the schedule begins, and each *-start of a collective, in
// the order of their begins. Computations that run on the host are left out.
std::vector<AsyncWork> AsyncWorkOf(const Module& module, const Schedule& schedule,
                                   const CostAnalysis& analysis);

}  // namespace mallocgame::hlo
