#include "mallocgame/solvers/registry.h"

#include <algorithm>
#include <string>
#include <vector>

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

// A portfolio runs other solvers of this table.
absl::StatusOr<SolveResult> SolveWithPortfolio(const SolveProblem& problem,
                                               const SolveLimits& limits) {
  return SolvePortfolio(problem, limits, Solve);
}

absl::StatusOr<SolveResult> SolveWithPortfolioXla(const SolveProblem& problem,
                                                  const SolveLimits& limits) {
  return SolvePortfolioWithXla(problem, limits, Solve);
}

// The first game is the one that a solver plays where nobody says which one. What plays no game
// takes its program in the order of instructions that it has.
const std::vector<NamedSolver>& OwnSolvers() {
  using Games = std::vector<std::string>;
  static const Games time = {"time"}, priority = {"priority"}, placing = {"time", "priority"},
                     all = {"time", "priority", "schedule"},
                     searched = {"priority", "time", "schedule"};
  static const std::vector<NamedSolver> solvers = {
      {"all-main", SolveAllMain, 0, placing},
      {"xla-assigned", SolveXlaAssigned, 0, placing},
      {"xla-heuristic", SolveXlaHeuristic, 0, placing},
      {"styles", SolveStyles, 0, placing},
      {"policy", SolvePolicy, 0, placing},
      {"packing", SolvePacking, 0, placing},
      {"random", SolveRandom, 0, all},
      {"greedy", SolveGreedy, 0, all},
      {"rent", SolveRent, 0, time},
      {"anneal", SolveAnneal, 0, priority},
      {"portfolio", SolveWithPortfolio, 0, placing},
      {"portfolio-xla", SolveWithPortfolioXla, 0, placing},
      {"exact", SolveExact, 0, time},
      {"mcts", SolveMcts, 0, searched},
  };
  return solvers;
}

// The library's own solvers, and then the others.
std::vector<const NamedSolver*> AllSolvers(absl::Span<const NamedSolver> extra_solvers) {
  std::vector<const NamedSolver*> all;
  for (const NamedSolver& solver : OwnSolvers()) all.push_back(&solver);
  for (const NamedSolver& solver : extra_solvers) all.push_back(&solver);
  return all;
}

absl::StatusOr<const NamedSolver*> Find(absl::string_view name,
                                        absl::Span<const NamedSolver> extra_solvers) {
  for (const NamedSolver* const solver : AllSolvers(extra_solvers)) {
    if (name == solver->name) return solver;
  }
  return absl::NotFoundError(absl::StrCat("no solver named '", name, "'; there are ",
                                          absl::StrJoin(SolverNames(extra_solvers), ", ")));
}

bool Takes(const NamedSolver& solver, absl::string_view game) {
  return std::find(solver.games.begin(), solver.games.end(), game) != solver.games.end();
}

absl::Status Refused(const NamedSolver& solver, const SolveProblem& problem) {
  const absl::string_view game = problem.game->options().game();
  std::vector<std::string> others;
  for (const NamedSolver* const other : AllSolvers(problem.extra_solvers)) {
    if (Takes(*other, game)) others.push_back(other->name);
  }
  const auto append = [](std::string* text, absl::string_view one) {
    absl::StrAppend(text, "the ", one, " game");
  };
  return absl::InvalidArgumentError(absl::StrCat(
      "solver '", solver.name, "' plays ", absl::StrJoin(solver.games, " or ", append),
      " only, found a ", game, " game; allowed for that: ", absl::StrJoin(others, ", ")));
}

}  // namespace

std::vector<std::string> SolverNames(absl::Span<const NamedSolver> extra_solvers) {
  std::vector<std::string> names;
  for (const NamedSolver* const solver : AllSolvers(extra_solvers)) names.push_back(solver->name);
  return names;
}

absl::StatusOr<std::string> GamePlayedBy(absl::string_view name,
                                         absl::Span<const NamedSolver> extra_solvers) {
  MG_ASSIGN_OR_RETURN(const NamedSolver* const solver, Find(name, extra_solvers));
  return solver->games[0];
}

// Fills in the name and the curve if the solver left them empty.
absl::StatusOr<SolveResult> Solve(absl::string_view name, const SolveProblem& problem,
                                  const SolveLimits& limits) {
  MG_ASSIGN_OR_RETURN(const NamedSolver* const solver, Find(name, problem.extra_solvers));
  if (!Takes(*solver, problem.game->options().game())) return Refused(*solver, problem);
  MG_RETURN_IF_ERROR(CheckOtherPrices(problem.game->program(), problem.game->hardware()));
  const Deadline clock;  // never passes
  absl::StatusOr<SolveResult> result = solver->solve(problem, limits);
  if (result.ok() && result->found_by.empty()) {
    result->found_by = solver->name;
    if (result->curve.empty())
      result->curve.push_back({clock.seconds(), result->report.latency_ps, {}});
    for (Improvement& better : result->curve) better.solver = solver->name;
  }
  return result;
}

}  // namespace mallocgame
