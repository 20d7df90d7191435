// Takes the action with the best immediate saving. Ties go to Drop, which takes nothing from later
// decisions, then to NoCopy, which takes no bandwidth.
#include "mallocgame/base/error.h"
#include "mallocgame/solvers/playing/players.h"

namespace mallocgame {

Action GreedyAction(State& state) {
  constexpr Action kPreference[] = {Action::kDrop, Action::kNoCopy, Action::kCopy,
                                    Action::kCopyEarly};
  const uint8_t mask = state.legal_mask();
  int64_t best_saved = 0;
  int best = -1;
  for (Action action : kPreference) {
    if ((mask >> static_cast<int>(action) & 1) == 0) continue;
    const absl::StatusOr<int64_t> saved = state.Apply(action);
    MG_CHECK(saved.ok());
    state.Undo();
    if (best < 0 || *saved > best_saved) {
      best = static_cast<int>(action);
      best_saved = *saved;
    }
  }
  return static_cast<Action>(best);
}

void PlayGreedyFrom(State& state) {
  while (!state.IsTerminal()) MG_CHECK(state.Apply(GreedyAction(state)).ok());
}

bool PlayGreedy(const Game& game, Budget& budget) {
  State state = game.InitialState();
  PlayGreedyFrom(state);
  budget.Finished(state);
  return true;
}

}  // namespace mallocgame
