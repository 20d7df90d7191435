// What the search asks of a game: a Model is a learned network, the rules themselves, or anything
// that can say what follows from a position and an action. The search never sees a position: it
// hands out slots, the model keeps positions (or hidden states) under them.
//
// A model that knows no illegal actions, no rewards or no ends leaves those outputs alone: they are
// set beforehand.
#ifndef AGENTS_MCTS_MODEL_H_
#define AGENTS_MCTS_MODEL_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace mallocgame::mcts {

// A root of the search: its position is to be kept under `slot`.
struct RootRow {
  int32_t root;  // index of the root, in [0, Search::roots())
  int32_t slot;
};

// A step of the game: from the position under `parent_slot`, by `action`, which is legal there, to
// a new one, to be kept under `slot`. A slot that is written again is free of what it held before.
struct StepRow {
  int32_t root;
  int32_t parent_slot;
  int32_t action;
  int32_t slot;
};

// What a model says of the positions of a batch: row i of each array is about row i of the request.
// The arrays belong to the search and live for the call. All are row-major and contiguous.
struct Predictions {
  // [rows, actions] of the policy; finite or -infinity where legal; set to 0
  absl::Span<float> logits;
  // [rows] expected return from the position on; finite; ignored where terminal; set to 0
  absl::Span<float> values;
  // [rows] of the step that led here; finite; ignored at roots; set to 0
  absl::Span<float> rewards;
  // [rows] of what follows that step, in [-1, 1]; set to SearchOptions::discount. -1: a game of two
  // players whose value is always the mover's
  absl::Span<float> discounts;
  // [rows, actions] 1 if legal in the position, else 0; set to 1. At least one unless terminal
  absl::Span<uint8_t> legal;
  absl::Span<uint8_t> terminal;  // [rows] 1 if the game is over in the position, else 0; set to 0
};

// Called by one thread at a time. An error ends the search, which passes it on.
class Model {
 public:
  virtual ~Model() = default;

  // Actions are 0, 1 ... num_actions() - 1. Does not change.
  virtual int num_actions() const = 0;

  // Slots will be in [0, slots). Called at the begin of each search; no slot written before becomes
  // invalid.
  virtual absl::Status Reserve(int slots) = 0;

  // The roots' positions, which the model knows by means of its own (an observation, a game's
  // state).
  virtual absl::Status Start(absl::Span<const RootRow> rows, const Predictions& out) = 0;

  // Steps. No row's parent is another row's position. Rows of one root stand together.
  virtual absl::Status Step(absl::Span<const StepRow> rows, const Predictions& out) = 0;

  // The position under `slot`, a successor of root `root`'s, is that root's from now on
  // (Search::Advance); positions that do not follow from it are not asked about again. For models
  // that keep a position as the steps from its root.
  virtual absl::Status Advance(int root, int slot) {
    static_cast<void>(root), static_cast<void>(slot);
    return absl::OkStatus();
  }
};

}  // namespace mallocgame::mcts

#endif  // AGENTS_MCTS_MODEL_H_
