// Models without a network: one with random numbers by a key that each step hashes, and a take-away
// game with known values.
#pragma once

#include <cstdint>
#include <vector>

#include "mallocgame/base/rng.h"
#include "mallocgame/tree/model.h"

namespace mallocgame::mcts::testing {

// A position is a key, from which the predictions are drawn. The model also counts how often the
// search breaks the rules of Model.
class KeyModel final : public Model {
 public:
  struct Shape {
    int num_actions = 3;
    bool masks = false;      // some actions are illegal
    bool ends = false;       // some positions are terminal
    uint32_t first_key = 1;  // of root 0
  };

  explicit KeyModel(const Shape& shape) : shape_(shape) {}

  int num_actions() const override { return shape_.num_actions; }
  absl::Status Reserve(int slots) override {
    if (slots_.size() < static_cast<size_t>(slots)) slots_.resize(slots);
    return absl::OkStatus();
  }
  absl::Status Start(absl::Span<const RootRow> rows, const Predictions& out) override {
    largest_batch = std::max(largest_batch, rows.size());
    for (size_t i = 0; i < rows.size(); ++i)
      Describe(Mixed(shape_.first_key + static_cast<uint32_t>(rows[i].root)), rows[i].slot, i, out);
    return absl::OkStatus();
  }
  absl::Status Step(absl::Span<const StepRow> rows, const Predictions& out) override {
    largest_batch = std::max(largest_batch, rows.size());
    for (size_t i = 0; i < rows.size(); ++i) {
      const Position parent = slots_.at(rows[i].parent_slot);
      ++steps;
      if (parent.terminal || !(parent.legal >> rows[i].action & 1)) ++illegal_steps;
      Describe(Mixed(parent.key * 31 + 1 + static_cast<uint32_t>(rows[i].action)), rows[i].slot, i,
               out);
    }
    return absl::OkStatus();
  }

  int64_t steps = 0, illegal_steps = 0;
  size_t largest_batch = 0;

 private:
  struct Position {
    uint32_t key = 0;
    uint64_t legal = 0;
    bool terminal = false;
  };

  static uint32_t Mixed(uint32_t x) {
    x = (x ^ (x >> 16)) * 0x7FEB352Du;
    x = (x ^ (x >> 15)) * 0x846CA68Bu;
    return x ^ (x >> 16);
  }

  void Describe(uint32_t key, int32_t slot, size_t row, const Predictions& out) {
    Rng rng(key);
    const size_t actions = shape_.num_actions;
    Position& position = slots_.at(slot);
    position = {key, 0, shape_.ends && rng.Below(5) == 0};
    for (size_t a = 0; a < actions; ++a) {
      out.logits[row * actions + a] = static_cast<float>(4 * rng.Uniform() - 2);
      const bool legal = !shape_.masks || rng.Below(2) == 0;
      position.legal |= uint64_t{legal} << a;
    }
    if (position.legal == 0) position.legal = uint64_t{1} << rng.Below(actions);
    for (size_t a = 0; a < actions; ++a)
      out.legal[row * actions + a] = static_cast<uint8_t>(position.legal >> a & 1);
    out.values[row] = static_cast<float>(rng.Uniform());
    out.rewards[row] = static_cast<float>(rng.Uniform() / 4);
    out.terminal[row] = static_cast<uint8_t>(position.terminal);
  }

  Shape shape_;
  std::vector<Position> slots_;
};

// Two players take one to three stones in turn, and who takes the last one wins. The player who is
// to move with a multiple of four loses. Values and rewards are those of the player to move. The
// model itself knows nothing: its values are 0.
class StonesModel final : public Model {
 public:
  explicit StonesModel(std::vector<int> stones) : start_(std::move(stones)) {}

  int num_actions() const override { return 3; }
  absl::Status Reserve(int slots) override {
    stones_.resize(slots);
    return absl::OkStatus();
  }
  absl::Status Start(absl::Span<const RootRow> rows, const Predictions& out) override {
    for (size_t i = 0; i < rows.size(); ++i) Describe(start_[rows[i].root], rows[i].slot, i, out);
    return absl::OkStatus();
  }
  absl::Status Step(absl::Span<const StepRow> rows, const Predictions& out) override {
    for (size_t i = 0; i < rows.size(); ++i) {
      const int left = stones_[rows[i].parent_slot] - rows[i].action - 1;
      out.rewards[i] = left == 0 ? 1 : 0;
      out.discounts[i] = -1;
      Describe(left, rows[i].slot, i, out);
    }
    return absl::OkStatus();
  }

 private:
  void Describe(int stones, int32_t slot, size_t row, const Predictions& out) {
    stones_[slot] = stones;
    out.terminal[row] = stones == 0;
    for (size_t a = 0; a < 3; ++a) out.legal[row * 3 + a] = static_cast<int>(a) < stones;
  }

  std::vector<int> start_, stones_;
};

}  // namespace mallocgame::mcts::testing
