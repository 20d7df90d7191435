// A task, as in multi-task reinforcement learning: a program as the agent plays it. It has the
// program's game, what is observed of it, and the scale of its returns.
//
// The agent skips decisions with one legal action, which are played at once. The reward of a
// decision is the lead gained: what it saves beyond what the baseline's game saves over the same
// accesses. These rewards add up to how much better the end is than that of the baseline, so the
// best play stays the same. A unit is a thousandth of the baseline's latency.
//
// The baseline of MuZero as published is the game that leaves everything in main memory, of which
// nothing is seen. Else what is still to be gained depends on the baseline. So the strong agent
// sees, behind the observation of the position, what the baseline does there and how far ahead of
// it the agent is:
//
//   baseline     [num_actions, 2]: 1 for the actions that serve an access or a run as the baseline
//                served it; and 1 for the one of them that the baseline took first. They are the
//                same in the time game, and where the schedule game asks about the order: of the
//                units that can come next the baseline takes the one that came first in its order.
//   lead         [2]: the lead in units, x / (x + 1) and (sqrt(x + 1) - 1) / 32, each negative
//                for a negative x.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "agents/muzero/baseline.h"
#include "agents/muzero/config.h"
#include "mallocgame/game/observation.h"
#include "mallocgame/game/position.h"
#include "mallocgame/hardware/hardware.h"
#include "mallocgame/plan/plan.h"
#include "mallocgame/solvers/solver.h"

namespace mallocgame::muzero {

// What an agent is trained on. Where the program has two sets of prices (AtBothPrices of
// search/plan_cost.h), games count its own, and plans are compared by their value at both.
struct TrainingProblem {
  std::string name;  // as the caller knows it
  std::shared_ptr<const Program> program;
  Hardware hardware;
  std::optional<Plan> xla_plan;
  // A game that is played as it is, but for the number of candidates; else it is that of the
  // config, and a priority game has the weights of importance that promise most.
  std::shared_ptr<const GameOptions> own_game = nullptr;
};

// The game to begin with. InvalidArgument: options out of range, an own game of another name, or
// with other actions, than the config's, or two sets of prices where the order is decided too.
absl::StatusOr<std::shared_ptr<const Game>> GameOf(const TrainingProblem& problem,
                                                   const Config& config);

class Task {
 public:
  // `baseline` holds the actions of a whole game. InvalidArgument: the game isn't whole.
  static absl::StatusOr<Task> Create(std::shared_ptr<const Game> game, const Config& config,
                                     std::vector<uint8_t> baseline);

  const Game& game() const { return *game_; }
  const std::shared_ptr<const Game>& shared_game() const { return game_; }
  int observation_size() const;
  // Writes what the agent sees of `position`, observation_size() numbers.
  void Observe(const Position& position, float* out) const;
  const std::vector<uint8_t>& baseline() const { return baseline_; }
  int64_t baseline_ps() const { return baseline_ps_; }

  // The lead of `position` over the baseline, in units, where the baseline stands alike
  // (Baseline::LatencyAt), less its penalties.
  double Lead(const Position& position) const;
  double unit_ps() const { return unit_ps_; }

 private:
  Task(std::shared_ptr<const Game> game, Observer observer, bool sees_baseline)
      : game_(std::move(game)), observer_(std::move(observer)), sees_baseline_(sees_baseline) {}

  std::shared_ptr<const Game> game_;
  Observer observer_;
  bool sees_baseline_;
  std::vector<uint8_t> baseline_;
  int64_t baseline_ps_ = 0;
  std::shared_ptr<const Baseline> seen_;  // what the baseline does and saves
  double unit_ps_ = 1;
};

// A game as bytes and back, without its program: its name and options, which must be those of the
// config's game, with as many actions.
void WriteOwnGame(const Game& game, std::string& out);
absl::StatusOr<std::shared_ptr<const Game>> ReadOwnGame(
    absl::string_view& in, const std::shared_ptr<const Program>& program, const Hardware& hardware,
    const Config& config);

// A task as bytes and back, without its program. InvalidArgument: the bytes are damaged.
void WriteTask(const Task& task, std::string& out);
absl::StatusOr<Task> ReadTask(absl::string_view& in, const std::shared_ptr<const Program>& program,
                              const Hardware& hardware, const Config& config);

// How much the agent sees beside the observation: behind it, row-major, the baseline's features of
// each action (baseline.h), and then the lead's.
inline constexpr int kLeadFeatures = 2;

// Plays on while there is one legal action only.
void PlayForced(Position& position);

// The position after `actions` from the start, which must be legal.
std::unique_ptr<Position> PositionAfter(const Game& game, absl::Span<const uint8_t> actions);

// What the whole game `actions` finds.
absl::StatusOr<SolveResult> ResultOf(const std::shared_ptr<const Game>& game,
                                     absl::Span<const uint8_t> actions);

// The end of the game that plays `prefix`, a legal beginning, and then as the whole game `follow`
// did, or, where that is illegal, the next best (mcts::MakePolicy).
std::unique_ptr<Position> FollowGame(const Game& game, absl::Span<const uint8_t> prefix,
                                     absl::Span<const uint8_t> follow);

}  // namespace mallocgame::muzero
