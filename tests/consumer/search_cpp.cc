// The search in another program, with another game: two players take one to three stones in turn,
// and who takes the last one wins. Of seven stones the first player takes three.
#include <cmath>
#include <iostream>
#include <vector>

#include "mallocgame/tree/search.h"

namespace mcts = mallocgame::mcts;

class Stones final : public mcts::Model {
 public:
  int num_actions() const override { return 3; }

  absl::Status Reserve(int slots) override {
    stones_.resize(slots);
    return absl::OkStatus();
  }

  absl::Status Start(absl::Span<const mcts::RootRow> rows, const mcts::Predictions& out) override {
    for (size_t i = 0; i < rows.size(); ++i) Keep(7, rows[i].slot, i, out);
    return absl::OkStatus();
  }

  absl::Status Step(absl::Span<const mcts::StepRow> rows, const mcts::Predictions& out) override {
    for (size_t i = 0; i < rows.size(); ++i) {
      const int left = stones_[rows[i].parent_slot] - rows[i].action - 1;
      out.rewards[i] = left == 0 ? 1 : 0;
      out.discounts[i] = -1;  // then it is the other's turn
      Keep(left, rows[i].slot, i, out);
    }
    return absl::OkStatus();
  }

 private:
  void Keep(int stones, int slot, size_t row, const mcts::Predictions& out) {
    stones_[slot] = stones;
    out.terminal[row] = stones == 0;
    for (int a = 0; a < 3; ++a) out.legal[3 * row + a] = a < stones;
  }

  std::vector<int> stones_;
};

int main() {
  Stones model;
  mcts::SearchOptions options;
  options.simulations = 2000;
  const auto selection = mcts::MakeGumbel({});
  if (!selection.ok()) return 2;
  const auto search = mcts::Search::Create(options, *selection, 1, model.num_actions());
  if (!search.ok() || !(*search)->Run(model, 0).ok()) return 2;
  const int action = (*search)->action(0);
  std::cout << "takes " << action + 1 << ", value " << std::round((*search)->q(0)[action]) << "\n";
  return 0;
}
