// A game of random numbers, with which the search alone is measured. What the model says of a
// position is a row of a table, chosen by a hash of the steps that led there. No model costs less.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "mallocgame/base/rng.h"
#include "mallocgame/tree/model.h"

namespace mallocgame::mcts {

class TableModel final : public Model {
 public:
  explicit TableModel(int num_actions) : num_actions_(num_actions), logits_(kRows * num_actions) {
    Rng rng(0);
    for (float& logit : logits_) logit = 2 * static_cast<float>(rng.Uniform()) - 1;
    for (size_t row = 0; row < kRows; ++row) {
      values_.push_back(static_cast<float>(rng.Uniform()));
      rewards_.push_back(static_cast<float>(rng.Uniform()) * 0.1f);
    }
  }

  int num_actions() const override { return num_actions_; }

  absl::Status Reserve(int slots) override {
    keys_.resize(std::max(keys_.size(), static_cast<size_t>(slots)));
    return absl::OkStatus();
  }

  absl::Status Start(absl::Span<const RootRow> rows, const Predictions& out) override {
    for (size_t i = 0; i < rows.size(); ++i)
      Write(rows[i].slot, Mixed(static_cast<uint32_t>(rows[i].root)), i, out);
    return absl::OkStatus();
  }

  absl::Status Step(absl::Span<const StepRow> rows, const Predictions& out) override {
    for (size_t i = 0; i < rows.size(); ++i) {
      const uint32_t parent = keys_[rows[i].parent_slot];
      Write(rows[i].slot, Mixed(parent + 1 + static_cast<uint32_t>(rows[i].action)), i, out);
    }
    return absl::OkStatus();
  }

 private:
  static constexpr size_t kRows = 1024;

  static uint32_t Mixed(uint32_t x) {
    x = (x ^ (x >> 16)) * 0x7FEB352Du;
    x = (x ^ (x >> 15)) * 0x846CA68Bu;
    return x ^ (x >> 16);
  }

  void Write(int32_t slot, uint32_t key, size_t i, const Predictions& out) {
    keys_[slot] = key;
    const size_t row = key % kRows, actions = num_actions_;
    std::copy_n(&logits_[row * actions], actions, &out.logits[i * actions]);
    out.values[i] = values_[row];
    out.rewards[i] = rewards_[row];
  }

  int num_actions_;
  std::vector<float> logits_, values_, rewards_;
  std::vector<uint32_t> keys_;
};

}  // namespace mallocgame::mcts
