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
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "agents/muzero/config.h"
#include "mallocgame/game/observation.h"
#include "mallocgame/game/state.h"

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
  int64_t baseline_ps() const { return baseline_ps_.back(); }

  // The lead of `state` over the baseline when that came to the same access, in units.
  double Lead(const State& state) const;
  // The lead of a finished game of this latency.
  double LeadOf(int64_t latency_ps) const {
    return static_cast<double>(baseline_ps() - latency_ps) / unit_ps_;
  }

 private:
  Task(std::shared_ptr<const Game> game, Observer observer)
      : game_(std::move(game)), observer_(std::move(observer)) {}

  std::shared_ptr<const Game> game_;
  Observer observer_;
  std::vector<uint8_t> baseline_;
  // For each access, the baseline's latency when it decided about that access or a later one.
  std::vector<int64_t> baseline_ps_;
  double unit_ps_ = 1;
};

// Plays on while there is one legal action only.
void PlayForced(State& state);

// The game from the start that plays `prefix`, a legal beginning, and then what `follow` chose for
// the same access, or, where that is illegal, the next best (solvers/playing/preference_search.h).
// Returns the finished state.
State FollowGame(const Game& game, absl::Span<const uint8_t> prefix,
                 absl::Span<const uint8_t> follow);

}  // namespace mallocgame::muzero

#endif  // AGENTS_MUZERO_TASK_H_
