#include "mallocgame/solvers/portfolio.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <limits>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "mallocgame/base/error.h"
#include "mallocgame/simulator/simulate.h"
#include "mallocgame/solvers/polish.h"

namespace mallocgame {
namespace {

constexpr const char* kXlaAssigned = "xla-assigned";
constexpr int64_t kHair = 10'000;  // one part in so many of the latency

struct Member {
  const char* solver;
  double solve_share;   // of the time limit, on one core: for the solver,
  double polish_share;  // and then for polishing its plan
  uint64_t seed = 0;    // added to the caller's
};

// The quick ones first, so that there is a good plan soon; annealing fills the rest of every core.
std::vector<Member> Members(const SolveLimits& limits, size_t cores) {
  std::vector<Member> members = {{"xla-heuristic", 0.05, 0.10}, {"greedy", 0.05, 0.01}, {"beam", 0.03, 0.01}};
  const size_t annealers = limits.seconds > 0 ? std::max<size_t>(2, cores) : 2;
  const double share = std::min((static_cast<double>(cores) - 0.2) / static_cast<double>(annealers), 0.95);
  for (size_t i = 0; i < annealers; ++i) members.push_back({"anneal", 0.65 * share, 0.35 * share, i});
  return members;
}

// The members' improvements as one falling curve.
class Curve {
 public:
  explicit Curve(const SolveLimits& limits) : limits_(limits), start_(std::chrono::steady_clock::now()) {}

  double Seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }
  bool Late(double deadline) const {
    return Seconds() >= std::min(deadline, limits_.seconds) || (limits_.cancel != nullptr && limits_.cancel->load());
  }

  void Add(const std::string& solver, int64_t latency_ps) {
    const std::lock_guard lock(mutex_);
    if (latency_ps >= best_) return;
    best_ = latency_ps;
    points_.push_back({Seconds(), latency_ps, solver});
    if (limits_.progress) limits_.progress(points_.back().seconds, latency_ps);
  }
  std::vector<Improvement> Take() { return std::move(points_); }

 private:
  const SolveLimits& limits_;
  std::chrono::steady_clock::time_point start_;
  std::mutex mutex_;
  int64_t best_ = std::numeric_limits<int64_t>::max();
  std::vector<Improvement> points_;
};

// The member's result, or the better plan that local search over the whole plan makes of it.
absl::StatusOr<SolveResult> Polish(const SolveProblem& problem, SolveResult result, uint64_t seed, const std::function<bool()>& late) {
  Polished polished = PolishPlan(*problem.game, result.plan, seed, late);
  result.evaluations += polished.evaluations;
  if (polished.latency_ps >= result.report.latency_ps) return result;
  MG_ASSIGN_OR_RETURN(result.report, Simulate(problem.game->cost_model(), problem.game->program(), problem.game->hardware(), polished.plan));
  result.plan = std::move(polished.plan);
  result.actions.clear();
  result.game = nullptr;
  result.found_by += ", polished";
  return result;
}

absl::StatusOr<SolveResult> Run(const SolveProblem& problem, const SolveLimits& limits, std::vector<Member> members, size_t cores) {
  Curve curve(limits);
  std::vector<std::optional<absl::StatusOr<SolveResult>>> results(members.size());
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < members.size(); i = next++) {
      SolveLimits own = limits;
      own.seconds = limits.seconds * members[i].solve_share;
      own.seed = limits.seed + members[i].seed;
      own.progress = [&, i](double, int64_t latency_ps) { curve.Add(members[i].solver, latency_ps); };
      results[i] = Solve(members[i].solver, problem, own);
      if (!results[i]->ok()) continue;
      const double deadline = curve.Seconds() + limits.seconds * members[i].polish_share;
      const auto late = [&curve, deadline] { return curve.Late(deadline); };
      results[i] = Polish(problem, **std::move(results[i]), own.seed, limits.seconds > 0 ? std::function<bool()>(late) : nullptr);
      if (results[i]->ok()) curve.Add((*results[i])->found_by, (*results[i])->report.latency_ps);
    }
  };
  std::vector<std::thread> threads;
  for (size_t i = 1; i < cores; ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();

  int64_t evaluations = 0, fastest = std::numeric_limits<int64_t>::max();
  for (const std::optional<absl::StatusOr<SolveResult>>& result : results) {
    MG_RETURN_IF_ERROR(result->status());
    evaluations += (*result)->evaluations;
    fastest = std::min(fastest, (*result)->report.latency_ps);
  }
  // Of plans as fast as the fastest, but for a hair, the one that a cold start slows least; never one slower than XLA's.
  int64_t limit = fastest + fastest / kHair;
  if (std::string(members[0].solver) == kXlaAssigned) limit = std::max(fastest, std::min(limit, (*results[0])->report.latency_ps));
  SolveResult* best = nullptr;
  for (std::optional<absl::StatusOr<SolveResult>>& result : results) {
    const Report& report = (*result)->report;
    if (report.latency_ps <= limit && (best == nullptr || report.latency_cold_ps < best->report.latency_cold_ps)) best = &**result;
  }
  SolveResult answer = std::move(*best);
  answer.evaluations = evaluations;
  answer.status = SolveStatus::kStopped;
  answer.curve = curve.Take();
  while (!answer.curve.empty() && answer.curve.back().latency_ps < answer.report.latency_ps) answer.curve.pop_back();
  if (answer.curve.empty() || answer.curve.back().latency_ps != answer.report.latency_ps) {
    answer.curve.push_back({curve.Seconds(), answer.report.latency_ps, answer.found_by});
  }
  return answer;
}

size_t Cores() { return std::max<size_t>(1, std::thread::hardware_concurrency()); }

}  // namespace

absl::StatusOr<SolveResult> SolvePortfolio(const SolveProblem& problem, const SolveLimits& limits) {
  return Run({problem.game, nullptr}, limits, Members(limits, Cores()), Cores());
}

absl::StatusOr<SolveResult> SolvePortfolioWithXla(const SolveProblem& problem, const SolveLimits& limits) {
  std::vector<Member> members = Members(limits, Cores());
  members.insert(members.begin(), {kXlaAssigned, 0.01, 0.04});
  return Run(problem, limits, std::move(members), Cores());
}

}  // namespace mallocgame
