#include "mallocgame/solvers/portfolio.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "mallocgame/base/deadline.h"
#include "mallocgame/base/error.h"
#include "mallocgame/base/worker_pool.h"
#include "mallocgame/search/game_variants.h"
#include "mallocgame/solvers/pipeline.h"

namespace mallocgame {
namespace {

constexpr const char* kXlaAssigned = "xla-assigned";

struct Member {
  std::string solver;
  // shares of the time limit on one core
  double solve_share;               // for the solver
  double arrange_share;             // for arranging its plan anew
  double polish_share;              // for polishing the result
  uint64_t seed = 0;                // added to the caller's
  GameKind game = GameKind::kTime;  // that the solver plays
};

// A core on which less time than this is left for annealing goes one way only: that gets further
// than two in half the time.
constexpr double kSecondsForTwo = 6;

// The quick members come first, so that there is a good plan within milliseconds. Annealing fills
// the rest of every core.
std::vector<Member> Members(const SolveProblem& problem, const SolveLimits& limits, size_t cores) {
  std::vector<Member> members = {
      {"rent", 0.02, 0, 0.01}, {"styles", 0.05, 0, 0.01}, {"xla-heuristic", 0.02, 0, 0.03}};
  constexpr double kQuick = 0.14;  // what these take
  constexpr double kLeast = 0.05;  // of a member that is worth beginning
  double extra = 0;
  for (const NamedSolver& solver : problem.extra_solvers) {
    const GameKind game = solver.games[0];
    if (solver.portfolio_share <= 0 || game == GameKind::kSchedule) continue;
    members.push_back({solver.name, solver.portfolio_share, 0, 0, 0, game});
    extra += solver.portfolio_share;
  }
  size_t annealers = 2;
  if (limits.seconds > 0)
    annealers = std::max<size_t>(cores, limits.seconds < kSecondsForTwo ? 1 : 2);
  // What is left is shared evenly. A member stays on its core, so where the extra solvers leave a
  // part of one, the last member gets that part.
  const auto on = static_cast<double>(annealers);
  const auto left = [&](double taken) {
    return std::clamp((static_cast<double>(cores) - taken) / on, kLeast, 0.95);
  };
  const bool part = annealers == cores && extra < left(kQuick) - kLeast;
  for (size_t i = 0; i < annealers; ++i) {
    double share = left(part ? kQuick : kQuick + extra);
    if (part && i + 1 == annealers) share -= extra;
    if (i % 2 == 0) {
      members.push_back({"anneal", 0.7 * share, 0.1 * share, 0.2 * share, i, GameKind::kPriority});
    } else {
      members.push_back({"packing", 0.8 * share, 0, 0.2 * share, i});
    }
  }
  return members;
}

// Collects the members' improvements in one falling curve.
class Curve {
 public:
  explicit Curve(const SolveLimits& limits)
      : limits_(limits), deadline_(limits.seconds, limits.cancel) {}

  const Deadline& deadline() const { return deadline_; }

  void Add(const std::string& solver, int64_t latency_ps) {
    const std::lock_guard lock(mutex_);
    if (latency_ps >= best_) return;
    best_ = latency_ps;
    points_.push_back({deadline_.seconds(), latency_ps, solver});
    if (limits_.progress) limits_.progress(points_.back().seconds, latency_ps);
  }
  std::vector<Improvement> Take() { return std::move(points_); }

 private:
  const SolveLimits& limits_;
  const Deadline deadline_;
  std::mutex mutex_;
  int64_t best_ = std::numeric_limits<int64_t>::max();
  std::vector<Improvement> points_;
};

absl::StatusOr<SolveResult> RunMember(const SolveProblem& problem, const SolveLimits& limits,
                                      const SolveFunction& solve, const Member& member,
                                      Curve& curve) {
  SolveLimits own = limits;
  own.seconds = limits.seconds * member.solve_share;
  own.seed = limits.seed + member.seed;
  own.progress = [&](double, int64_t latency_ps) { curve.Add(member.solver, latency_ps); };
  SolveProblem played = problem;
  played.game = GameOfKind(*problem.game, member.game);
  MG_ASSIGN_OR_RETURN(SolveResult result, solve(member.solver, played, own));
  curve.Add(member.solver, result.report.latency_ps);
  own.seconds = limits.seconds * member.arrange_share;
  if (limits.seconds > 0) {
    const double left = std::max(1e-9, limits.seconds - curve.deadline().seconds());
    own.seconds = std::min(own.seconds, left);
  }
  Pipeline pipeline(*problem.game, own);
  if (member.arrange_share > 0) {
    MG_RETURN_IF_ERROR(pipeline.Pack(*problem.game, 1, result));
    curve.Add(result.found_by, result.report.latency_ps);
  }
  if (member.polish_share > 0) {
    const Deadline deadline = curve.deadline().Sooner(limits.seconds * member.polish_share);
    MG_RETURN_IF_ERROR(pipeline.Refine(deadline, result));
    curve.Add(result.found_by, result.report.latency_ps);
  }
  return result;
}

// The fastest plan, but for preloads that save too little. None may be slower than `limit` (null:
// there is none), warm or cold.
SolveResult* Best(std::vector<absl::StatusOr<SolveResult>>& results, const Report* limit) {
  const auto allowed = [limit](const Report& report) {
    return limit == nullptr || (report.latency_ps <= limit->latency_ps &&
                                report.latency_cold_ps <= limit->latency_cold_ps);
  };
  SolveResult* best = nullptr;
  for (auto& result : results) {
    if (!result.ok()) continue;
    const Report& report = result->report;
    if (allowed(report) &&
        (best == nullptr || LatencyWithPreloads(report) < LatencyWithPreloads(best->report)))
      best = &*result;
  }
  return best;
}

absl::StatusOr<SolveResult> RunMembers(const SolveProblem& problem, const SolveLimits& limits,
                                       const SolveFunction& solve, std::vector<Member> members,
                                       size_t cores) {
  Curve curve(limits);
  std::vector<absl::StatusOr<SolveResult>> results(members.size());
  WorkerPool(static_cast<int>(cores)).Run(static_cast<int>(members.size()), 1, [&](int i, int) {
    results[i] = RunMember(problem, limits, solve, members[i], curve);
  });

  int64_t evaluations = 0;
  std::vector<std::string> failures;
  for (size_t i = 0; i < members.size(); ++i) {
    if (results[i].ok())
      evaluations += results[i]->evaluations;
    else
      failures.push_back(absl::StrCat(members[i].solver, ": ", results[i].status().message()));
  }
  // Without XLA's own plan nobody knows how fast a plan has to be.
  const bool has_limit = members[0].solver == kXlaAssigned;
  if (has_limit) MG_RETURN_IF_ERROR(results[0].status());
  SolveResult* const best = Best(results, has_limit ? &results[0]->report : nullptr);
  if (best == nullptr) return results[0].status();
  SolveResult answer = std::move(*best);
  answer.evaluations = evaluations;
  answer.failures = std::move(failures);
  answer.status = SolveStatus::kStopped;
  answer.curve = curve.Take();
  while (!answer.curve.empty() && answer.curve.back().latency_ps < answer.report.latency_ps)
    answer.curve.pop_back();
  if (answer.curve.empty() || answer.curve.back().latency_ps != answer.report.latency_ps) {
    answer.curve.push_back({curve.deadline().seconds(), answer.report.latency_ps, answer.found_by});
  }
  return answer;
}

}  // namespace

absl::StatusOr<SolveResult> SolvePortfolio(const SolveProblem& problem, const SolveLimits& limits,
                                           const SolveFunction& solve) {
  SolveProblem without_xla = problem;
  without_xla.xla_plan = nullptr;
  return RunMembers(without_xla, limits, solve, Members(problem, limits, UsableCores()),
                    UsableCores());
}

absl::StatusOr<SolveResult> SolvePortfolioWithXla(const SolveProblem& problem,
                                                  const SolveLimits& limits,
                                                  const SolveFunction& solve) {
  std::vector<Member> members = Members(problem, limits, UsableCores());
  members.insert(members.begin(), {{kXlaAssigned, 0.01, 0, 0}, {kXlaAssigned, 0.01, 0, 0.04}});
  return RunMembers(problem, limits, solve, std::move(members), UsableCores());
}

}  // namespace mallocgame
