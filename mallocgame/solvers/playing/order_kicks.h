// Large-neighbourhood search over order games, as iterated local search (Lourenço, Martin and
// Stützle 2003). A kick serves a run otherwise, and before all others, whatever that costs; then
// annealing changes what lies near that run in time, and leaves the run as it is. So a game is found
// that is many changes away, each of which would lose alone. The next kick is of that game, if it is
// not much slower than the one before.
#ifndef MALLOCGAME_SOLVERS_PLAYING_ORDER_KICKS_H_
#define MALLOCGAME_SOLVERS_PLAYING_ORDER_KICKS_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "mallocgame/base/rng.h"
#include "mallocgame/game/game.h"
#include "mallocgame/solvers/playing/order_changes.h"
#include "mallocgame/solvers/playing/order_search.h"

namespace mallocgame {

class OrderKicks {
 public:
  static constexpr int kTrials = 500;  // of a kick and the changes after it

  // Begins with the game that these preferences lead to, which must have decisions.
  OrderKicks(const Game& game, OrderPreferences preferences);

  // Plays a trial, which is the next kick or a change after it, and returns whether it was accepted.
  bool Try(Rng& rng);
  // Where the last trial ended, which if it was accepted is the end of the game, and the decision at
  // which it began.
  const OrderState& state() const { return search_->state(); }
  int32_t from() const { return from_; }

 private:
  struct Found {
    OrderPreferences preferences;
    int64_t latency_ps = 0;
  };
  void Begin();

  std::shared_ptr<const Game> game_;
  Found kicked_;  // the game that is kicked
  Found found_;   // the best one since the kick
  std::optional<OrderSearch> search_;
  std::optional<OrderChanges> changes_;
  int trial_ = 0;  // since the kick, which is the first
  int32_t from_ = 0;
};

}  // namespace mallocgame

#endif  // MALLOCGAME_SOLVERS_PLAYING_ORDER_KICKS_H_
