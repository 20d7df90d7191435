#include "mallocgame/solvers/anneal_result.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "mallocgame/base/error.h"
#include "mallocgame/search/anneal_plan.h"

namespace mallocgame {
namespace {

// Annealing looks at its limits once in several trials, and finds nothing in a few.
constexpr int64_t kLeastTrials = 32;

}  // namespace

absl::StatusOr<bool> KeepBetter(const Game& game, FoundPlan improved, absl::string_view how,
                                SolveResult& result) {
  if (improved.latency_ps >= ValueOf(game.program(), CostOf(result))) return false;
  MG_ASSIGN_OR_RETURN(const PlanCost cost, CostOf(game, improved.plan));
  result.report = cost.report;
  result.others = cost.others;
  result.plan = std::move(improved.plan);
  result.play.reset();
  const std::string suffix = absl::StrCat(", ", how);
  if (!result.found_by.empty() && !absl::EndsWith(result.found_by, suffix))
    result.found_by += suffix;
  return true;
}

absl::Status AnnealResult(const Game& game, Budget& budget, SolveResult& result,
                          absl::Span<const SolveResult> others) {
  const int64_t before = budget.evaluations(), limit = budget.limits().evaluations;
  const double from = budget.Progress(before);
  if (from >= 1 || (limit > 0 && limit - before < kLeastTrials)) return absl::OkStatus();
  const auto used = [&](int64_t more) {
    return std::min(1.0, (budget.Progress(before + more) - from) / (1 - from));
  };
  std::vector<Plan> plans = {result.plan};
  for (const SolveResult& other : others) plans.push_back(other.plan);
  MG_ASSIGN_OR_RETURN(FoundPlan annealed, AnnealPlan(game, plans, budget.seed(), used));
  budget.Count(annealed.evaluations);
  if (annealed.start > 0 && annealed.latency_ps < ValueOf(game.program(), CostOf(result)))
    result.found_by = others[annealed.start - 1].found_by;
  budget.Found(annealed.latency_ps, result.found_by);
  return KeepBetter(game, std::move(annealed), "annealed", result).status();
}

}  // namespace mallocgame
