#include "mallocgame/solvers/portfolio.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "mallocgame/base/error.h"
#include "mallocgame/base/worker_pool.h"
#include "mallocgame/game/games.h"
#include "mallocgame/search/game_variants.h"
#include "mallocgame/solvers/anneal_result.h"
#include "mallocgame/solvers/budget.h"
#include "mallocgame/solvers/recorder.h"

namespace mallocgame {
namespace {

constexpr const char* kXlaAssigned = "xla-assigned";

// What runs beside the others: a solver, or, with no name, annealing of the best plan so far.
struct Member {
  std::string solver;
  double share;               // of the time limit on one core
  uint64_t seed = 0;          // added to the caller's
  std::string game = "time";  // that the solver plays
  bool plays_first = false;   // annealed priority games, which may lead to a better start
  bool at_others = false;     // plays at the other prices of the program
};

constexpr int kAnnealed = 2;  // annealed plans with a limit of evaluations
constexpr double kStylesSeconds = 40e-6, kMostOfStyles = 0.05;  // for each access; of the limits
constexpr double kPlayed = 0.25;  // the share of the limits for games that are played first
// Beyond so many accesses few games can be played, as a game costs what the program is large.
constexpr size_t kMostPlayed = 2000;

// The quick ones, which find a good plan within milliseconds. One game of `styles` takes long on a
// large program.
std::vector<Member> QuickMembers(const SolveProblem& problem, const SolveLimits& limits) {
  std::vector<Member> members = {{"rent", 0.02}, {"xla-heuristic", 0.1}};
  const double game_seconds =
      kStylesSeconds * static_cast<double>(problem.game->program().accesses().size());
  if (limits.seconds <= 0 || game_seconds < kMostOfStyles * limits.seconds)
    members.push_back({"styles", 0.02});
  if (problem.game->program().both() == nullptr) return members;
  const size_t own = members.size();
  for (size_t i = 0; i < own; ++i) {
    members.push_back(members[i]);
    members.back().at_others = true;
  }
  return members;
}

// Those that take all of the rest: extra solvers, and annealing on what they leave of the cores.
std::vector<Member> LongMembers(const SolveProblem& problem, const SolveLimits& limits,
                                size_t cores) {
  std::vector<Member> members;
  double extra = 0;
  for (const NamedSolver& solver : problem.extra_solvers) {
    const std::string& game = solver.games[0];
    // Its members' plans are of one order.
    if (solver.portfolio_share <= 0 || (*OptionsOfGame(game))->decides_order()) continue;
    members.push_back({solver.name, solver.portfolio_share, 0, game});
    extra += solver.portfolio_share;
  }
  const size_t annealed = limits.seconds > 0 ? cores : kAnnealed;
  const bool plays = problem.game->program().accesses().size() <= kMostPlayed;
  for (size_t i = 0; i < annealed; ++i) {
    const bool last = i + 1 == annealed;
    members.push_back(
        {"", last ? std::max(0.3, 1 - extra) : 1.0, i, "priority", plays && (last || i % 2 == 1)});
  }
  return members;
}

absl::StatusOr<SolveResult> RunSolver(const SolveProblem& problem, const SolveLimits& limits,
                                      const SolveFunction& solve, const Member& member,
                                      Recorder& recorder) {
  SolveLimits own = limits;
  own.seconds = limits.seconds * member.share;
  own.seed = limits.seed + member.seed;
  own.progress = [&](double, int64_t latency_ps) { recorder.Found(latency_ps, member.solver); };
  SolveProblem played = problem;
  const Game& game = *problem.game;
  const bool by_both = game.program().both() != nullptr;
  if (by_both) own.progress = nullptr;  // They make the latency at one set of prices small.
  played.game = GameNamed(member.game, member.at_others ? *GameAtOtherPrices(game) : game);
  MG_ASSIGN_OR_RETURN(SolveResult result, solve(member.solver, played, own));
  if (by_both) {
    if (member.at_others) result.play.reset();
    result.plan.program_fingerprint = game.program().fingerprint();
    MG_ASSIGN_OR_RETURN(const PlanCost cost, CostOf(game, result.plan));
    result.report = cost.report;
    result.others = cost.others;
  }
  recorder.Found(ValueOf(game.program(), CostOf(result)), member.solver);
  return result;
}

bool IsBetter(const Program& program, const SolveResult& one, const SolveResult& other) {
  return ValueWithPreloads(program, CostOf(one)) < ValueWithPreloads(program, CostOf(other));
}

// Anneals the residences of these results, the best first.
absl::StatusOr<SolveResult> AnnealOn(const SolveProblem& problem, const SolveLimits& limits,
                                     const SolveFunction& solve, std::vector<SolveResult> starts,
                                     const Member& member, Recorder& recorder) {
  SolveLimits own = limits;
  own.seed = limits.seed + member.seed;
  if (limits.seconds > 0) {
    own.seconds = std::max(
        1e-9, std::min(limits.seconds - recorder.seconds(), limits.seconds * member.share));
  }
  own.progress = nullptr;  // `recorder` tells of what all members find.
  Budget budget(own);
  if (member.plays_first) {
    SolveLimits part = limits;
    if (limits.evaluations > 0) {
      part.evaluations = std::max<int64_t>(
          1, static_cast<int64_t>(kPlayed * static_cast<double>(limits.evaluations)));
    }
    Member player = member;
    player.solver = "anneal";
    player.share = limits.seconds > 0 ? kPlayed * own.seconds / limits.seconds : 1;
    MG_ASSIGN_OR_RETURN(SolveResult played, RunSolver(problem, part, solve, player, recorder));
    budget.Count(played.evaluations);
    starts.push_back(std::move(played));
    if (IsBetter(problem.game->program(), starts.back(), starts[0]))
      std::swap(starts.back(), starts[0]);
  }
  SolveResult best = std::move(starts[0]);
  MG_RETURN_IF_ERROR(AnnealResult(*problem.game, budget, best, absl::MakeSpan(starts).subspan(1)));
  recorder.Found(ValueOf(problem.game->program(), CostOf(best)), best.found_by);
  best.evaluations = budget.evaluations();
  return best;
}

// The fastest plan, but for preloads that save too little. None may be slower than `limit` (null:
// there is none), warm or cold.
SolveResult* Best(const Program& program, std::vector<absl::StatusOr<SolveResult>>& results,
                  const SolveResult* limit) {
  const auto is_faster = [](const Report& report, const Report& than) {
    return report.latency_ps <= than.latency_ps && report.latency_cold_ps <= than.latency_cold_ps;
  };
  const auto allowed = [&](const SolveResult& result) {
    return limit == nullptr || (is_faster(result.report, limit->report) &&
                                (!limit->others || is_faster(*result.others, *limit->others)));
  };
  SolveResult* best = nullptr;
  for (auto& result : results) {
    if (!result.ok()) continue;
    if (allowed(*result) && (best == nullptr || IsBetter(program, *result, *best))) best = &*result;
  }
  return best;
}

absl::StatusOr<SolveResult> RunMembers(const SolveProblem& problem, const SolveLimits& limits,
                                       const SolveFunction& solve, std::vector<Member> members) {
  Recorder recorder(limits);
  std::vector<absl::StatusOr<SolveResult>> results(members.size());
  const size_t cores = UsableCores(), quick = members.size();
  WorkerPool pool(static_cast<int>(cores));
  const auto run = [&](int i, int) {
    results[i] = RunSolver(problem, limits, solve, members[i], recorder);
  };
  pool.Run(static_cast<int>(quick), 1, run);
  // Without XLA's own plan nobody knows how fast a plan has to be.
  const bool has_limit = members[0].solver == kXlaAssigned;
  if (has_limit) MG_RETURN_IF_ERROR(results[0].status());
  const Program& program = problem.game->program();
  const auto best_of = [&] { return Best(program, results, has_limit ? &*results[0] : nullptr); };
  if (SolveResult* const first = best_of()) {
    std::vector<SolveResult> starts = {*first};
    for (const auto& result : results) {
      if (result.ok() && &*result != first && result->plan != first->plan)
        starts.push_back(*result);
    }
    for (Member& member : LongMembers(problem, limits, cores)) members.push_back(std::move(member));
    results.resize(members.size());
    pool.Run(static_cast<int>(members.size() - quick), 1, [&](int i, int worker) {
      const size_t m = quick + i;
      if (!members[m].solver.empty()) return run(static_cast<int>(m), worker);
      results[m] = AnnealOn(problem, limits, solve, starts, members[m], recorder);
      members[m].solver = "annealing";
    });
  }

  std::vector<std::string> failures;
  for (size_t i = 0; i < members.size(); ++i) {
    if (results[i].ok())
      recorder.Count(results[i]->evaluations);
    else
      failures.push_back(absl::StrCat(members[i].solver, ": ", results[i].status().message()));
  }
  SolveResult* const best = best_of();
  if (best == nullptr) return results[0].status();
  SolveResult answer = std::move(*best);
  answer.failures = std::move(failures);
  answer.status = SolveStatus::kStopped;
  recorder.Finish(answer, ValueOf(program, CostOf(answer)));
  return answer;
}

}  // namespace

absl::StatusOr<SolveResult> SolvePortfolio(const SolveProblem& problem, const SolveLimits& limits,
                                           const SolveFunction& solve) {
  SolveProblem without_xla = problem;
  without_xla.xla_plan = nullptr;
  return RunMembers(without_xla, limits, solve, QuickMembers(problem, limits));
}

absl::StatusOr<SolveResult> SolvePortfolioWithXla(const SolveProblem& problem,
                                                  const SolveLimits& limits,
                                                  const SolveFunction& solve) {
  std::vector<Member> members = QuickMembers(problem, limits);
  members.insert(members.begin(), {kXlaAssigned, 0.01});
  return RunMembers(problem, limits, solve, std::move(members));
}

}  // namespace mallocgame
