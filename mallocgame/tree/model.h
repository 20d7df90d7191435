// What the search asks of a game. A Model is a learned network, the rules themselves, or anything
// else that can say what follows from a position and an action. The search never sees a position:
// it hands out slots, and the model keeps positions (or hidden states) under them.
//
// A model that knows no illegal actions, no rewards or no ends leaves those outputs alone: they
// hold suitable values beforehand.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace mallocgame::mcts {

// A root of the search. The model keeps its position under `slot`.
struct RootRow {
  int32_t root;  // index of the root, in [0, Search::roots())
  int32_t slot;
};

// A step of the game: `action`, which is legal in the position under `parent_slot`, leads to a new
// position, which the model keeps under `slot` in place of what was there before.
struct StepRow {
  int32_t root;
  int32_t parent_slot;
  int32_t action;
  int32_t slot;
};

// What a model says of the positions of a batch. Row i of each array is about row i of the request.
// The arrays are row-major and contiguous; they belong to the search and live for the call.
struct Predictions {
  // [rows, actions]: logits of the policy, finite or -infinity where the action is legal. They are
  // 0 beforehand.
  absl::Span<float> logits;
  // [rows]: the expected return from the position on, finite, and ignored where the position is
  // terminal. It is 0 beforehand.
  absl::Span<float> values;
  // [rows]: the reward of the step that led to the position, finite, and ignored at roots. It is 0
  // beforehand.
  absl::Span<float> rewards;
  // [rows]: the discount in [-1, 1] of what follows that step. It is SearchOptions::discount
  // beforehand. With -1 the game has two players, and a value is always that of the player to move.
  absl::Span<float> discounts;
  // [rows, actions]: 1 if the action is legal in the position, else 0. At least one is legal unless
  // the position is terminal. All are 1 beforehand.
  absl::Span<uint8_t> legal;
  // [rows]: 1 if the game is over in the position, else 0. It is 0 beforehand.
  absl::Span<uint8_t> terminal;
};

// One thread at a time calls a model. An error ends the search, which passes it on.
class Model {
 public:
  virtual ~Model() = default;

  // Actions are 0, 1 ... num_actions() - 1. The number never changes.
  virtual int num_actions() const = 0;

  // Announces that slots will be in [0, slots), at the start of each search. Slots that were
  // written before stay valid.
  virtual absl::Status Reserve(int slots) = 0;

  // Predicts the positions of roots. The model has its own way to know them, such as an observation
  // or the state of a game.
  virtual absl::Status Start(absl::Span<const RootRow> rows, const Predictions& out) = 0;

  // Predicts the positions after steps. The parent of a row is never the new position of another
  // row. The rows of one root stand together.
  virtual absl::Status Step(absl::Span<const StepRow> rows, const Predictions& out) = 0;

  // Tells that the position under `slot`, a successor of the position of `root`, is the position of
  // that root from now on (Search::Advance). Positions that do not follow from it are not asked
  // about again. Models that keep a position as the steps from its root need this.
  virtual absl::Status Advance(int root, int slot) {
    static_cast<void>(root), static_cast<void>(slot);
    return absl::OkStatus();
  }
};

}  // namespace mallocgame::mcts
