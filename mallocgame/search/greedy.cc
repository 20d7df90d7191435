#include "mallocgame/search/greedy.h"

#include <cstdint>

#include "mallocgame/base/error.h"

namespace mallocgame {

Action MostProfitable(State& state, const std::array<double, kActions>& rents) {
  constexpr Action kPreference[] = {Action::kDrop, Action::kNoCopy, Action::kCopy,
                                    Action::kCopyEarly};
  const ActionSet legal = state.legal_actions();
  if (legal.size() == 1) return static_cast<Action>(legal[0]);
  double best_profit = 0;
  int best = -1;
  for (const Action action : kPreference) {
    const int a = static_cast<int>(action);
    if (!legal.Has(a)) continue;
    const absl::StatusOr<int64_t> saved = state.Apply(action);
    MG_CHECK(saved.ok());
    state.Undo();
    const double profit = static_cast<double>(*saved) - rents[a];
    if (best < 0 || profit > best_profit) {
      best = a;
      best_profit = profit;
    }
  }
  return static_cast<Action>(best);
}

Action GreedyAction(State& state) { return MostProfitable(state, {}); }

int MostSaving(PriorityState& state, int candidate) {
  int best = -1;
  int64_t most = 0;
  const int64_t before = state.latency_ps();
  for (const Mode mode : {Mode::kLate, Mode::kEarly, Mode::kPreload}) {
    const int action = PriorityAction(candidate, mode);
    if (!state.TryApply(action)) continue;
    const int64_t saved = before - state.latency_ps();
    state.Undo();
    if (saved <= most) continue;
    most = saved;
    best = action;
  }
  return best;
}

}  // namespace mallocgame
