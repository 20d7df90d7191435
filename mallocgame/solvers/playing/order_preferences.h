// What a player of the order game prefers: every run has a preferred service and a rank; of the
// candidates the one with the lowest rank is taken.
#ifndef MALLOCGAME_SOLVERS_PLAYING_ORDER_PREFERENCES_H_
#define MALLOCGAME_SOLVERS_PLAYING_ORDER_PREFERENCES_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "mallocgame/base/deadline.h"
#include "mallocgame/game/order/order_state.h"
#include "mallocgame/game/order/served_run.h"
#include "mallocgame/plan/plan.h"

namespace mallocgame {

// What is preferred for one run: a value of Service, or one of the two below. Ranks are at first
// the run's place in the order of importance.
struct OrderPreference {
  uint8_t service = 0;
  double rank = 0;
};
// Leaves the run to greedy.
inline constexpr uint8_t kUndecidedService = 255;
// Serves the run in the way that saves most, and from main memory if none saves anything.
inline constexpr uint8_t kPayingService = 254;
using OrderPreferences = std::vector<OrderPreference>;  // one for each run of OrderTables

// Greedy's game: the most important candidate is served in the way that saves most; if none saves
// anything it is split; if that is illegal, skipped.
OrderPreferences OrderUndecided(const Game& game);
// The preferences of a player who wants to get `plan`, which must be well formed.
OrderPreferences OrderPreferencesOf(const Game& game, const Plan& plan);

// The preferences of a player who takes the runs that another order game of the program served in
// the same order, and serves them alike. Other runs come last, and are left to greedy.
OrderPreferences OrderPreferencesLike(const Game& game, absl::Span<const ServedRun> served);

// The candidate with the lowest rank, of which there must be one.
int PreferredCandidate(const OrderState& state, const OrderPreferences& preferences);
// Serves a candidate as is preferred for its run, or else in the way nearest to that.
void ServePreferred(OrderState& state, int candidate, const OrderPreferences& preferences);
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

}  // namespace mallocgame

#endif  // MALLOCGAME_SOLVERS_PLAYING_ORDER_PREFERENCES_H_
