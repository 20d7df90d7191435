// Runs several solvers within one time limit on all cores that it may use; the best plan wins.
#ifndef MALLOCGAME_SOLVERS_PORTFOLIO_H_
#define MALLOCGAME_SOLVERS_PORTFOLIO_H_

#include <functional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "mallocgame/solvers/solver.h"

namespace mallocgame {

// Solves a problem by the solver of a name, as Solve of registry.h does.
using SolveFunction = std::function<absl::StatusOr<SolveResult>(
    absl::string_view name, const SolveProblem& problem, const SolveLimits& limits)>;

// The members are rent, which has a plan within milliseconds, styles, xla-heuristic, those of
// problem.extra_solvers that ask for it, and annealing, which gets nearly all of the time: over
// priority games, the best of which are then packed anew, and, where there is time for both, over
// packings (search/pack_plan.h). The plans of the library's own members are refined
// (search/refine_plan.h). Of plans that are equally fast but for 1 part in
// 10,000 the one with the least cold latency wins. With limits.seconds 0 and a limit of
// evaluations, which each member then has to itself, the result depends on the seed only, not on
// the number of cores.
absl::StatusOr<SolveResult> SolvePortfolio(const SolveProblem& problem, const SolveLimits& limits,
                                           const SolveFunction& solve);

// Does the same with XLA's own plan among the candidates, so the result is never slower than that,
// warm or cold. FailedPrecondition: there is no plan of XLA's.
absl::StatusOr<SolveResult> SolvePortfolioWithXla(const SolveProblem& problem,
                                                  const SolveLimits& limits,
                                                  const SolveFunction& solve);

}  // namespace mallocgame

#endif  // MALLOCGAME_SOLVERS_PORTFOLIO_H_
