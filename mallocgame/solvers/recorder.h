// What one Solve call has found so far: its evaluations and its curve, which the caller is told of
// as it grows. Every stage of the call gets the same one.
#pragma once

#include <cstdint>
#include <limits>
#include <mutex>
#include <string>
#include <vector>

#include "mallocgame/base/deadline.h"
#include "mallocgame/solvers/solver.h"

namespace mallocgame {

// For several threads at once, but for curve() and Finish().
class Recorder {
 public:
  // Time runs from here. `limits` must outlive the recorder. Its deadline passes with the time of
  // the limits and, unless `evaluations` is 0, when so many are counted.
  explicit Recorder(const SolveLimits& limits, int64_t evaluations = 0)
      : limits_(limits), games_{evaluations},
        deadline_(Deadline(limits.seconds, limits.cancel).WithGames(games_)) {}
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  const SolveLimits& limits() const { return limits_; }
  // Whoever plays until it passes counts each game with it (Deadline::Played).
  const Deadline& deadline() const { return deadline_; }
  double seconds() const { return deadline_.seconds(); }
  int64_t evaluations() const { return games_.played; }
  bool OutOfEvaluations() const { return games_.IsUsedUp(); }
  void Count(int64_t evaluations) { games_.played += evaluations; }

  // `by`, a solver, has found a plan or a game of this latency. Returns whether it is the best so
  // far; then the caller is told.
  bool Found(int64_t latency_ps, const std::string& by = {}) {
    const std::lock_guard lock(mutex_);
    if (latency_ps >= best_ps_) return false;
    best_ps_ = latency_ps;
    curve_.push_back({seconds(), latency_ps, by});
    if (limits_.progress) limits_.progress(curve_.back().seconds, latency_ps);
    return true;
  }
  // The least latency found.
  int64_t best_ps() const { return best_ps_; }
  const std::vector<Improvement>& curve() const { return curve_; }

  // Gives a result its evaluations and its curve, which ends with the result's own latency, or
  // value (search/plan_cost.h): less was found only for what came to nothing.
  void Finish(SolveResult& result) const { Finish(result, result.report.latency_ps); }
  void Finish(SolveResult& result, int64_t latency_ps) const {
    result.evaluations = evaluations();
    result.curve = curve_;
    while (!result.curve.empty() && result.curve.back().latency_ps < latency_ps)
      result.curve.pop_back();
    if (result.curve.empty() || result.curve.back().latency_ps != latency_ps)
      result.curve.push_back({seconds(), latency_ps, result.found_by});
  }

 private:
  const SolveLimits& limits_;
  GameCount games_;
  const Deadline deadline_;
  std::mutex mutex_;
  int64_t best_ps_ = std::numeric_limits<int64_t>::max();
  std::vector<Improvement> curve_;
};

}  // namespace mallocgame
