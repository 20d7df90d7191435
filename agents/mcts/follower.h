// How a game is played on: as another one was played, or to get a plan. Each game, the time game
// and the order game, has its own way to do so.
#ifndef AGENTS_MCTS_FOLLOWER_H_
#define AGENTS_MCTS_FOLLOWER_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "mallocgame/base/ids.h"
#include "mallocgame/base/rng.h"
#include "mallocgame/game/game.h"
#include "mallocgame/game/order/order_state.h"
#include "mallocgame/game/position.h"
#include "mallocgame/game/state.h"
#include "mallocgame/plan/plan.h"
#include "mallocgame/solvers/playing/order_guide.h"
#include "mallocgame/solvers/playing/order_preferences.h"
#include "mallocgame/solvers/playing/preference_search.h"

namespace mallocgame::mcts {

class Follower {
 public:
  // Follows greedy at first. `game` must outlive the follower.
  static std::unique_ptr<Follower> Create(const Game& game);
  virtual ~Follower() = default;

  // Plays `position` to its end as the adopted game was played, or by the next best where that is
  // illegal.
  virtual void PlayOn(Position& position) = 0;
  // Makes a whole game, given by its actions, the one to be followed.
  virtual void Adopt(absl::Span<const uint8_t> actions) = 0;
  // Follows the player who wants to get `plan`, which must be well formed. There is no adopted game
  // then.
  virtual void AdoptPlan(const Plan& plan) = 0;
  // Changes a few of the adopted game's decisions at random. The game must have decisions.
  virtual void Change(Rng& rng) = 0;
};

// Follows a game by what it preferred for each access.
class TimeFollower final : public Follower {
 public:
  TimeFollower(const Game& game, Preferences preferences)
      : game_(game), preferences_(std::move(preferences)) {}

  void PlayOn(Position& position) override;
  void Adopt(absl::Span<const uint8_t> actions) override;
  void AdoptPlan(const Plan& plan) override;
  void Change(Rng& rng) override;
  const Preferences& preferences() const { return preferences_; }

 private:
  const Game& game_;
  Preferences preferences_;
  std::vector<AccessId> asked_;  // the accesses that the adopted game decided about
};

// Follows a game by how it served each run, and by the order in which it took them.
class OrderFollower final : public Follower {
 public:
  OrderFollower(const Game& game, OrderPreferences preferences);

  void PlayOn(Position& position) override;
  void Adopt(absl::Span<const uint8_t> actions) override;
  void AdoptPlan(const Plan& plan) override;
  void Change(Rng& rng) override;
  const OrderPreferences& preferences() const { return preferences_; }

 private:
  void ChangeService(int32_t run, Rng& rng);

  const Game& game_;
  OrderPreferences preferences_;
  OrderGuide guide_;  // the adopted game; without decisions if there is none
};

}  // namespace mallocgame::mcts

#endif  // AGENTS_MCTS_FOLLOWER_H_
