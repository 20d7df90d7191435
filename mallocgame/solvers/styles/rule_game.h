// Priority games that are played by a priority rule of a few parameters each, for the solver
// `styles`.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "mallocgame/game/game.h"
#include "mallocgame/game/priority/priority_state.h"
#include "mallocgame/game/priority/run_graph.h"
#include "mallocgame/search/found_plan.h"

namespace mallocgame {

// The parameters of a priority rule, the same for all runs of a program. Several rules make several
// games, of which one may suit a program better than the others.
struct PriorityRule {
  // What is added to the importance of a run, for each natural logarithm of its saving, of its
  // bytes, and of the time that it is held.
  float saving = 0, bytes = 0, held = 0;
  float place = 0;                          // what each way of placing is worth
  float early = 0, preload = 0, split = 0;  // what these modes are worth, beside that
};

// A finished game. What it chose is told by Run::id, so that it means the same in every order.
struct RuledEnd {
  int64_t latency_ps = 0;
  std::vector<Mode> modes;  // for each run; kOpen: it was never open
};

// Plays priority games of one program in one order of importance after the other.
class RuleGame {
 public:
  // Of any game: its priority game, which asks about small buffers too.
  explicit RuleGame(const Game& game);

  const Game& game() const { return *game_; }

  // Each run is served in the way that is worth most of those that are legal: what it is worth by
  // the rule, and what it saves now, as a share of the estimate. The game's plan becomes `best`,
  // unless that is null, if it is better; it counts the games.
  RuledEnd Play(const PriorityRule& rule, FoundPlan* best = nullptr) const;
  // Places what `end` serves from fast memory in another order, so that it may leave more room;
  // then plays on as Play does. The order: the importance of a run is a sum of the logarithms of
  // its bytes and of the time it is held, with these weights.
  RuledEnd Repack(const RuledEnd& end, double bytes_weight, double held_weight,
                  const PriorityRule& rule, FoundPlan* best = nullptr) const;

 private:
  RuledEnd PlayInOrder(absl::Span<const float> importance, absl::Span<const Mode> wanted,
                       const PriorityRule& rule, FoundPlan* best) const;

  std::shared_ptr<const PriorityGame> game_;
  RunGraph graph_;
};

}  // namespace mallocgame
