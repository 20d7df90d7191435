// Priority games that a learned policy plays: its network looks at all runs once, before the game,
// and each decision adds what the mode saves there and then.
#ifndef MALLOCGAME_SOLVERS_POLICY_POLICY_GAME_H_
#define MALLOCGAME_SOLVERS_POLICY_POLICY_GAME_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "mallocgame/game/game.h"
#include "mallocgame/game/mode.h"
#include "mallocgame/game/priority/priority_game.h"
#include "mallocgame/plan/plan.h"

namespace mallocgame {

// InvalidArgument: they aren't as many finite numbers as the network takes.
absl::Status CheckPolicyWeights(absl::Span<const float> weights);
// Those of the library, which benchmarks/quality/train_policy.py writes.
absl::Span<const float> LearnedPolicyWeights();
// The names of what the network reads of a run.
std::vector<std::string> PolicyFeatureNames();

class PolicyGame {
 public:
  // Of any game: its priority game with exact stalls and one candidate, which asks about small
  // buffers too.
  explicit PolicyGame(const Game& game);

  const Game& game() const { return *game_; }
  // What the network reads, [runs, PolicyFeatureNames()]. The order of the runs is that of Run::id.
  const std::vector<float>& features() const { return features_; }
  // How a plan serves each run: a mode of an action, or Mode::kOpen where it is part of a run that
  // is served whole.
  std::vector<Mode> ModesOf(const Plan& plan) const;

  // One game, with weights that CheckPolicyWeights accepts.
  struct Played {
    Plan plan;
    int64_t latency_ps = 0;
  };
  Played Play(absl::Span<const float> weights) const;

 private:
  std::shared_ptr<const PriorityGame> game_;
  std::vector<float> features_;
};

}  // namespace mallocgame

#endif  // MALLOCGAME_SOLVERS_POLICY_POLICY_GAME_H_
