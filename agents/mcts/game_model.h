// mallocGame's true rules as a Model: search without a learned dynamics. What a position is worth,
// and which actions look good, an Evaluator says: a rollout, a network, anything.
//
// Positions are not copied: each root has one State, which walks to the position asked about by
// undoing and applying decisions.
#ifndef AGENTS_MCTS_GAME_MODEL_H_
#define AGENTS_MCTS_GAME_MODEL_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "agents/mcts/model.h"
#include "mallocgame/base/worker_pool.h"
#include "mallocgame/game/state.h"

namespace mallocgame::mcts {

class Evaluator {
 public:
  virtual ~Evaluator() = default;

  // Before a batch of `rows` positions.
  virtual void Begin(int rows) { static_cast<void>(rows); }
  // Looks at a position; terminal ones too. The state belongs to the model: what is played on it
  // must be undone. With several threads, called for positions of different roots at the same time.
  virtual void Look(int row, int root, State& state) = 0;
  // After all rows were looked at: policy logits [rows, actions], set to 0, and the values [rows]
  // of the positions: expected sums of rewards from there on, set to 0. Rows that are terminal need
  // none.
  virtual absl::Status Finish(absl::Span<float> logits, absl::Span<float> values) = 0;
};

// Rewards are shares of the all-main latency saved, as the environments' are.
class GameModel final : public Model {
 public:
  // One root a start. `evaluator` must outlive the model; `threads` share out the roots.
  // InvalidArgument: no start, games with different numbers of actions, threads outside of [1,
  // 1024].
  static absl::StatusOr<std::unique_ptr<GameModel>> Create(std::vector<State> starts,
                                                           Evaluator* evaluator, int threads = 1);

  // The position of a root.
  const State& state(int root);
  // Another one, of a game with as many actions. For a root that has been searched, call
  // Search::Forget too.
  void SetState(int root, State state);

  int num_actions() const override { return num_actions_; }
  absl::Status Reserve(int slots) override;
  absl::Status Start(absl::Span<const RootRow> rows, const Predictions& out) override;
  absl::Status Step(absl::Span<const StepRow> rows, const Predictions& out) override;
  absl::Status Advance(int root, int slot) override;

 private:
  // How a position is reached.
  struct Slot {
    int32_t parent = -1;  // -1: the root's own
    uint8_t action = 0;
  };
  struct Walker {
    State state;  // the root's position, and decisions after it
    int base;     // decisions up to the root's position
    std::vector<uint8_t> path;
  };

  GameModel(std::vector<State> starts, Evaluator* evaluator, int threads);
  void WalkTo(Walker& walker, int32_t slot);
  void Describe(Walker& walker, int root, size_t row, const Predictions& out);

  Evaluator* evaluator_;
  int num_actions_;
  std::vector<Walker> walkers_;
  std::vector<Slot> slots_;
  std::unique_ptr<WorkerPool> pool_;
};

}  // namespace mallocgame::mcts

#endif  // AGENTS_MCTS_GAME_MODEL_H_
