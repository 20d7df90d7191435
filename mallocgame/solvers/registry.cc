#include "mallocgame/solvers/registry.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "mallocgame/base/deadline.h"
#include "mallocgame/base/error.h"
#include "mallocgame/search/plan_cost.h"
#include "mallocgame/solvers/planning/planners.h"
#include "mallocgame/solvers/playing/players.h"
#include "mallocgame/solvers/portfolio.h"

namespace mallocgame {
namespace {

struct OwnSolver {
  const char* name;
  absl::StatusOr<SolveResult> (*solve)(const SolveProblem&, const SolveLimits&);
  absl::Span<const absl::string_view> games;
};
// The first is the one that a solver plays where nobody says which one. What plays no game takes
// its program in the order of instructions that it has.
constexpr absl::string_view kTimeGame[] = {"time"}, kPriorityGame[] = {"priority"},
                            kPlacing[] = {"time", "priority"},
                            kAll[] = {"time", "priority", "schedule"},
                            kSearched[] = {"priority", "time", "schedule"};

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
    OwnSolver{"all-main", SolveAllMain, kPlacing},
    OwnSolver{"xla-assigned", SolveXlaAssigned, kPlacing},
    OwnSolver{"xla-heuristic", SolveXlaHeuristic, kPlacing},
    OwnSolver{"styles", SolveStyles, kPlacing},
    OwnSolver{"policy", SolvePolicy, kPlacing},
    OwnSolver{"packing", SolvePacking, kPlacing},
    OwnSolver{"random", SolveRandom, kAll},
    OwnSolver{"greedy", SolveGreedy, kAll},
    OwnSolver{"rent", SolveRent, kTimeGame},
    OwnSolver{"anneal", SolveAnneal, kPriorityGame},
    OwnSolver{"portfolio", SolveWithPortfolio, kPlacing},
    OwnSolver{"portfolio-xla", SolveWithPortfolioXla, kPlacing},
    OwnSolver{"exact", SolveExact, kTimeGame},
    OwnSolver{"mcts", SolveMcts, kSearched},
};

template <class Solver>
bool Takes(const Solver& solver, absl::string_view game) {
  return std::find(solver.games.begin(), solver.games.end(), game) != solver.games.end();
}

// `solver` is called `name`.
template <class Solver>
absl::Status Refused(absl::string_view name, const Solver& solver, const SolveProblem& problem) {
  const absl::string_view game = problem.game->options().game();
  std::vector<std::string> others;
  for (const OwnSolver& other : kSolvers) {
    if (Takes(other, game)) others.emplace_back(other.name);
  }
  for (const NamedSolver& other : problem.extra_solvers) {
    if (Takes(other, game)) others.push_back(other.name);
  }
  const auto append = [](std::string* text, absl::string_view one) {
    absl::StrAppend(text, "the ", one, " game");
  };
  return absl::InvalidArgumentError(absl::StrCat(
      "solver '", name, "' plays ", absl::StrJoin(solver.games, " or ", append), " only, found a ",
      game, " game; allowed for that: ", absl::StrJoin(others, ", ")));
}

// Runs a solver, and fills in the name and the curve if the solver left them empty.
template <class Solver>
absl::StatusOr<SolveResult> RunNamed(absl::string_view name, const Solver& solver,
                                     const SolveProblem& problem, const SolveLimits& limits) {
  if (!Takes(solver, problem.game->options().game())) return Refused(name, solver, problem);
  MG_RETURN_IF_ERROR(CheckOtherPrices(problem.game->program(), problem.game->hardware()));
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

absl::StatusOr<std::string> GamePlayedBy(absl::string_view name,
                                         absl::Span<const NamedSolver> extra_solvers) {
  for (const OwnSolver& solver : kSolvers) {
    if (name == solver.name) return std::string(solver.games[0]);
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
