// The stages behind a solver's start: each improves the plan of a result within a share of the
// limits, has it judged, and keeps the better one.
#ifndef MALLOCGAME_SOLVERS_PIPELINE_H_
#define MALLOCGAME_SOLVERS_PIPELINE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "mallocgame/base/deadline.h"
#include "mallocgame/game/game.h"
#include "mallocgame/search/found_plan.h"
#include "mallocgame/solvers/budget.h"
#include "mallocgame/solvers/solver.h"

namespace mallocgame {

// Counts the evaluations that `improved` took, and replaces the plan of `result` by its one if that
// is faster; then nothing is left of the play that made the old one, and a name in found_by ends in
// ", `how`". Returns whether it is. InvalidArgument if the new plan is not valid.
absl::StatusOr<bool> KeepBetter(const Game& game, FoundPlan improved, absl::string_view how,
                                SolveResult& result);

class Pipeline {
 public:
  // The time of the limits runs from here. `game` and `limits` must outlive the pipeline.
  Pipeline(const Game& game, const SolveLimits& limits)
      : game_(game), limits_(limits), budget_(limits) {}

  const Budget& budget() const { return budget_; }
  // The share of the limits that is used up, in [0, 1].
  double used() const { return budget_.Progress(evaluations_); }
  // Evaluations of all stages, and of what was counted beside them.
  int64_t evaluations() const { return evaluations_; }
  void Count(int64_t evaluations) { evaluations_ += evaluations; }

  // Anneals the residences of the result's plan, or of one of the others' where that leads to a
  // better one (search/anneal_plan.h), in `game`, which may be another one of the program, until
  // the share `until` of the limits is used up.
  absl::Status Anneal(const Game& game, double until, SolveResult& result,
                      absl::Span<const SolveResult> others = {});

 private:
  bool HasTooFew(double until) const;

  const Game& game_;
  const SolveLimits& limits_;
  Budget budget_;
  int64_t evaluations_ = 0;
};

}  // namespace mallocgame

#endif  // MALLOCGAME_SOLVERS_PIPELINE_H_
