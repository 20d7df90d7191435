#include "mallocgame/solvers/registry.h"

#include <array>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "mallocgame/base/deadline.h"
#include "mallocgame/solvers/planning/planners.h"
#include "mallocgame/solvers/playing/players.h"
#include "mallocgame/solvers/portfolio.h"

namespace mallocgame {
namespace {

struct OwnSolver {
  const char* name;
  absl::StatusOr<SolveResult> (*solve)(const SolveProblem&, const SolveLimits&);
  bool takes_priority_games = true;
  bool takes_schedule_games = false;
};
constexpr bool kOnlyTimeGames = false;

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
    OwnSolver{"styles", SolveStyles},
    OwnSolver{"packing", SolvePacking},
    OwnSolver{"random", SolveRandom, true, /*takes_schedule_games=*/true},
    OwnSolver{"greedy", SolveGreedy, true, /*takes_schedule_games=*/true},
    OwnSolver{"rent", SolveRent, kOnlyTimeGames},
    OwnSolver{"anneal", SolveAnneal},
    OwnSolver{"portfolio", SolveWithPortfolio},
    OwnSolver{"portfolio-xla", SolveWithPortfolioXla},
    OwnSolver{"exact", SolveExact, kOnlyTimeGames},
};

template <class Solver>
bool Takes(const Solver& solver, GameKind kind) {
  switch (kind) {
    case GameKind::kTime: return true;
    case GameKind::kPriority: return solver.takes_priority_games;
    case GameKind::kSchedule: return solver.takes_schedule_games;
  }
  return false;
}

// `solver` is called `name`.
template <class Solver>
absl::Status Refused(absl::string_view name, const Solver& solver, const SolveProblem& problem) {
  const GameKind kind = problem.game->options().kind;
  std::vector<std::string> others;
  for (const OwnSolver& other : kSolvers) {
    if (Takes(other, kind)) others.emplace_back(other.name);
  }
  for (const NamedSolver& other : problem.extra_solvers) {
    if (Takes(other, kind)) others.push_back(other.name);
  }
  const bool only_time = kind == GameKind::kPriority && !Takes(solver, GameKind::kSchedule);
  return absl::InvalidArgumentError(
      absl::StrCat("solver '", name, "' ",
                   only_time ? "plays the time game only, found a priority game"
                             : absl::StrCat("doesn't play the ", GameKindName(kind), " game"),
                   "; allowed: ", absl::StrJoin(others, ", ")));
}

// Runs a solver, and fills in the name and the curve if the solver left them empty.
template <class Solver>
absl::StatusOr<SolveResult> RunNamed(absl::string_view name, const Solver& solver,
                                     const SolveProblem& problem, const SolveLimits& limits) {
  if (!Takes(solver, problem.game->options().kind)) return Refused(name, solver, problem);
  const Deadline clock;  // never passes
  absl::StatusOr<SolveResult> result = solver.solve(problem, limits);
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
    if (name == solver.name) return RunNamed(name, solver, problem, limits);
  }
  for (const NamedSolver& solver : problem.extra_solvers) {
    if (name == solver.name) return RunNamed(name, solver, problem, limits);
  }
  return absl::NotFoundError(absl::StrCat("no solver named '", name, "'; there are ",
                                          absl::StrJoin(SolverNames(problem.extra_solvers), ", ")));
}

}  // namespace mallocgame
