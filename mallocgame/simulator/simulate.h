// What a plan costs: plays the schedule once. Each instruction takes its cost-model time for its
// placement; copies are served first in, first out, in the plan's order, with the main-memory time
// that instructions leave idle; at a copy's end tick the program waits for it. A loop body is
// played twice: the second pass is the steady state of all further trips.
//
// Differences from XLA's own runtime simulator, on purpose (XLA reference 3.5): docs/numbers.md
// lists them.
#ifndef MALLOCGAME_SIMULATOR_SIMULATE_H_
#define MALLOCGAME_SIMULATOR_SIMULATE_H_

#include "absl/status/statusor.h"
#include "mallocgame/plan/plan.h"
#include "mallocgame/program/cost_model.h"
#include "mallocgame/simulator/report.h"

namespace mallocgame {

enum class CopyDiscipline : uint8_t {
  kOneQueue,  // one first-in-first-out channel for both directions: the rule of the game
  // XLA's runtime simulator: a queue a direction, half the bandwidth each while both are busy
  kTwoQueues,
};

// `plan` must be well formed for the cost model's program and hardware (Validate's kMalformed); else InvalidArgument. A plan
// that breaks other rules is simulated as it stands.
absl::StatusOr<Report> Simulate(const CostModel& cost_model, const Plan& plan,
                                CopyDiscipline discipline = CopyDiscipline::kOneQueue);

}  // namespace mallocgame

#endif  // MALLOCGAME_SIMULATOR_SIMULATE_H_
