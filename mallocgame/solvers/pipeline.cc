#include "mallocgame/solvers/pipeline.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "mallocgame/base/error.h"
#include "mallocgame/search/anneal_plan.h"

namespace mallocgame {
namespace {

constexpr double kLeastTrials = 32;

}  // namespace

absl::StatusOr<bool> KeepBetter(const Game& game, FoundPlan improved, absl::string_view how,
                                SolveResult& result) {
  result.evaluations += improved.evaluations;
  if (improved.latency_ps >= ValueOf(game.program(), CostOf(result))) return false;
  MG_ASSIGN_OR_RETURN(const PlanCost cost, CostOf(game, improved.plan));
  result.report = cost.report;
  result.others = cost.others;
  result.plan = std::move(improved.plan);
  result.play = {};
  const std::string suffix = absl::StrCat(", ", how);
  if (!result.found_by.empty() && !absl::EndsWith(result.found_by, suffix))
    result.found_by += suffix;
  return true;
}

// Annealing looks at its limits once in several trials, and finds nothing in a few.
bool Pipeline::HasTooFew(double until) const {
  const double left =
      static_cast<double>(limits_.evaluations) * until - static_cast<double>(evaluations_);
  return limits_.evaluations > 0 && left < kLeastTrials;
}

absl::Status Pipeline::Anneal(const Game& game, double until, SolveResult& result,
                              absl::Span<const SolveResult> others) {
  const double from = used();
  if (from >= until || HasTooFew(until)) return absl::OkStatus();
  const auto used = [&](int64_t more) {
    return std::min(1.0, (budget_.Progress(evaluations_ + more) - from) / (until - from));
  };
  std::vector<Plan> plans = {result.plan};
  for (const SolveResult& other : others) plans.push_back(other.plan);
  MG_ASSIGN_OR_RETURN(FoundPlan annealed, AnnealPlan(game, plans, limits_.seed, used));
  evaluations_ += annealed.evaluations;
  if (annealed.start > 0 && annealed.latency_ps < ValueOf(game.program(), CostOf(result)))
    result.found_by = others[annealed.start - 1].found_by;
  return KeepBetter(game_, std::move(annealed), "annealed", result).status();
}

}  // namespace mallocgame
