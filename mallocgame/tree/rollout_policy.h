// How a game is played on, from any position to its end: as another one was played, or to get a
// plan. The *base policy* of rollouts (Bertsekas, Tsitsiklis and Wu 1997).
#pragma once

#include <cstdint>
#include <memory>

#include "absl/types/span.h"
#include "mallocgame/base/rng.h"
#include "mallocgame/game/game.h"
#include "mallocgame/game/incumbent_trace.h"
#include "mallocgame/game/position.h"
#include "mallocgame/search/intent.h"

namespace mallocgame::mcts {

// The next three are all that a search by rollouts asks of it.
class BasePolicy {
 public:
  virtual ~BasePolicy() = default;
  virtual void PlayOn(Position& position) = 0;
  virtual void Adopt(absl::Span<const uint8_t> actions) = 0;
  virtual void Change(Rng& rng) = 0;
};

// Of the time game and of the priority game.
class RolloutPolicy final : public BasePolicy {
 public:
  // `game` must outlive the policy; `intent` is a dense one, of which OpenIntent is greedy.
  RolloutPolicy(const Game& game, Intent intent);

  // Plays `position` to its end as the adopted game was played, or by the next best where that is
  // illegal. Without an adopted game it plays by the intent.
  void PlayOn(Position& position) override;
  // Makes a whole game, given by its actions, the one to be followed.
  void Adopt(absl::Span<const uint8_t> actions) override;
  // Changes a few of the adopted game's decisions at random. The game must have decisions.
  void Change(Rng& rng) override;
  const Intent& intent() const { return intent_; }

 private:
  const Game& game_;
  Intent intent_;
  std::unique_ptr<IncumbentTrace> trace_;  // the adopted game; without decisions if there is none
};

}  // namespace mallocgame::mcts
