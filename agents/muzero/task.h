// A task, as in multi-task reinforcement learning: a program as the agent plays it. It has the
// program's game, what is observed of it, and the scale of its returns.
//
// The agent skips decisions with one legal action, which are played at once. The reward of a
// decision is the lead gained: what it saves beyond what the baseline's game saves over the same
// accesses. These rewards add up to how much better the end is than that of the baseline, so the
// best play stays the same. A unit is a thousandth of the baseline's latency.
#ifndef AGENTS_MUZERO_TASK_H_
#define AGENTS_MUZERO_TASK_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "agents/muzero/config.h"
#include "mallocgame/game/observation.h"
#include "mallocgame/game/order/order_state.h"
#include "mallocgame/game/position.h"

namespace mallocgame::muzero {

class Task {
 public:
  // `baseline` holds the actions of a whole game. InvalidArgument: it does not.
  static absl::StatusOr<Task> Create(std::shared_ptr<const Game> game,
                                     const ObservationOptions& options,
                                     std::vector<uint8_t> baseline);

  const Game& game() const { return *game_; }
  const std::shared_ptr<const Game>& shared_game() const { return game_; }
  const Observer& observer() const { return observer_; }
  const std::vector<uint8_t>& baseline() const { return baseline_; }
  int64_t baseline_ps() const { return baseline_ps_; }

  // The lead of `position` over the baseline, in units: at the same access in the time game, with
  // the same accesses decided in the order game.
  double Lead(const Position& position) const;
  // The lead of a finished game of this latency.
  double LeadOf(int64_t latency_ps) const {
    return static_cast<double>(baseline_ps_ - latency_ps) / unit_ps_;
  }
  double unit_ps() const { return unit_ps_; }

 private:
  Task(std::shared_ptr<const Game> game, Observer observer)
      : game_(std::move(game)), observer_(std::move(observer)) {}

  void ReadTimeGame();
  void ReadOrderGame(const OrderState& end);
  int64_t BaselineAt(const Position& position) const;

  std::shared_ptr<const Game> game_;
  Observer observer_;
  std::vector<uint8_t> baseline_;
  int64_t baseline_ps_ = 0;
  // In the time game, for each access: the baseline's latency when it decided about that access or
  // a later one.
  std::vector<int64_t> latency_by_access_;
  // In the order game, for each run: what the baseline saves over its accesses. Where the baseline
  // decided about a longer run, the accesses share what that saves evenly.
  std::vector<int64_t> saved_by_run_;
  double unit_ps_ = 1;
};

// A decision of the order game takes several times as long as one of the time game. Where decisions
// are counted to limit time, it counts as so many.
inline constexpr int kOrderDecision = 4;
inline int CountOfDecision(const Game& game) {
  return game.options().kind == GameKind::kOrder ? kOrderDecision : 1;
}

// Plays on while there is one legal action only.
void PlayForced(Position& position);

// The position after `actions` from the start, which must be legal.
std::unique_ptr<Position> PositionAfter(const Game& game, absl::Span<const uint8_t> actions);

// The end of the game that plays `prefix`, a legal beginning, and then as the whole game `follow`
// did, or, where that is illegal, the next best (agents/mcts/follower.h).
std::unique_ptr<Position> FollowGame(const Game& game, absl::Span<const uint8_t> prefix,
                                     absl::Span<const uint8_t> follow);

}  // namespace mallocgame::muzero

#endif  // AGENTS_MUZERO_TASK_H_
