// Order games that are played by the advice of a network, for the solver `learned`.
#ifndef MALLOCGAME_SOLVERS_LEARNED_ADVISED_GAME_H_
#define MALLOCGAME_SOLVERS_LEARNED_ADVISED_GAME_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "mallocgame/game/game.h"
#include "mallocgame/game/order/order_state.h"
#include "mallocgame/game/order/run_graph.h"
#include "mallocgame/game/order/served_run.h"
#include "mallocgame/plan/plan.h"
#include "mallocgame/solvers/learned/run_network.h"

namespace mallocgame {

// A way to take advice: what is added to it, the same for all runs. Several ways make several
// games, of which one may suit a program better than the others.
struct Style {
  static constexpr int kNumbers = 8;
  // Of numbers in the order of the members; there must be kNumbers at least.
  static Style Of(absl::Span<const float> n) {
    return {n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7]};
  }

  // To the importance, for each natural logarithm of the saving, of the bytes, and of the time
  // held.
  float saving = 0, bytes = 0, held = 0;
  float place = 0;                          // to what each way of placing is worth
  float early = 0, preload = 0, split = 0;  // to what these services are worth
  float advice = 1;                         // a factor of what the network says; 0: it is silent
};

// A finished game. What it chose is told by Run::id, so that it means the same in every order.
struct AdvisedEnd {
  static constexpr uint8_t kNeverOpen = 255;

  int64_t latency_ps = 0;
  std::vector<uint8_t> services;  // for each run a value of Service, or kNeverOpen
};

// The best of some games.
struct AdvisedPlan {
  Plan plan;
  std::vector<ServedRun> served;  // by its game, in its order
  int64_t latency_ps = std::numeric_limits<int64_t>::max();
  int64_t games = 0;
};

// Plays order games of one program in one order of importance after the other.
class AdvisedGame {
 public:
  // Of any game: its order game, which asks about small buffers too.
  explicit AdvisedGame(const Game& game);

  const Game& game() const { return *game_; }
  const RunGraph& graph() const { return graph_; }

  // Each run is served in the way that is worth most of those that are legal: what is advised, and
  // what it saves now. `advice` has one entry for each run, by Run::id. The game's plan
  // becomes `best`, unless that is null, if it is better.
  AdvisedEnd Play(absl::Span<const RunAdvice> advice, const Style& style,
                  AdvisedPlan* best = nullptr) const;
  // Places what `end` serves from fast memory in another order, so that it may leave more room;
  // then plays on as Play does. The order: the importance of a run is a sum of the logarithms of
  // its bytes and of the time it is held, with these weights.
  AdvisedEnd Repack(const AdvisedEnd& end, double bytes_weight, double held_weight,
                    absl::Span<const RunAdvice> advice, const Style& style,
                    AdvisedPlan* best = nullptr) const;

 private:
  AdvisedEnd PlayInOrder(absl::Span<const float> importance, absl::Span<const uint8_t> wanted,
                         absl::Span<const RunAdvice> advice, const Style& style,
                         AdvisedPlan* best) const;

  std::shared_ptr<const Game> game_;
  RunGraph graph_;
};

}  // namespace mallocgame

#endif  // MALLOCGAME_SOLVERS_LEARNED_ADVISED_GAME_H_
