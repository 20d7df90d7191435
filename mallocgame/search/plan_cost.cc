#include "mallocgame/search/plan_cost.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "mallocgame/base/error.h"
#include "mallocgame/program/calibrate.h"
#include "mallocgame/simulator/simulate.h"

namespace mallocgame {
namespace {

double WithPreloads(const Report& report) {
  constexpr double kColdShare = 0.005;
  return static_cast<double>(report.latency_ps) +
         kColdShare * static_cast<double>(report.latency_cold_ps - report.latency_ps);
}

}  // namespace

absl::Status CheckOtherPrices(const Program& program, const Hardware& hardware) {
  const BothPrices* const both = program.both();
  if (both == nullptr) return absl::OkStatus();
  MG_ASSIGN_OR_RETURN(const Hardware others, CalibrateHardware(hardware, both->law));
  if (RunFits(CostModel(both->other, others))) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("program '", program.name(), "' takes days at calibrated prices"));
}

absl::StatusOr<std::shared_ptr<const Program>> AtBothPrices(
    const std::shared_ptr<const Program>& program, const Hardware& hardware, const PriceLaw& law,
    const Plan* plan, double lean) {
  if (!(lean >= -1 && lean <= 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("lean: found ", lean, ", allowed: a number from -1 to 1"));
  }
  MG_ASSIGN_OR_RETURN(Calibrated other, CalibratePrices(*program, hardware, law));
  Plan own = plan != nullptr ? *plan : AllMainPlan(*program, hardware);
  MG_ASSIGN_OR_RETURN(const Report report, Simulate(CostModel(program, hardware), own));
  own.program_fingerprint = other.program->fingerprint();
  MG_ASSIGN_OR_RETURN(const Report others, Simulate(CostModel(other.program, other.hardware), own));
  return Program::WithBoth(*program, {.other = std::move(other.program),
                                      .law = law,
                                      .own_reference_ps = std::max<int64_t>(1, report.latency_ps),
                                      .other_reference_ps = std::max<int64_t>(1, others.latency_ps),
                                      .lean = lean});
}

absl::StatusOr<PlanCost> CostOf(const Game& game, const Plan& plan) {
  PlanCost cost;
  MG_ASSIGN_OR_RETURN(cost.report, Simulate(game.cost_model(), plan));
  const BothPrices* const both = game.program().both();
  if (both == nullptr) return cost;
  MG_ASSIGN_OR_RETURN(const Hardware hardware, CalibrateHardware(game.hardware(), both->law));
  Plan others = plan;
  others.program_fingerprint = both->other->fingerprint();
  MG_ASSIGN_OR_RETURN(cost.others, Simulate(CostModel(both->other, hardware), others));
  return cost;
}

int64_t ValueOf(const Program& program, const PlanCost& cost) {
  if (!cost.others.has_value()) return cost.report.latency_ps;
  return static_cast<int64_t>(program.both()->Value(static_cast<double>(cost.report.latency_ps),
                                                    static_cast<double>(cost.others->latency_ps)));
}

double ValueWithPreloads(const Program& program, const PlanCost& cost) {
  const double own = WithPreloads(cost.report);
  return cost.others.has_value() ? program.both()->Value(own, WithPreloads(*cost.others)) : own;
}

}  // namespace mallocgame
