// The library's solvers by name.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "mallocgame/solvers/solver.h"

namespace mallocgame {

// The names of the library's own solvers, then those of `extra_solvers`.
std::vector<std::string> SolverNames(absl::Span<const NamedSolver> extra_solvers = {});

// The game that a solver plays where nobody says which one. NotFound as of Solve.
absl::StatusOr<std::string> GamePlayedBy(absl::string_view name,
                                         absl::Span<const NamedSolver> extra_solvers = {});

// Runs the solver `name`, one of SolverNames(problem.extra_solvers). NotFound lists them.
// InvalidArgument: the solver doesn't play problem.game.
// FailedPrecondition: the solver needs XLA's plan and there is none.
absl::StatusOr<SolveResult> Solve(absl::string_view name, const SolveProblem& problem,
                                  const SolveLimits& limits);

}  // namespace mallocgame
