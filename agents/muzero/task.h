// A program as the agent trains on it: its game, what is seen of it, and the scale of its returns.
//
// The agent's game skips decisions with one legal action: they are played at once. Its reward is
// what a decision saves more than the baseline's game does over the same accesses: the lead gained.
// Leads telescope, so the return is how much better the end is than the baseline's, and the best
// play is the same. A unit is a thousandth of the baseline's latency.
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
  // `baseline` is a whole game's actions. InvalidArgument if it isn't.
  static absl::StatusOr<Task> Create(std::shared_ptr<const Game> game,
                                     const ObservationOptions& options,
                                     std::vector<uint8_t> baseline);

  const Game& game() const { return *game_; }
  const std::shared_ptr<const Game>& shared_game() const { return game_; }
  const Observer& observer() const { return observer_; }
  const std::vector<uint8_t>& baseline() const { return baseline_; }
  int64_t baseline_ps() const { return baseline_ps_.back(); }

  // How far `state` is ahead of where the baseline was at the same access, in units.
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
  // by access: the baseline's latency when it was asked about that or a later one
  std::vector<int64_t> baseline_ps_;
  double unit_ps_ = 1;
};

// Plays on while there is one legal action only.
void PlayForced(State& state);

// The game from the start that plays `prefix`, a legal beginning, and then what `follow` chose for
// the same access, or, where that is illegal, the next best (solvers/playing/preference_search.h). Returns
// the finished state.
State FollowGame(const Game& game, absl::Span<const uint8_t> prefix,
                 absl::Span<const uint8_t> follow);

}  // namespace mallocgame::muzero

#endif  // AGENTS_MUZERO_TASK_H_
