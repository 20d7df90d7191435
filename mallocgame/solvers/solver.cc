#include "mallocgame/solvers/solver.h"

#include <utility>

#include "mallocgame/base/error.h"

namespace mallocgame {

const char* SolveStatusName(SolveStatus status) {
  constexpr const char* kNames[] = {"heuristic", "optimal", "stopped"};
  return kNames[static_cast<size_t>(status)];
}

absl::StatusOr<SolveResult> JudgePlan(const Game& game, Plan plan) {
  MG_ASSIGN_OR_RETURN(const PlanCost cost, CostOf(game, plan));
  SolveResult result;
  result.report = cost.report;
  result.others = cost.others;
  result.plan = std::move(plan);
  result.evaluations = 1;
  return result;
}

}  // namespace mallocgame
