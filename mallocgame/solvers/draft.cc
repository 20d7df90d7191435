#include "mallocgame/solvers/draft.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "mallocgame/base/error.h"
#include "mallocgame/plan/offsets.h"
#include "mallocgame/solvers/planning/arrange_plan.h"
#include "mallocgame/solvers/planning/polish_plan.h"
#include "mallocgame/solvers/playing/budget.h"
#include "mallocgame/solvers/registry.h"

namespace mallocgame {
namespace {

// Offsets are found within these nodes or hardly ever.
constexpr int64_t kOffsetNodes = 200'000;
// Buffers of less than this share of fast memory are small: they fit into any gap.
constexpr int64_t kSmallShare = 1024;
// Annealing from here on would take the draft apart again.
constexpr double kHeat = 5e-5;
constexpr double kDraftPolishShare = 0.15;  // of the limits

// Finds offsets for all residences, or else for those that are not small, or else for as many of
// these as fit. The others have none (-1): they are placed when the draft is arranged.
void FindOffsets(const Game& game, Plan& draft) {
  Hardware usable = game.hardware();
  usable.fast_bytes = game.usable_bytes();
  const OffsetLimits limits = {.seconds = 0, .nodes = kOffsetNodes};
  const auto all = RepairOffsets(game.program(), usable, draft, limits);
  if (all.ok() && all->status == OffsetStatus::kFeasible) return;

  Plan large = draft;
  large.residences.clear();
  large.copies.clear();
  std::vector<ResidenceId> index(draft.residences.size());
  for (size_t i = 0; i < draft.residences.size(); ++i) {
    Residence& residence = draft.residences[i];
    residence.offset = -1;
    if (game.program().buffer(residence.buffer).size_bytes < usable.fast_bytes / kSmallShare)
      continue;
    index[i] = ResidenceId(static_cast<int64_t>(large.residences.size()));
    large.residences.push_back(residence);
  }
  for (Copy copy : draft.copies) {
    copy.residence = index[copy.residence.index()];
    if (copy.residence.valid()) large.copies.push_back(copy);
  }
  std::fill(large.served_by.begin(), large.served_by.end(), ResidenceId());
  const auto found = RepairOffsets(game.program(), usable, large, limits);
  if (!found.ok()) return;
  for (size_t i = 0; i < draft.residences.size(); ++i) {
    if (!index[i].valid()) continue;
    Residence& residence = draft.residences[i];
    const int64_t offset = found->offsets[index[i].index()];
    const int64_t size = game.program().buffer(residence.buffer).size_bytes;
    if (offset + size <= usable.fast_bytes) residence.offset = offset;
  }
}

}  // namespace

absl::StatusOr<SolveResult> SolveFromDraft(const SolveProblem& problem, const SolveLimits& limits,
                                           const Plan& draft) {
  const Game& game = *problem.game;
  const Budget budget(limits);
  MG_RETURN_IF_ERROR(CheckWellFormed(game.program(), game.hardware(), draft));
  Plan start = draft;
  for (const AccessId id : game.options().forbidden) start.served_by[id.index()] = ResidenceId();
  FindOffsets(game, start);
  // The first arrangement is the draft as far as it can be carried out.
  Arranged arranged = ArrangePlan(game, start, limits.seed, [](int64_t) { return 1.0; }, kHeat);
  const auto missing = [&](AccessId id) { return !arranged.plan.served_by[id.index()].valid(); };
  const std::vector<AccessId>& required = game.options().required;
  if (std::any_of(required.begin(), required.end(), missing)) return Solve("rent", problem, limits);
  MG_ASSIGN_OR_RETURN(SolveResult result, JudgePlan(game, std::move(arranged.plan)));
  const auto take = [&](Plan plan, int64_t latency_ps, int64_t evaluations) -> absl::Status {
    result.evaluations += evaluations;
    if (latency_ps >= result.report.latency_ps) return absl::OkStatus();
    const int64_t evaluations_so_far = result.evaluations;
    MG_ASSIGN_OR_RETURN(result, JudgePlan(game, std::move(plan)));
    result.evaluations = evaluations_so_far;
    if (limits.progress) limits.progress(budget.seconds(), latency_ps);
    return absl::OkStatus();
  };
  if (limits.progress) limits.progress(budget.seconds(), result.report.latency_ps);
  if (budget.limited()) {
    arranged = ArrangePlan(
        game, start, limits.seed,
        [&](int64_t evaluations) { return budget.Progress(evaluations) / (1 - kDraftPolishShare); },
        kHeat);
    if (std::none_of(required.begin(), required.end(), missing)) {
      MG_RETURN_IF_ERROR(take(std::move(arranged.plan), arranged.latency_ps, arranged.evaluations));
    }
  }
  if (limits.seconds > 0 && !budget.Exhausted()) {
    Polished polished = PolishPlan(game, result.plan, limits.seed, budget.deadline());
    MG_RETURN_IF_ERROR(take(std::move(polished.plan), polished.latency_ps, polished.evaluations));
  }
  result.status = SolveStatus::kStopped;
  return result;
}

}  // namespace mallocgame
