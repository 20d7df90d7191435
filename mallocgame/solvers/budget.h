// Keeps the limits of one Solve call while it runs, and the best game that it has seen.
#ifndef MALLOCGAME_SOLVERS_BUDGET_H_
#define MALLOCGAME_SOLVERS_BUDGET_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "mallocgame/base/deadline.h"
#include "mallocgame/game/game.h"
#include "mallocgame/game/position.h"
#include "mallocgame/solvers/solver.h"

namespace mallocgame {

class Budget {
 public:
  // Time runs from here. `limits` must outlive the budget.
  explicit Budget(const SolveLimits& limits)
      : limits_(limits), games_{limits.evaluations},
        deadline_(Deadline(limits.seconds, limits.cancel).WithGames(games_)) {}
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  // Whoever plays until it passes counts each game with it (Deadline::Played).
  const Deadline& deadline() const { return deadline_; }
  double seconds() const { return deadline_.seconds(); }
  bool OutOfEvaluations() const { return games_.IsUsedUp(); }
  bool Exhausted() const { return deadline_.Passed(); }
  // Whether games are counted, and so few may be played that none is to spare for a warm start of
  // another kind.
  bool HasFewGames() const { return games_.limit > 0 && games_.limit <= kFewGames; }
  // The share of the limits that is used up, in [0, 1]; 0 if there are none.
  double Progress() const {
    const double time =
        limits_.evaluations <= 0 && limits_.seconds > 0 ? seconds() / limits_.seconds : 0;
    const double games = limits_.evaluations > 0 ? static_cast<double>(games_.played) /
                                                       static_cast<double>(limits_.evaluations)
                                                 : 0;
    return std::min(1.0, std::max(time, games));
  }
  // The same for a search that counts evaluations of its own.
  double Progress(int64_t evaluations) const {
    if (deadline_.Passed()) return 1;
    return limits_.evaluations > 0
               ? static_cast<double>(evaluations) / static_cast<double>(limits_.evaluations)
               : Progress();
  }
  int64_t evaluations() const { return games_.played; }
  uint64_t seed() const { return limits_.seed; }

  // Counts an evaluation whose game is not to be kept.
  void Looked() { ++games_.played; }
  // Counts a finished game, and keeps it if it is the best so far.
  void Finished(const Position& end) {
    ++games_.played;
    Keep(end);
  }
  // Keeps a finished game that is counted already if it is the best so far.
  void Keep(const Position& end) {
    if (end.latency_ps() >= best_latency_ps_) return;
    best_latency_ps_ = end.latency_ps();
    best_actions_.assign(end.actions().begin(), end.actions().end());
    best_game_ = end.shared_game();
    best_search_ = {};
    curve_.push_back({seconds(), best_latency_ps_, {}});
    if (limits_.progress) limits_.progress(seconds(), best_latency_ps_);
  }
  // Keeps a finished game, with what its searches said of each decision, if none is better.
  void Searched(const Position& end, SearchStatistics search) {
    if (end.latency_ps() > best_latency_ps_) return;
    best_actions_.assign(end.actions().begin(), end.actions().end());
    best_game_ = end.shared_game();
    best_search_ = std::move(search);
  }
  const SearchStatistics& best_search() const { return best_search_; }
  const std::vector<uint8_t>& best_actions() const { return best_actions_; }
  const std::shared_ptr<const Game>& best_game() const { return best_game_; }
  const std::vector<Improvement>& curve() const { return curve_; }
  bool limited() const { return limits_.evaluations > 0 || limits_.seconds > 0; }

 private:
  static constexpr int64_t kFewGames = 100;

  const SolveLimits& limits_;
  GameCount games_;
  Deadline deadline_;
  int64_t best_latency_ps_ = std::numeric_limits<int64_t>::max();
  std::vector<uint8_t> best_actions_;
  std::shared_ptr<const Game> best_game_;
  SearchStatistics best_search_;
  std::vector<Improvement> curve_;
};

}  // namespace mallocgame

#endif  // MALLOCGAME_SOLVERS_BUDGET_H_
