// Makes a whole plan from wishes. A wish says whether fast memory should serve an access, by which
// residence, and which residence chooses its place first. Everything else follows from the wishes.
// Residences get their offsets in the order of their ranks. Then copies are scheduled, the one that
// is needed first in front, each as early as the channel and the bytes at its place allow
// (mallocgame/game/order has both).
#ifndef MALLOCGAME_SOLVERS_PLANNING_ARRANGER_H_
#define MALLOCGAME_SOLVERS_PLANNING_ARRANGER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "mallocgame/game/game.h"
#include "mallocgame/game/order/arrangement.h"
#include "mallocgame/game/order/copy_schedule.h"
#include "mallocgame/plan/plan.h"

namespace mallocgame {

// What is wanted for one access. The last four fields describe the residence that serves it, and
// count only at the first access that this residence serves.
struct Wish {
  bool fast = false;  // fast memory serves the access
  bool kept = false;  // the residence that serves the buffer's previous access serves this one too
  float rank = 1;     // residences choose their offsets by rising rank
  // the bytes are reserved for the prefetch this long before the first access, if there is room
  Tick lead = 0;
  int64_t offset = -1;  // taken if it is free; -1: any offset will do
  // if it is written back, the bytes are held until the latest tick for that, if there is room
  bool late = false;
  friend bool operator==(const Wish&, const Wish&) = default;
};

// Only wishes for the accesses of *free* buffers count: those that are eligible and not tiny. All
// others are served from main memory. Fast memory never serves an access that the game forbids. If
// it serves the entry of a loop, it serves every access inside the loop too, whatever their wishes.
//
// Arrange() is the inner loop of a search, so -1 stands for none here.
class Arranger {
 public:
  // `plan` must be well formed. The first wishes describe that plan.
  Arranger(const Game& game, const Plan& plan);

  // The accesses whose wishes count.
  const std::vector<AccessId>& accesses() const { return accesses_; }
  std::vector<Wish>& wishes() { return wishes_; }  // one for each access of the program
  // The buffers to preload: it happens if their first residence serves their first access. At most
  // max_preloads() of them.
  std::vector<BufferId>& preloaded() { return preloaded_; }
  size_t max_preloads() const { return game_->hardware().max_preloads; }
  bool CanBePreloaded(BufferId buffer) const;

  // Makes the plan that the wishes ask for and returns its latency under Simulate.
  int64_t Arrange();
  // The plan made last, which is valid; and for each of its residences the first access that it
  // serves, with its offset.
  Plan ToPlan() const { return schedule_.ToPlan(arrangement_); }
  std::vector<std::pair<AccessId, int64_t>> Offsets() const;

 private:
  // A residence that is asked for, by its first decision; `last` is a position like
  // PlannedResidence's.
  struct Asked {
    float rank = 0;
    int32_t first_decision = 0, position = 0, last = 0;
    bool preload = false;
    Tick lead = 0;
    int64_t offset = -1;
    bool late = false;
    // Whether it is placed in the same way, at the same turn.
    bool SameAs(const Asked& other) const {
      return first_decision == other.first_decision && last == other.last &&
             preload == other.preload && lead == other.lead && offset == other.offset &&
             late == other.late;
    }
  };
  struct Known {
    int32_t last = -1;
    bool preload = false;
    std::optional<PlannedResidence> planned;
  };

  void ReadPlan(const Plan& plan);
  void Ask();
  void Place();
  bool PlaceOne(const Asked& asked);
  bool PlaceAsAsked(const Asked& asked, const PlannedResidence& planned);
  const Wish& wish(int32_t decision) const {
    return wishes_[game_->tables().decisions[decision].access.index()];
  }

  std::shared_ptr<const Game> game_;  // the caller's, with small buffers too
  ArrangementTables tables_;
  Arrangement arrangement_;
  CopySchedule schedule_;
  std::vector<AccessId> accesses_;
  std::vector<Wish> wishes_;
  std::vector<BufferId> preloaded_;
  std::vector<int32_t> buffer_of_;     // for each buffer of the program: its index in the game; -1
  std::vector<Asked> asked_, placed_;  // in the order of their ranks; placed_ by the last Place
  std::vector<bool> was_placed_;       // for each of placed_
  std::vector<Known> known_;           // for each decision: the residence that it asked for last
};

}  // namespace mallocgame

#endif  // MALLOCGAME_SOLVERS_PLANNING_ARRANGER_H_
