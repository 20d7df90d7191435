#include "mallocgame/solvers/registry.h"

#include <algorithm>
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
  absl::Span<const GameKind> games;
};
// The first is the one that a solver plays where nobody says which one. What plays no game takes
// its program in the order of instructions that it has.
constexpr GameKind kTimeGame[] = {GameKind::kTime}, kPriorityGame[] = {GameKind::kPriority},
                   kOwnOrder[] = {GameKind::kTime, GameKind::kPriority},
                   kAll[] = {GameKind::kTime, GameKind::kPriority, GameKind::kSchedule};

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
    OwnSolver{"all-main", SolveAllMain, kOwnOrder},
    OwnSolver{"xla-assigned", SolveXlaAssigned, kOwnOrder},
    OwnSolver{"xla-heuristic", SolveXlaHeuristic, kOwnOrder},
    OwnSolver{"styles", SolveStyles, kOwnOrder},
    OwnSolver{"packing", SolvePacking, kOwnOrder},
    OwnSolver{"random", SolveRandom, kAll},
    OwnSolver{"greedy", SolveGreedy, kAll},
    OwnSolver{"rent", SolveRent, kTimeGame},
    OwnSolver{"anneal", SolveAnneal, kPriorityGame},
    OwnSolver{"portfolio", SolveWithPortfolio, kOwnOrder},
    OwnSolver{"portfolio-xla", SolveWithPortfolioXla, kOwnOrder},
    OwnSolver{"exact", SolveExact, kTimeGame},
};

template <class Solver>
bool Takes(const Solver& solver, GameKind kind) {
  return std::find(solver.games.begin(), solver.games.end(), kind) != solver.games.end();
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
  const auto append = [](std::string* text, GameKind game) {
    absl::StrAppend(text, "the ", GameKindName(game), " game");
  };
  return absl::InvalidArgumentError(absl::StrCat(
      "solver '", name, "' plays ", absl::StrJoin(solver.games, " or ", append), " only, found a ",
      GameKindName(kind), " game; allowed for that: ", absl::StrJoin(others, ", ")));
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

namespace {

absl::Status Unknown(absl::string_view name, absl::Span<const NamedSolver> extra_solvers) {
  return absl::NotFoundError(absl::StrCat("no solver named '", name, "'; there are ",
                                          absl::StrJoin(SolverNames(extra_solvers), ", ")));
}

}  // namespace

absl::StatusOr<GameKind> GamePlayedBy(absl::string_view name,
                                      absl::Span<const NamedSolver> extra_solvers) {
  for (const OwnSolver& solver : kSolvers) {
    if (name == solver.name) return solver.games[0];
  }
  for (const NamedSolver& solver : extra_solvers) {
    if (name == solver.name) return solver.games[0];
  }
  return Unknown(name, extra_solvers);
}

absl::StatusOr<SolveResult> Solve(absl::string_view name, const SolveProblem& problem,
                                  const SolveLimits& limits) {
  for (const OwnSolver& solver : kSolvers) {
    if (name == solver.name) return RunNamed(name, solver, problem, limits);
  }
  for (const NamedSolver& solver : problem.extra_solvers) {
    if (name == solver.name) return RunNamed(name, solver, problem, limits);
  }
  return Unknown(name, problem.extra_solvers);
}

}  // namespace mallocgame
