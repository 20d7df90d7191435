#include "mallocgame/solvers/solver.h"

#include <utility>

#include "mallocgame/base/error.h"
#include "mallocgame/simulator/simulate.h"

namespace mallocgame {

const char* SolveStatusName(SolveStatus status) {
  constexpr const char* kNames[] = {"heuristic", "optimal", "stopped"};
  return kNames[static_cast<size_t>(status)];
}

double LatencyWithPreloads(const Report& report) {
  constexpr double kColdShare = 0.005;
  return static_cast<double>(report.latency_ps) +
         kColdShare * static_cast<double>(report.latency_cold_ps - report.latency_ps);
}

absl::StatusOr<SolveResult> JudgePlan(const Game& game, Plan plan) {
  SolveResult result;
  MG_ASSIGN_OR_RETURN(result.report, Simulate(game.cost_model(), plan));
  result.plan = std::move(plan);
  result.evaluations = 1;
  return result;
}

}  // namespace mallocgame
