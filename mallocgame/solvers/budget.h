// The recorder of a Solve call that plays: it also keeps the call's limits and the best game.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "mallocgame/game/game.h"
#include "mallocgame/game/position.h"
#include "mallocgame/solvers/recorder.h"
#include "mallocgame/solvers/solver.h"

namespace mallocgame {

class Budget : public Recorder {
 public:
  explicit Budget(const SolveLimits& limits) : Recorder(limits, limits.evaluations) {}

  bool Exhausted() const { return deadline().Passed(); }
  // Whether games are counted, and so few may be played that none is to spare for a warm start of
  // another kind.
  bool HasFewGames() const { return limits().evaluations > 0 && limits().evaluations <= kFewGames; }
  // The share of the limits that is used up, in [0, 1]; 0 if there are none.
  double Progress() const {
    if (limits().evaluations > 0) return std::min(1.0, UsedBy(evaluations()));
    return limits().seconds > 0 ? std::min(1.0, seconds() / limits().seconds) : 0;
  }
  // The same for a search that counts evaluations of its own.
  double Progress(int64_t evaluations) const {
    if (Exhausted()) return 1;
    return limits().evaluations > 0 ? UsedBy(evaluations) : Progress();
  }
  uint64_t seed() const { return limits().seed; }

  // Counts an evaluation whose game is not to be kept.
  void Looked() { Count(1); }
  // Counts a finished game, and keeps it if it is the best so far.
  void Finished(const Position& end) {
    Count(1);
    Keep(end);
  }
  // Keeps a finished game that is counted already if it is the best so far.
  void Keep(const Position& end) {
    if (!Found(end.latency_ps())) return;
    best_ = {{end.actions().begin(), end.actions().end()}, end.shared_game(), {}, {}};
  }
  // Keeps a finished game, with what its searches said of each decision, if none is better.
  void Searched(const Position& end, SearchStatistics search) {
    if (end.latency_ps() > best_ps()) return;
    best_ = {
        {end.actions().begin(), end.actions().end()}, end.shared_game(), {}, std::move(search)};
  }
  const Play& best_play() const { return best_; }
  bool limited() const { return limits().evaluations > 0 || limits().seconds > 0; }

 private:
  static constexpr int64_t kFewGames = 100;

  double UsedBy(int64_t evaluations) const {
    return static_cast<double>(evaluations) / static_cast<double>(limits().evaluations);
  }

  Play best_;
};

}  // namespace mallocgame
