// Plays order games beside one that was played to its end, the guide, and takes over from it
// whatever must come out the same: which run is preferred where the same ones are open, and where
// a residence lies if the same others lie around it. To look for a place is what most of the time
// of a game is spent on.
#ifndef MALLOCGAME_SOLVERS_PLAYING_ORDER_GUIDE_H_
#define MALLOCGAME_SOLVERS_PLAYING_ORDER_GUIDE_H_

#include <cstdint>
#include <vector>

#include "mallocgame/game/order/order_state.h"
#include "mallocgame/solvers/playing/order_difference.h"
#include "mallocgame/solvers/playing/order_preferences.h"

namespace mallocgame {

class OrderGuide {
 public:
  // Has no decisions at first. All states are of games with these tables, which must outlive it.
  explicit OrderGuide(const OrderTables& tables);

  // Makes the game of `state`, which is over, the guide. It agrees with the guide before in the
  // first `agrees` decisions. Changes are forgotten.
  void Adopt(const OrderState& state, int32_t agrees);

  // The guide's decisions: the runs in order, and where it decided a run; -1: it did not.
  int32_t decisions() const { return static_cast<int32_t>(runs_.size()); }
  int32_t run(int32_t i) const { return runs_[i]; }
  int32_t decision_of(int32_t run) const { return decision_of_[run]; }

  // Names a run of which something else is preferred than what led to the guide.
  void Change(int32_t run) { changed_.push_back(run); }
  void ForgetChanges() { changed_.clear(); }

  // Plays the guide's decisions on `state`, which agrees with it so far, up to decision `end`.
  void Follow(OrderState& state, int32_t end) const;

  // Begins to play beside the guide, in a state that agrees with it in `agrees` decisions and has
  // no others; or in any state.
  void Begin(int32_t agrees);
  void Begin(const OrderState& state);
  // Takes one decision of the state that play began in, as PlayPreferred does if the preferences
  // led to the guide but for the runs that Change named. Where the same runs are open it is the
  // guide's decision also if a change would have come earlier.
  void Decide(OrderState& state, const OrderPreferences& preferences);

 private:
  // What was decided when the guide was not about to decide it: where, and what was placed, as an
  // index into Arrangement::placed(); -1: nothing. May be of a game that is forgotten.
  struct Apart {
    int32_t decision = -1, placed = -1;
  };

  void Account(const OrderState& state, int32_t decision, int32_t placed);
  void Pass(const OrderState& state);
  bool ChangeIsOpen(const OrderState& state) const;
  bool IsAwaited(const OrderState& state, int32_t run) const;

  // For each decision of the guide: the action, the run, and what was placed, unless the offset is
  // -1.
  std::vector<uint8_t> actions_;
  std::vector<int32_t> runs_;
  std::vector<PlannedResidence> placed_;
  std::vector<int32_t> decision_of_;  // by run
  std::vector<int32_t> changed_;
  // The game is compared with the guide's first next_ decisions. They agree in the first agrees_.
  OrderDifference difference_;
  int32_t agrees_ = 0, next_ = 0;
  std::vector<Apart> apart_;  // by run
};

}  // namespace mallocgame

#endif  // MALLOCGAME_SOLVERS_PLAYING_ORDER_GUIDE_H_
