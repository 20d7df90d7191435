// Solving from a draft. A draft says which buffers lie in fast memory when, which accesses that
// serves and, as far as it knows, when bytes are copied. An integer programme makes such drafts
// (bindings/python/mallocgame/_bounds/draft.py): it knows no offsets and no queue of copies.
#ifndef MALLOCGAME_SOLVERS_DRAFT_H_
#define MALLOCGAME_SOLVERS_DRAFT_H_

#include "absl/status/statusor.h"
#include "mallocgame/plan/plan.h"
#include "mallocgame/solvers/solver.h"

namespace mallocgame {

// Makes a plan of a draft and improves it until the limits are used up: it finds offsets, arranges
// the draft anew (planning/arrange_plan.h) by annealing that begins cold, and polishes it. Where
// the draft can't be carried out as it is, arranging keeps of it what is possible. `draft` must be
// well formed, else InvalidArgument; it need not be valid. Where it can't serve accesses that the
// game's options require, the result is rent's.
absl::StatusOr<SolveResult> SolveFromDraft(const SolveProblem& problem, const SolveLimits& limits,
                                           const Plan& draft);

}  // namespace mallocgame

#endif  // MALLOCGAME_SOLVERS_DRAFT_H_
