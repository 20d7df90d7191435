#include "mallocgame/solvers/registry.h"

#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "mallocgame/base/deadline.h"
#include "mallocgame/base/error.h"
#include "mallocgame/plan/plan.h"
#include "mallocgame/solvers/planning/arrange_plan.h"
#include "mallocgame/solvers/playing/players.h"
#include "mallocgame/solvers/portfolio.h"
#include "mallocgame/solvers/xla/heuristic.h"

namespace mallocgame {
namespace {

absl::StatusOr<SolveResult> SolveAllMain(const SolveProblem& problem, const SolveLimits&) {
  return JudgePlan(*problem.game, AllMainPlan(problem.game->program(), problem.game->hardware()));
}

absl::StatusOr<SolveResult> SolveXlaAssigned(const SolveProblem& problem, const SolveLimits&) {
  if (problem.xla_plan == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("xla-assigned: program '", problem.game->program().name(),
                     "' came without XLA's own assignment for ", problem.game->hardware().name,
                     "; import it with the module after assignment"));
  }
  return JudgePlan(*problem.game, *problem.xla_plan);
}

absl::StatusOr<SolveResult> SolveXlaHeuristic(const SolveProblem& problem,
                                              const SolveLimits& limits) {
  XlaOutcome outcome = PlanLikeXla(*problem.game, Deadline(limits.seconds, limits.cancel));
  MG_ASSIGN_OR_RETURN(SolveResult result, JudgePlan(*problem.game, std::move(outcome.plan)));
  if (!outcome.finished) result.status = SolveStatus::kStopped;
  return result;
}

// Improves the better of rent's plan and xla-heuristic's.
absl::StatusOr<SolveResult> SolvePriority(const SolveProblem& problem, const SolveLimits& limits) {
  Budget budget(limits);
  PlayRent(*problem.game, problem.prices, budget);
  MG_ASSIGN_OR_RETURN(SolveResult start, JudgeBestGame(budget));
  XlaOutcome outcome = PlanLikeXla(*problem.game, budget.deadline().Share(kXlaShare));
  MG_ASSIGN_OR_RETURN(SolveResult xla, JudgePlan(*problem.game, std::move(outcome.plan)));
  if (xla.report.latency_ps < start.report.latency_ps) start = std::move(xla);
  Arranged arranged =
      ArrangePlan(*problem.game, start.plan, limits.seed,
                  [&budget](int64_t evaluations) { return budget.Progress(evaluations); });
  MG_ASSIGN_OR_RETURN(SolveResult result, JudgePlan(*problem.game, std::move(arranged.plan)));
  result.evaluations += arranged.evaluations;
  result.status = SolveStatus::kStopped;
  return result;
}

template <bool (*kPlay)(const Game&, Budget&)>
absl::StatusOr<SolveResult> SolveByPlay(const SolveProblem& problem, const SolveLimits& limits) {
  return SolveByPlaying(problem, limits, kPlay);
}

absl::StatusOr<SolveResult> SolveRent(const SolveProblem& problem, const SolveLimits& limits) {
  return SolveByPlaying(problem, limits, [&problem](const Game& game, Budget& budget) {
    return PlayRent(game, problem.prices, budget);
  });
}

absl::StatusOr<SolveResult> SolveExact(const SolveProblem& problem, const SolveLimits& limits) {
  Budget budget(limits);
  const ExactOutcome outcome = PlayExact(*problem.game, budget);
  MG_ASSIGN_OR_RETURN(SolveResult result, JudgeBestGame(budget));
  result.status = outcome.optimal ? SolveStatus::kOptimal : SolveStatus::kStopped;
  result.bound_ps = outcome.bound_ps;
  return result;
}

struct OwnSolver {
  const char* name;
  absl::StatusOr<SolveResult> (*solve)(const SolveProblem&, const SolveLimits&);
};

// A portfolio runs other solvers of this table.
absl::StatusOr<SolveResult> SolveWithPortfolio(const SolveProblem& problem,
                                               const SolveLimits& limits) {
  return SolvePortfolio(problem, limits, Solve);
}

absl::StatusOr<SolveResult> SolveWithPortfolioXla(const SolveProblem& problem,
                                                  const SolveLimits& limits) {
  return SolvePortfolioWithXla(problem, limits, Solve);
}

constexpr std::array kSolvers = {
    OwnSolver{"all-main", SolveAllMain},
    OwnSolver{"xla-assigned", SolveXlaAssigned},
    OwnSolver{"xla-heuristic", SolveXlaHeuristic},
    OwnSolver{"priority", SolvePriority},
    OwnSolver{"random", SolveByPlay<PlayRandom>},
    OwnSolver{"greedy", SolveByPlay<PlayGreedy>},
    OwnSolver{"rent", SolveRent},
    OwnSolver{"beam", SolveByPlay<PlayBeam>},
    OwnSolver{"anneal", SolveByPlay<PlayAnneal>},
    OwnSolver{"evolution", SolveByPlay<PlayEvolution>},
    OwnSolver{"greedy-dp", SolveByPlay<PlayGreedyDp>},
    OwnSolver{"portfolio", SolveWithPortfolio},
    OwnSolver{"portfolio-xla", SolveWithPortfolioXla},
    OwnSolver{"exact", SolveExact},
};

// Runs a solver, and fills in the name and the curve if the solver left them empty.
template <class Solver>
absl::StatusOr<SolveResult> RunNamed(absl::string_view name, const Solver& solver,
                                     const SolveProblem& problem, const SolveLimits& limits) {
  const Deadline clock;  // never passes
  absl::StatusOr<SolveResult> result = solver(problem, limits);
  if (result.ok() && result->found_by.empty()) {
    result->found_by = std::string(name);
    if (result->curve.empty()) {
      result->curve.push_back({clock.seconds(), result->report.latency_ps, {}});
    }
    for (Improvement& better : result->curve) better.solver = std::string(name);
  }
  return result;
}

}  // namespace

std::vector<std::string> SolverNames(absl::Span<const NamedSolver> extra_solvers) {
  std::vector<std::string> names;
  for (const OwnSolver& solver : kSolvers) names.emplace_back(solver.name);
  for (const NamedSolver& solver : extra_solvers) names.push_back(solver.name);
  return names;
}

absl::StatusOr<SolveResult> Solve(absl::string_view name, const SolveProblem& problem,
                                  const SolveLimits& limits) {
  for (const OwnSolver& solver : kSolvers) {
    if (name == solver.name) return RunNamed(name, solver.solve, problem, limits);
  }
  for (const NamedSolver& solver : problem.extra_solvers) {
    if (name == solver.name) return RunNamed(name, solver.solve, problem, limits);
  }
  return absl::NotFoundError(absl::StrCat("no solver named '", name, "'; there are ",
                                          absl::StrJoin(SolverNames(problem.extra_solvers), ", ")));
}

}  // namespace mallocgame
