#include "mallocgame/solvers/registry.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "mallocgame/base/deadline.h"
#include "mallocgame/base/error.h"
#include "mallocgame/plan/plan.h"
#include "mallocgame/solvers/game_variants.h"
#include "mallocgame/solvers/planning/arrange_plan.h"
#include "mallocgame/solvers/planning/polish_plan.h"
#include "mallocgame/solvers/playing/order_preferences.h"
#include "mallocgame/solvers/playing/players.h"
#include "mallocgame/solvers/portfolio.h"
#include "mallocgame/solvers/styles/styles.h"
#include "mallocgame/solvers/xla/heuristic.h"

namespace mallocgame {
namespace {

// Shares of priority's limits: for the order game's first games, and for annealing the time game.
constexpr double kOrderShare = 0.1;
constexpr double kAnnealShare = 0.15;
// Shares of what the styled games leave of its limits: for arranging each of its starts, before it
// goes on with the better one, and for polishing.
constexpr double kTrialShare = 0.15, kPolishShare = 0.1;

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

// The best of rent's plan, one like XLA's, and those of the order game's first games.
absl::StatusOr<SolveResult> PriorityStart(const Game& game, const Prices* prices,
                                          const SolveLimits& limits) {
  Budget budget(limits);
  PlayRent(*TimeGameOf(game), prices, budget);
  MG_ASSIGN_OR_RETURN(SolveResult start, JudgeBestGame(budget));
  XlaOutcome outcome = PlanLikeXla(game, budget.deadline().Share(kXlaShare));
  MG_ASSIGN_OR_RETURN(SolveResult xla, JudgePlan(game, std::move(outcome.plan)));
  if (xla.report.latency_ps < start.report.latency_ps) start = std::move(xla);
  const FollowedPlan followed = {start.plan};
  const OrderStart order = OrderStarts(game, &followed, budget.deadline().Share(kOrderShare))[0];
  if (order.latency_ps >= start.report.latency_ps) return start;
  OrderState end(order.game);
  PlayOrderOn(end, order.preferences);
  return JudgePlan(game, end.ToPlan());
}

// The plan that annealing the time game finds in its share of the limits.
absl::StatusOr<SolveResult> AnnealedTimeGame(const Game& game, const SolveLimits& limits) {
  SolveLimits share = limits;
  share.progress = nullptr;
  share.seconds *= kAnnealShare;
  if (limits.evaluations > 0) {
    share.evaluations = std::max<int64_t>(
        1, static_cast<int64_t>(kAnnealShare * static_cast<double>(limits.evaluations)));
  }
  Budget budget(share);
  PlayAnneal(*TimeGameOf(game), budget);
  MG_ASSIGN_OR_RETURN(SolveResult result, JudgeBestGame(budget));
  result.evaluations = budget.evaluations();
  return result;
}

// Improves plans that start in different places, each in a trial, and then the best of them. Much
// has to change before another place shows what it is worth, which no single change of an
// arrangement finds out. The places are the best of rent's plan, xla-heuristic's and the order
// game's; the same without the buffers that fill most of fast memory; and an annealed time game.
absl::StatusOr<SolveResult> SolvePriority(const SolveProblem& problem, const SolveLimits& limits) {
  constexpr double kTrial = 0.25;  // the share of the limits for each
  std::shared_ptr<const Game> game = problem.game;
  const Budget budget(limits);
  MG_ASSIGN_OR_RETURN(SolveResult best, PriorityStart(*game, problem.prices, limits));
  int64_t evaluations = 0;
  const auto arrange = [&](const Game& own_game, SolveResult& result,
                           double until) -> absl::Status {
    const double from = budget.Progress(evaluations);
    if (from >= until) return absl::OkStatus();
    Arranged arranged = ArrangePlan(own_game, result.plan, limits.seed, [&](int64_t more) {
      return (budget.Progress(evaluations + more) - from) / (until - from);
    });
    evaluations += arranged.evaluations;
    MG_ASSIGN_OR_RETURN(result, JudgePlan(*problem.game, std::move(arranged.plan)));
    return absl::OkStatus();
  };
  const auto goes_on = [&budget] { return budget.limited() && !budget.deadline().Passed(); };
  double until = kTrial;
  if (goes_on()) {
    if (const auto without = GameWithoutLargest(*game)) {
      SolveLimits quiet = limits;
      quiet.progress = nullptr;
      if (limits.seconds > 0) quiet.seconds = std::max(1e-9, limits.seconds - budget.seconds());
      MG_ASSIGN_OR_RETURN(SolveResult other, PriorityStart(*without, problem.prices, quiet));
      MG_RETURN_IF_ERROR(arrange(*without, other, until));
      until += kTrial;
      MG_RETURN_IF_ERROR(arrange(*game, best, until));
      if (other.report.latency_ps < best.report.latency_ps) {
        best = std::move(other);
        // Not in the full game: there, annealing falls back into what the trial got out of.
        game = without;
      }
    } else {
      MG_RETURN_IF_ERROR(arrange(*game, best, until));
    }
  }
  if (goes_on()) {
    MG_ASSIGN_OR_RETURN(SolveResult annealed, AnnealedTimeGame(*game, limits));
    evaluations += annealed.evaluations;
    MG_RETURN_IF_ERROR(arrange(*game, annealed, until + kTrial));
    if (annealed.report.latency_ps < best.report.latency_ps &&
        LatencyWithPreloads(annealed.report) < LatencyWithPreloads(best.report)) {
      best = std::move(annealed);
      if (limits.progress) limits.progress(budget.seconds(), best.report.latency_ps);
    }
  }
  MG_RETURN_IF_ERROR(arrange(*game, best, 1));
  best.evaluations += evaluations;
  best.status = SolveStatus::kStopped;
  return best;
}

// The games in all styles. In what is left of the limits their best plan
// and that of an annealed time game are arranged; the better one is arranged further and polished.
// Without limits the games are all.
absl::StatusOr<SolveResult> SolveStyles(const SolveProblem& problem, const SolveLimits& limits) {
  const Game& game = *problem.game;
  const Budget budget(limits);
  std::vector<Improvement> curve;
  const auto tell = [&](int64_t latency_ps) {
    curve.push_back({budget.seconds(), latency_ps, {}});
    if (limits.progress) limits.progress(curve.back().seconds, latency_ps);
  };
  StyledPlan played = PlayStyles(game, budget.deadline(), tell);
  MG_ASSIGN_OR_RETURN(SolveResult result, JudgePlan(game, std::move(played.plan)));
  result.served = std::move(played.served);
  result.evaluations = played.games;
  result.curve = curve;
  if (!budget.limited()) return result;

  result.status = SolveStatus::kStopped;
  const auto note = [&](const SolveResult& found, int64_t evaluations) {
    result.evaluations += evaluations;
    if (found.report.latency_ps >= result.report.latency_ps) return;
    result.plan = found.plan;
    result.report = found.report;
    result.served.clear();
    tell(result.report.latency_ps);
    result.curve = curve;
  };
  const double begun = budget.Progress(result.evaluations);
  if (begun >= 1) return result;
  // Arranges `start` until a share of what the games leave is used up.
  const auto arrange = [&](SolveResult& start, double share) -> absl::Status {
    const double from = budget.Progress(result.evaluations);
    const double until = begun + share * (1 - begun);
    if (from >= until) return absl::OkStatus();
    Arranged arranged = ArrangePlan(game, start.plan, limits.seed, [&](int64_t more) {
      return std::min(1.0, (budget.Progress(result.evaluations + more) - from) / (until - from));
    });
    MG_ASSIGN_OR_RETURN(start, JudgePlan(game, std::move(arranged.plan)));
    note(start, arranged.evaluations);
    return absl::OkStatus();
  };
  SolveResult best = result;
  MG_RETURN_IF_ERROR(arrange(best, kTrialShare));
  if (!budget.Exhausted()) {
    SolveLimits left = limits;
    left.seconds *= 1 - begun;
    MG_ASSIGN_OR_RETURN(SolveResult annealed, AnnealedTimeGame(game, left));
    note(annealed, annealed.evaluations);
    MG_RETURN_IF_ERROR(arrange(annealed, 2 * kTrialShare + kAnnealShare));
    if (annealed.report.latency_ps < best.report.latency_ps) best = std::move(annealed);
  }
  MG_RETURN_IF_ERROR(arrange(best, 1 - kPolishShare));
  if (limits.evaluations > 0 || budget.Exhausted()) return result;
  Polished polished = PolishPlan(game, result.plan, limits.seed, budget.deadline());
  MG_ASSIGN_OR_RETURN(best, JudgePlan(game, std::move(polished.plan)));
  note(best, polished.evaluations);
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
  bool takes_order_games = true;
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
    OwnSolver{"priority", SolvePriority},
    OwnSolver{"random", SolveByPlay<PlayRandom>},
    OwnSolver{"greedy", SolveByPlay<PlayGreedy>},
    OwnSolver{"rent", SolveRent, kOnlyTimeGames},
    OwnSolver{"anneal", SolveByPlay<PlayAnneal>},
    OwnSolver{"portfolio", SolveWithPortfolio},
    OwnSolver{"portfolio-xla", SolveWithPortfolioXla},
    OwnSolver{"exact", SolveExact, kOnlyTimeGames},
};

absl::Status TakesOnlyTimeGames(absl::string_view name, const SolveProblem& problem) {
  std::vector<std::string> others;
  for (const OwnSolver& solver : kSolvers) {
    if (solver.takes_order_games) others.emplace_back(solver.name);
  }
  for (const NamedSolver& solver : problem.extra_solvers) {
    if (solver.takes_order_games) others.push_back(solver.name);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "solver '", name,
      "' plays the time game only, found an order game; allowed: ", absl::StrJoin(others, ", ")));
}

// Runs a solver, and fills in the name and the curve if the solver left them empty.
template <class Solver>
absl::StatusOr<SolveResult> RunNamed(absl::string_view name, const Solver& solver,
                                     const SolveProblem& problem, const SolveLimits& limits) {
  if (problem.game->options().kind == GameKind::kOrder && !solver.takes_order_games)
    return TakesOnlyTimeGames(name, problem);
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
