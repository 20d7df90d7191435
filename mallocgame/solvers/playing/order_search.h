// Local search over order games, as preference_search.h is over time games. Every run has a
// preferred service and a rank; of the candidates the one with the lowest rank is taken. A trial
// changes some of this and plays on from the first decision that it concerns.
#ifndef MALLOCGAME_SOLVERS_PLAYING_ORDER_SEARCH_H_
#define MALLOCGAME_SOLVERS_PLAYING_ORDER_SEARCH_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "mallocgame/base/deadline.h"
#include "mallocgame/game/order/order_state.h"
#include "mallocgame/game/order/served_run.h"
#include "mallocgame/plan/plan.h"
#include "mallocgame/solvers/playing/budget.h"

namespace mallocgame {

// What is preferred for one run: a value of Service, or kUndecidedService, which leaves the run to
// greedy. Ranks are at first the run's place in the order of importance.
struct OrderPreference {
  uint8_t service = 0;
  double rank = 0;
};
inline constexpr uint8_t kUndecidedService = 255;
using OrderPreferences = std::vector<OrderPreference>;  // one for each run of OrderTables

// Greedy's game: the most important candidate is served in the way that saves most; if none saves
// anything it is split; if that is illegal, skipped.
OrderPreferences OrderUndecided(const Game& game);
// The preferences of a player who wants to get `plan`, which must be well formed.
OrderPreferences OrderPreferencesOf(const Game& game, const Plan& plan);

// The preferences of a player who takes the runs that another order game of the program served in
// the same order, and serves them alike. Other runs come last, and are left to greedy.
OrderPreferences OrderPreferencesLike(const Game& game, absl::Span<const ServedRun> served);

// Takes one decision by the preferences. The state must not be terminal.
void PlayPreferred(OrderState& state, const OrderPreferences& preferences);
// Plays `state` to its end.
void PlayOrderOn(OrderState& state, const OrderPreferences& preferences);

// A game with preferences, and the latency that they lead to.
struct OrderStart {
  std::shared_ptr<const Game> game;
  OrderPreferences preferences;
  bool follows = false;  // it follows a plan, and is not greedy's
  int64_t latency_ps = 0;
};
// A plan that a player tries to get, and if an order game led to it, what that one decided.
struct FollowedPlan {
  Plan plan;
  std::vector<ServedRun> served = {};
};
// The games that greedy plays of `game`'s program, in order games of several weights of importance,
// with small buffers and without, and without those that fill most of fast memory; and, unless
// null, those that follow `followed`. The best comes first. Of fewer games, but one at least, if
// `deadline` passes.
std::vector<OrderStart> OrderStarts(const Game& game, const FollowedPlan* followed,
                                    const Deadline& deadline);

// PlayAnneal and PlayBeam (players.h) of an order game. Annealing plays it with kMaxCandidates,
// whatever the game shows itself.
bool AnnealOrderGame(const Game& game, Budget& budget);
bool BeamOrderGame(const Game& game, Budget& budget);

class OrderSearch {
 public:
  // Plays and accepts the first game.
  OrderSearch(const Game& game, OrderPreferences preferences);

  // The accepted game: the runs that it decided in order, what it chose, and its latency.
  int32_t decisions() const { return static_cast<int32_t>(decided_.size()); }
  int32_t run(int32_t i) const { return decided_[i]; }
  // The decision about a run; -1: it was never open.
  int32_t decision_of(int32_t run) const { return decision_of_[run]; }
  const OrderPreferences& preferences() const { return preferences_; }
  int64_t latency_ps() const { return latency_; }
  const OrderState& state() const { return state_; }

  // Starts a trial at decision i.
  void GoTo(int32_t i);
  void Prefer(int32_t run, const OrderPreference& preference);
  // Plays the trial to its end and returns whether its latency is at most `most`. A trial whose
  // stalls are sure to be too long before its last decision, by what that decision is estimated to
  // save, is not played to its end.
  bool Play(int64_t most);
  // Accept makes the trial, which Play said true of, the accepted game; Reject forgets it.
  void Accept();
  void Reject();

 private:
  void Note(int32_t from);

  OrderState state_;  // agrees with the accepted game in the first agrees_ decisions
  OrderPreferences preferences_;
  std::vector<uint8_t> actions_;  // of the accepted game
  std::vector<int32_t> decided_, decision_of_;
  std::vector<std::pair<int32_t, OrderPreference>> changed_;  // as they were before the trial
  int32_t agrees_ = 0;
  int64_t latency_ = 0;
};

}  // namespace mallocgame

#endif  // MALLOCGAME_SOLVERS_PLAYING_ORDER_SEARCH_H_
