// EGRL's dynamic-programming baseline (arXiv 2007.07298) on a game. It takes the decisions in turn,
// tries every legal action of one with all others as they are, and keeps the best. It passes over
// the program until a pass changes nothing.
#include "mallocgame/solvers/playing/players.h"
#include "mallocgame/solvers/playing/preference_search.h"

namespace mallocgame {

bool PlayGreedyDp(const Game& game, Budget& budget) {
  PreferenceSearch search(
      game, Preferences(game.program().accesses().size(), static_cast<uint8_t>(Action::kDrop)));
  budget.Finished(search.GoTo(search.decisions()));
  for (bool improved = true; improved;) {
    improved = false;
    for (int32_t i = 0; i < search.decisions(); ++i) {
      const ActionSet legal = search.GoTo(i).legal_actions();
      for (const int a : legal) {
        const auto action = static_cast<Action>(a);
        if (action == search.choice(search.decision(i))) continue;
        if (budget.Exhausted()) return false;
        search.GoTo(i);
        search.Prefer(search.decision(i), action);
        const State& end = search.Play();
        budget.Finished(end);
        if (end.latency_ps() < search.latency_ps()) {
          search.Accept();
          improved = true;
        } else {
          search.Reject();
        }
      }
    }
  }
  return true;
}

}  // namespace mallocgame
