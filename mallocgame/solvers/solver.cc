#include "mallocgame/solvers/solver.h"

#include <array>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "mallocgame/base/error.h"
#include "mallocgame/plan/plan.h"
#include "mallocgame/simulator/simulate.h"
#include "mallocgame/solvers/budget.h"

namespace mallocgame {
namespace {

absl::StatusOr<SolveResult> Judge(const Game& game, Plan plan) {
  SolveResult result;
  MG_ASSIGN_OR_RETURN(result.report, Simulate(game.cost_model(), game.program(), game.hardware(), plan));
  result.plan = std::move(plan);
  result.evaluations = 1;
  return result;
}

absl::StatusOr<SolveResult> SolveAllMain(const SolveProblem& problem, const SolveLimits&) {
  return Judge(*problem.game, AllMainPlan(problem.game->program(), problem.game->hardware()));
}

absl::StatusOr<SolveResult> SolveXlaAssigned(const SolveProblem& problem, const SolveLimits&) {
  if (problem.xla_plan == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat("xla-assigned: program '", problem.game->program().name(),
                                                      "' came without XLA's own assignment for ", problem.game->hardware().name,
                                                      "; import it with the module after assignment"));
  }
  return Judge(*problem.game, *problem.xla_plan);
}

// The game's own account of a finished play and the simulator's are two computations of one number.
template <bool (*kPlay)(const Game&, Budget&)>
absl::StatusOr<SolveResult> SolveByPlay(const SolveProblem& problem, const SolveLimits& limits) {
  Budget budget(limits);
  const bool finished = kPlay(*problem.game, budget);
  State state = problem.game->InitialState();
  for (uint8_t action : budget.best_actions()) MG_RETURN_IF_ERROR(state.Apply(static_cast<Action>(action)).status());
  MG_ASSIGN_OR_RETURN(SolveResult result, Judge(*problem.game, state.ToPlan()));
  if (result.report.latency_ps != state.latency_ps()) {
    return absl::InternalError(absl::StrCat("game and simulator disagree on a plan for '", problem.game->program().name(), "': ",
                                            state.latency_ps(), " ps and ", result.report.latency_ps, " ps; please report"));
  }
  result.actions = budget.best_actions();
  result.evaluations = budget.evaluations();
  result.status = finished ? SolveStatus::kHeuristic : SolveStatus::kStopped;
  return result;
}

struct NamedSolver {
  const char* name;
  absl::StatusOr<SolveResult> (*solve)(const SolveProblem&, const SolveLimits&);
};

constexpr std::array kSolvers = {
    NamedSolver{"all-main", SolveAllMain},
    NamedSolver{"xla-assigned", SolveXlaAssigned},
    NamedSolver{"random", SolveByPlay<PlayRandom>},
    NamedSolver{"greedy", SolveByPlay<PlayGreedy>},
    NamedSolver{"beam", SolveByPlay<PlayBeam>},
    NamedSolver{"anneal", SolveByPlay<PlayAnneal>},
};

}  // namespace

const char* SolveStatusName(SolveStatus status) {
  constexpr const char* kNames[] = {"heuristic", "optimal", "stopped"};
  return kNames[static_cast<size_t>(status)];
}

std::vector<std::string> SolverNames() {
  std::vector<std::string> names;
  for (const NamedSolver& solver : kSolvers) names.push_back(solver.name);
  return names;
}

absl::StatusOr<SolveResult> Solve(absl::string_view name, const SolveProblem& problem, const SolveLimits& limits) {
  for (const NamedSolver& solver : kSolvers) {
    if (name == solver.name) return solver.solve(problem, limits);
  }
  return absl::NotFoundError(absl::StrCat("no solver named '", name, "'; there are ", absl::StrJoin(SolverNames(), ", ")));
}

}  // namespace mallocgame
