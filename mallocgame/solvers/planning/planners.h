// The solvers that end in a plan without a game of their own: those that take a plan as it is, and
// those that improve the plans of others.
#pragma once

#include "absl/status/statusor.h"
#include "mallocgame/solvers/solver.h"

namespace mallocgame {

// Everything in main memory; XLA's own plan (FailedPrecondition: there is none); and what XLA's
// allocator, re-implemented, decides.
absl::StatusOr<SolveResult> SolveAllMain(const SolveProblem& problem, const SolveLimits& limits);
absl::StatusOr<SolveResult> SolveXlaAssigned(const SolveProblem& problem,
                                             const SolveLimits& limits);
absl::StatusOr<SolveResult> SolveXlaHeuristic(const SolveProblem& problem,
                                              const SolveLimits& limits);

// Anneals the residences (search/anneal_plan.h) of the best of rent's plan, xla-heuristic's and the
// priority game's first ones.
absl::StatusOr<SolveResult> SolvePacking(const SolveProblem& problem, const SolveLimits& limits);

// The games by all priority rules (styles/styles.h). In what is left of the limits the residences
// of their best plan are annealed. Without limits the games are all.
absl::StatusOr<SolveResult> SolveStyles(const SolveProblem& problem, const SolveLimits& limits);

// One priority game with exact stalls, played by the learned policy (policy/policy_game.h).
absl::StatusOr<SolveResult> SolvePolicy(const SolveProblem& problem, const SolveLimits& limits);

}  // namespace mallocgame
