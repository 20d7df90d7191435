#include "agents/muzero/best_plan.h"

#include <utility>

#include "agents/training/bytes.h"
#include "mallocgame/base/error.h"
#include "mallocgame/plan/validate.h"
#include "mallocgame/replay/plan_file.h"
#include "mallocgame/simulator/simulate.h"

namespace mallocgame::muzero {

absl::StatusOr<Report> BestPlan::Judge() const { return Simulate(game->cost_model(), plan); }

void Write(const BestPlan& best, const Game& game, std::string& out) {
  training::WriteBytes(best.order.empty() ? PlanToJson(game.program(), best.plan)
                                          : OrderedPlanToJson(game.program(), best.order,
                                                              best.game->program(), best.plan),
                       out);
  training::WriteBytes(best.found_by, out);
  training::WriteBytes(best.play_found_by, out);
}

absl::StatusOr<BestPlan> ReadBestPlan(absl::string_view& in, const Game& game) {
  BestPlan best;
  absl::string_view plan;
  MG_RETURN_IF_ERROR(training::ReadBytes(in, plan));
  MG_RETURN_IF_ERROR(training::ReadBytes(in, best.found_by));
  MG_RETURN_IF_ERROR(training::ReadBytes(in, best.play_found_by));
  MG_ASSIGN_OR_RETURN(OrderedPlan read, OrderedPlanFromJson(game.shared_program(), plan));
  if (!Validate(*read.program, game.hardware(), read.plan).ok() ||
      (!read.order.empty() && !game.options().decides_order()))
    return training::CutShort();
  best.game = game.PlannedAt(read.order);
  best.order = std::move(read.order);
  best.plan = std::move(read.plan);
  MG_ASSIGN_OR_RETURN(const Report report, best.Judge());
  best.latency_ps = report.latency_ps;
  return best;
}

}  // namespace mallocgame::muzero
