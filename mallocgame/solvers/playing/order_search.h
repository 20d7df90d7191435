// Local search over order games, as preference_search.h is over time games. A trial changes some
// preferences of the accepted game, and plays on from the first decision that this concerns.
#ifndef MALLOCGAME_SOLVERS_PLAYING_ORDER_SEARCH_H_
#define MALLOCGAME_SOLVERS_PLAYING_ORDER_SEARCH_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "mallocgame/game/order/order_state.h"
#include "mallocgame/solvers/playing/budget.h"
#include "mallocgame/solvers/playing/order_guide.h"
#include "mallocgame/solvers/playing/order_preferences.h"

namespace mallocgame {

// PlayAnneal (players.h) of an order game. It is played with kMaxCandidates, whatever the game
// shows itself.
bool AnnealOrderGame(const Game& game, Budget& budget);

class OrderSearch {
 public:
  // Plays and accepts the first game.
  OrderSearch(const Game& game, OrderPreferences preferences);

  // The accepted game: the runs that it decided in order, what it chose, and its latency.
  int32_t decisions() const { return guide_.decisions(); }
  int32_t run(int32_t i) const { return guide_.run(i); }
  // The decision about a run; -1: it was never open.
  int32_t decision_of(int32_t run) const { return guide_.decision_of(run); }
  const OrderPreferences& preferences() const { return preferences_; }
  int64_t latency_ps() const { return latency_; }
  // Preferences that lead from the beginning to the accepted game: ranks are its order. Those of
  // preferences() need not, as a trial begins near its change, and that could count before.
  OrderPreferences Replayable() const;
  const OrderState& state() const { return state_; }

  // Starts a trial at decision i.
  void GoTo(int32_t i);
  void Prefer(int32_t run, const OrderPreference& preference);
  // Plays the trial to its end and returns whether its latency is at most `most`. A trial whose
  // stalls are sure to be too long before its last decision, by what that decision is estimated to
  // save, is not played to its end.
  bool Play(int64_t most);
  // Accept makes the trial, which Play said true of, the accepted game; Reject forgets it. Once in
  // a while preferences() become the replayable ones.
  void Accept();
  void Reject();

 private:
  OrderState state_;  // agrees with the accepted game in the first agrees_ decisions
  OrderPreferences preferences_;
  OrderGuide guide_;                                          // the accepted game
  std::vector<std::pair<int32_t, OrderPreference>> changed_;  // as they were before the trial
  int32_t agrees_ = 0;
  int64_t accepted_ = 0;
  int64_t latency_ = 0;
};

}  // namespace mallocgame

#endif  // MALLOCGAME_SOLVERS_PLAYING_ORDER_SEARCH_H_
