// Takes the action with the best immediate saving.

#include "mallocgame/base/error.h"
#include "mallocgame/solvers/playing/order_preferences.h"
#include "mallocgame/solvers/playing/players.h"

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

void PlayGreedyFrom(State& state) {
  while (!state.IsTerminal()) MG_CHECK(state.Apply(GreedyAction(state)).ok());
}

bool PlayGreedy(const Game& game, Budget& budget) {
  if (game.options().kind == GameKind::kOrder) {
    OrderState state(game.shared_from_this());
    PlayOrderOn(state, OrderUndecided(game));
    budget.Finished(state);
    return true;
  }
  State state = game.InitialState();
  PlayGreedyFrom(state);
  budget.Finished(state);
  return true;
}

}  // namespace mallocgame
