// The true rules of mallocGame as a Model, for search without learned dynamics, in the time game or
// in the priority game. An Evaluator, such as a rollout or a network, says what positions are worth
// and which actions look good.
//
// Positions are not copied. Each root has one, which becomes the position in question by undoing
// and applying decisions.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "mallocgame/base/worker_pool.h"
#include "mallocgame/game/position.h"
#include "mallocgame/tree/model.h"

namespace mallocgame::mcts {

class Evaluator {
 public:
  virtual ~Evaluator() = default;

  // Called before a batch of `rows` positions.
  virtual void Begin(int rows) { static_cast<void>(rows); }
  // Looks at a position, which may be terminal. It belongs to the model: what is played on it must
  // be undone. Several threads may call this at the same time for positions of different
  // roots.
  virtual void Look(int row, int root, Position& position) = 0;
  // Called after Look for all rows. Writes the policy logits [rows, actions] and the values [rows],
  // which are the expected sums of rewards from the positions on. Both are 0 beforehand, and may
  // stay so in terminal rows.
  virtual absl::Status Finish(absl::Span<float> logits, absl::Span<float> values) = 0;
};

// A reward is the saved share of the all-main latency, as in the environments.
class GameModel final : public Model {
 public:
  // Makes one root for each start. `evaluator` must outlive the model. The threads share the roots
  // among them. InvalidArgument: there is no start, the games have different numbers of actions, or
  // `threads` is outside [1, 1024].
  static absl::StatusOr<std::unique_ptr<GameModel>> Create(
      std::vector<std::unique_ptr<Position>> starts, Evaluator* evaluator, int threads = 1);

  // The position of a root.
  const Position& position(int root);
  // Sets the position of a root, of a game with the same number of actions. If the root has been
  // searched, Search::Forget must be called too.
  void SetPosition(int root, std::unique_ptr<Position> position);

  int num_actions() const override { return num_actions_; }
  absl::Status Reserve(int slots) override;
  absl::Status Start(absl::Span<const RootRow> rows, const Predictions& out) override;
  absl::Status Step(absl::Span<const StepRow> rows, const Predictions& out) override;
  absl::Status Advance(int root, int slot) override;

 private:
  // How a position is reached.
  struct Slot {
    int32_t parent = -1;  // -1 for the position of the root
    uint8_t action = 0;
  };
  struct Walker {
    std::unique_ptr<Position> position;  // the root's position with decisions after it
    int base;                            // number of decisions up to the root's position
    std::vector<uint8_t> path;
  };

  GameModel(std::vector<std::unique_ptr<Position>> starts, Evaluator* evaluator, int threads);
  void WalkTo(Walker& walker, int32_t slot);
  void Describe(Walker& walker, int root, size_t row, const Predictions& out);

  Evaluator* evaluator_;
  int num_actions_;
  std::vector<Walker> walkers_;
  std::vector<Slot> slots_;
  std::unique_ptr<WorkerPool> pool_;
};

}  // namespace mallocgame::mcts
