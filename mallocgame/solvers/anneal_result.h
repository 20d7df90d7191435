// A stage behind a solver's start: it improves the plan of a result, has it judged, and keeps the
// better one.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "mallocgame/game/game.h"
#include "mallocgame/search/found_plan.h"
#include "mallocgame/solvers/budget.h"
#include "mallocgame/solvers/solver.h"

namespace mallocgame {

// Replaces the plan of `result` by that of `improved` if it is faster. Then the result has no play,
// as the old plan's made another one, and a name in found_by ends in ", `how`". Returns whether it
// is. InvalidArgument if the new plan is not valid.
absl::StatusOr<bool> KeepBetter(const Game& game, FoundPlan improved, absl::string_view how,
                                SolveResult& result);

// Anneals the residences of the result's plan, or of one of the others' where that leads to a
// better one (search/anneal_plan.h), until the limits of `budget` are used up. `budget` counts the
// evaluations, and is told of a better plan.
absl::Status AnnealResult(const Game& game, Budget& budget, SolveResult& result,
                          absl::Span<const SolveResult> others = {});

}  // namespace mallocgame
