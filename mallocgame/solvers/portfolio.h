// Runs several solvers within one time limit on all cores that it may use; the best plan wins.
#pragma once

#include <functional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "mallocgame/solvers/solver.h"

namespace mallocgame {

// Solves a problem by the solver of a name, as Solve of registry.h does.
using SolveFunction = std::function<absl::StatusOr<SolveResult>(
    absl::string_view name, const SolveProblem& problem, const SolveLimits& limits)>;

// First rent, styles and xla-heuristic find a plan within milliseconds, or, for a large program, in
// some hundredths of the time. Then all cores anneal the residences of the best one
// (search/anneal_plan.h), each with a seed of its own, beside those of problem.extra_solvers that
// ask for a part of a core. Of plans that are equally fast but for 1 part in 10,000 the one with
// the least cold latency wins. With limits.seconds 0 and a limit of evaluations, which each member
// then has to itself, the result depends on the seed only, not on the number of cores.
absl::StatusOr<SolveResult> SolvePortfolio(const SolveProblem& problem, const SolveLimits& limits,
                                           const SolveFunction& solve);

// Does the same with XLA's own plan among the candidates, so the result is never slower than that,
// warm or cold. FailedPrecondition: there is no plan of XLA's.
absl::StatusOr<SolveResult> SolvePortfolioWithXla(const SolveProblem& problem,
                                                  const SolveLimits& limits,
                                                  const SolveFunction& solve);

}  // namespace mallocgame
