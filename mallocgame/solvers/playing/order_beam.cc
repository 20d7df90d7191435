// Beam search over the order game. Of all positions after the same number of decisions only the
// best few live on: those with the lower latency with everything open in main memory. The most
// important candidate is always taken. The width doubles from 1 until the limits end the search;
// before all that, greedy's games are played.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "mallocgame/base/error.h"
#include "mallocgame/solvers/playing/order_search.h"

namespace mallocgame {
namespace {

constexpr size_t kMaxOrderWidth = 4096;

struct OrderCandidate {
  size_t parent;
  int action;
  int64_t latency_ps;
};

// Returns false if the deadline ended it.
bool PlayOrderWidth(const Game& game, size_t width, Budget& budget) {
  std::vector<OrderState> here(1, OrderState(game.shared_from_this())), next;
  std::vector<OrderCandidate> candidates;
  while (!here.empty()) {
    if (budget.deadline().Passed()) return false;
    candidates.clear();
    for (size_t i = 0; i < here.size(); ++i) {
      OrderState& state = here[i];
      if (state.IsTerminal()) {
        budget.Finished(state);
        continue;
      }
      for (int action = 0; action < kServices; ++action) {
        if (!state.TryApply(action)) continue;
        candidates.push_back({i, action, state.latency_ps()});
        state.Undo();
      }
    }
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const OrderCandidate& a, const OrderCandidate& b) {
                       return a.latency_ps < b.latency_ps;
                     });
    if (candidates.size() > width) candidates.resize(width);
    next.clear();
    for (const OrderCandidate& candidate : candidates) {
      next.push_back(here[candidate.parent]);
      MG_CHECK(next.back().TryApply(candidate.action));
    }
    here.swap(next);
  }
  return true;
}

}  // namespace

bool BeamOrderGame(const Game& game, Budget& budget) {
  OrderState greedy(game.shared_from_this());
  PlayOrderOn(greedy, OrderUndecided(game));
  budget.Finished(greedy);
  for (size_t width = 1; width <= kMaxOrderWidth; width *= 2) {
    if (budget.Exhausted() || !PlayOrderWidth(game, width, budget)) return false;
  }
  return true;
}

}  // namespace mallocgame
