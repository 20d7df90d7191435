#include "mallocgame/solvers/solver.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "mallocgame/base/error.h"
#include "mallocgame/game/play_actions.h"
#include "mallocgame/game/position.h"

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

absl::StatusOr<SolveResult> JudgePlay(Play play) {
  MG_ASSIGN_OR_RETURN(const std::unique_ptr<Position> end, PlayActions(*play.game, play.actions));
  MG_ASSIGN_OR_RETURN(SolveResult result, JudgePlan(*end->PlannedGame(), end->ToPlan()));
  if (result.report.latency_ps != end->latency_ps()) {
    return absl::InternalError(absl::StrCat(
        "game and simulator disagree on a plan for '", play.game->program().name(),
        "': ", end->latency_ps(), " ps and ", result.report.latency_ps, " ps; please report"));
  }
  result.order = end->InstructionOrder();
  result.play = std::move(play);
  return result;
}

}  // namespace mallocgame
