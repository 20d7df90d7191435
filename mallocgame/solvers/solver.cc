#include "mallocgame/solvers/solver.h"

#include <array>
#include <chrono>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "mallocgame/base/error.h"
#include "mallocgame/plan/plan.h"
#include "mallocgame/simulator/simulate.h"
#include "mallocgame/solvers/budget.h"
#include "mallocgame/solvers/portfolio.h"
#include "mallocgame/solvers/priority.h"
#include "mallocgame/solvers/xla_heuristic.h"

namespace mallocgame {
namespace {

absl::StatusOr<SolveResult> Judge(const Game& game, Plan plan) {
  SolveResult result;
  MG_ASSIGN_OR_RETURN(result.report, Simulate(game.cost_model(), plan));
  result.plan = std::move(plan);
  result.evaluations = 1;
  return result;
}

absl::StatusOr<SolveResult> SolveAllMain(const SolveProblem& problem, const SolveLimits&) {
  return Judge(*problem.game, AllMainPlan(problem.game->program(), problem.game->hardware()));
}

absl::StatusOr<SolveResult> SolveXlaAssigned(const SolveProblem& problem, const SolveLimits&) {
  if (problem.xla_plan == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("xla-assigned: program '", problem.game->program().name(),
                     "' came without XLA's own assignment for ", problem.game->hardware().name,
                     "; import it with the module after assignment"));
  }
  return Judge(*problem.game, *problem.xla_plan);
}

absl::StatusOr<SolveResult> SolveXlaHeuristic(const SolveProblem& problem,
                                              const SolveLimits& limits) {
  const Budget budget(limits);
  XlaOutcome outcome = PlanLikeXla(*problem.game, [&budget] { return budget.Interrupted(); });
  MG_ASSIGN_OR_RETURN(SolveResult result, Judge(*problem.game, std::move(outcome.plan)));
  if (!outcome.finished) result.status = SolveStatus::kStopped;
  return result;
}

// The game's own account of a finished play and the simulator's are two computations of one number.
absl::StatusOr<SolveResult> JudgeBestPlay(const SolveProblem& problem, const Budget& budget) {
  State state = budget.best_game()->InitialState();
  for (uint8_t action : budget.best_actions())
    MG_RETURN_IF_ERROR(state.Apply(static_cast<Action>(action)).status());
  MG_ASSIGN_OR_RETURN(SolveResult result, Judge(*problem.game, state.ToPlan()));
  if (result.report.latency_ps != state.latency_ps()) {
    return absl::InternalError(absl::StrCat(
        "game and simulator disagree on a plan for '", problem.game->program().name(),
        "': ", state.latency_ps(), " ps and ", result.report.latency_ps, " ps; please report"));
  }
  result.actions = budget.best_actions();
  result.game = budget.best_game();
  result.search = budget.best_search();
  result.evaluations = budget.evaluations();
  result.curve = budget.curve();
  return result;
}

// From the better of greedy's plan and xla-heuristic's.
absl::StatusOr<SolveResult> SolvePriority(const SolveProblem& problem, const SolveLimits& limits) {
  Budget budget(limits);
  PlayGreedy(*problem.game, budget);
  MG_ASSIGN_OR_RETURN(SolveResult start, JudgeBestPlay(problem, budget));
  MG_ASSIGN_OR_RETURN(SolveResult xla, SolveXlaHeuristic(problem, limits));
  if (xla.report.latency_ps < start.report.latency_ps) start = std::move(xla);
  Arranged arranged =
      ArrangePlan(*problem.game, start.plan, limits.seed,
                  [&budget](int64_t evaluations) { return budget.Progress(evaluations); });
  MG_ASSIGN_OR_RETURN(SolveResult result, Judge(*problem.game, std::move(arranged.plan)));
  result.evaluations += arranged.evaluations;
  result.status = SolveStatus::kStopped;
  return result;
}

template <bool (*kPlay)(const Game&, Budget&)>
absl::StatusOr<SolveResult> SolveByPlay(const SolveProblem& problem, const SolveLimits& limits) {
  return SolveByPlaying(problem, limits, kPlay);
}

absl::StatusOr<SolveResult> SolveExact(const SolveProblem& problem, const SolveLimits& limits) {
  Budget budget(limits);
  int64_t bound_ps = 0;
  const bool optimal = PlayExact(*problem.game, budget, bound_ps);
  MG_ASSIGN_OR_RETURN(SolveResult result, JudgeBestPlay(problem, budget));
  result.status = optimal ? SolveStatus::kOptimal : SolveStatus::kStopped;
  result.bound_ps = bound_ps;
  return result;
}

struct OwnSolver {
  const char* name;
  absl::StatusOr<SolveResult> (*solve)(const SolveProblem&, const SolveLimits&);
};

constexpr std::array kSolvers = {
    OwnSolver{"all-main", SolveAllMain},
    OwnSolver{"xla-assigned", SolveXlaAssigned},
    OwnSolver{"xla-heuristic", SolveXlaHeuristic},
    OwnSolver{"priority", SolvePriority},
    OwnSolver{"random", SolveByPlay<PlayRandom>},
    OwnSolver{"greedy", SolveByPlay<PlayGreedy>},
    OwnSolver{"beam", SolveByPlay<PlayBeam>},
    OwnSolver{"anneal", SolveByPlay<PlayAnneal>},
    OwnSolver{"evolution", SolveByPlay<PlayEvolution>},
    OwnSolver{"greedy-dp", SolveByPlay<PlayGreedyDp>},
    OwnSolver{"portfolio", SolvePortfolio},
    OwnSolver{"portfolio-xla", SolvePortfolioWithXla},
    OwnSolver{"exact", SolveExact},
};

// Runs it, and fills in what it left to be filled in.
template <class Run>
absl::StatusOr<SolveResult> RunNamed(absl::string_view name, const Run& run,
                                     const SolveProblem& problem, const SolveLimits& limits) {
  const auto start = std::chrono::steady_clock::now();
  absl::StatusOr<SolveResult> result = run(problem, limits);
  if (result.ok() && result->found_by.empty()) {
    result->found_by = std::string(name);
    if (result->curve.empty()) {
      const double seconds =
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      result->curve.push_back({seconds, result->report.latency_ps, {}});
    }
    for (Improvement& better : result->curve) better.solver = std::string(name);
  }
  return result;
}

}  // namespace

const char* SolveStatusName(SolveStatus status) {
  constexpr const char* kNames[] = {"heuristic", "optimal", "stopped"};
  return kNames[static_cast<size_t>(status)];
}

std::vector<std::string> SolverNames(absl::Span<const NamedSolver> more) {
  std::vector<std::string> names;
  for (const OwnSolver& solver : kSolvers) names.push_back(solver.name);
  for (const NamedSolver& solver : more) names.push_back(solver.name);
  return names;
}

absl::StatusOr<SolveResult> SolveByPlaying(const SolveProblem& problem, const SolveLimits& limits,
                                           const std::function<bool(const Game&, Budget&)>& play) {
  Budget budget(limits);
  const bool finished = play(*problem.game, budget);
  MG_ASSIGN_OR_RETURN(SolveResult result, JudgeBestPlay(problem, budget));
  result.status = finished ? SolveStatus::kHeuristic : SolveStatus::kStopped;
  return result;
}

absl::StatusOr<SolveResult> Solve(absl::string_view name, const SolveProblem& problem,
                                  const SolveLimits& limits) {
  for (const OwnSolver& solver : kSolvers) {
    if (name == solver.name) return RunNamed(name, solver.solve, problem, limits);
  }
  for (const NamedSolver& solver : problem.more) {
    if (name == solver.name) return RunNamed(name, solver.solve, problem, limits);
  }
  return absl::NotFoundError(absl::StrCat("no solver named '", name, "'; there are ",
                                          absl::StrJoin(SolverNames(problem.more), ", ")));
}

}  // namespace mallocgame
