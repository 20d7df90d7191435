// What a whole game of the schedule game, the baseline, does and saves at other orders of
// instructions than its own.
#ifndef AGENTS_MUZERO_SCHEDULE_BASELINE_H_
#define AGENTS_MUZERO_SCHEDULE_BASELINE_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/types/span.h"
#include "mallocgame/game/game.h"
#include "mallocgame/game/schedule/schedule_state.h"
#include "mallocgame/search/intent.h"
#include "mallocgame/tree/schedule_policy.h"

namespace mallocgame::muzero {

// Immutable: shared by threads.
class ScheduleBaseline {
 public:
  // `end` is the end of the baseline's game.
  explicit ScheduleBaseline(const ScheduleState& end);

  // What it does in a position in which the order is decided: the one action that puts next what
  // comes next in its order, of the units that can come.
  int OrderingAction(const ScheduleState& state) const { return policy_.OrderingAction(state); }
  // What it wants of the residences at an order: a mode for each run that it decides about, which
  // is kOpen for others, and ranks in its turn.
  std::shared_ptr<const Intent> IntentAt(const OrderedGame& ordered) const;
  // What it saves over the accesses that are decided in `state`. A run's accesses share what the
  // run saves evenly. Its last decision makes up for stalls that no decision before it knew of; it
  // counts only at the end.
  int64_t SavedOver(const ScheduleState& state) const;

 private:
  struct AtOrder {
    std::shared_ptr<const PriorityGame> game;
    std::shared_ptr<const Intent> intent;
  };

  mcts::SchedulePolicy policy_;
  std::vector<int64_t> saved_by_access_;  // by access of the program in its own order
  mutable std::mutex mutex_;
  mutable std::vector<AtOrder> remembered_;  // the latest first
};

}  // namespace mallocgame::muzero

#endif  // AGENTS_MUZERO_SCHEDULE_BASELINE_H_
