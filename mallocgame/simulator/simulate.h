// Simulate says what a plan costs: it plays the schedule once. Each instruction takes the time that
// the cost model gives for its placement. Copies are served in the time in which instructions leave
// main memory idle, first in, first out, in the plan's order. At a copy's end tick the program
// waits for it. A loop body is played twice: the second pass is the steady state of all further
// trips.
//
// docs/numbers.md lists where this differs from XLA's own runtime simulator (XLA reference 3.5) on
// purpose.
#pragma once

#include "absl/status/statusor.h"
#include "mallocgame/plan/plan.h"
#include "mallocgame/program/cost_model.h"
#include "mallocgame/simulator/report.h"

namespace mallocgame {

// `plan` must be well formed for the cost model's program and hardware (CheckWellFormed); else
// InvalidArgument. A plan that breaks other rules is simulated as it stands. OutOfRange: its totals
// don't fit 64 bits.
absl::StatusOr<Report> Simulate(const CostModel& cost_model, const Plan& plan);

}  // namespace mallocgame
