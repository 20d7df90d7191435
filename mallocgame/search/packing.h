// From an intent to a plan without a game: packs whole residences, a *list schedule*. The intent
// says for each access whether fast memory should serve it, whether the residence that serves the
// one before should, and which residence chooses its place first. Residences get their offsets in
// the order of their ranks. Then copies are scheduled, the one that is needed first in front, each
// as early as the channel and the bytes at its place allow (mallocgame/game/priority has both).
//
// It stays beside the decoder of games: a packing may cut live ranges anywhere, and its residences
// have offsets and leads of their own, about which no game asks.
#ifndef MALLOCGAME_SEARCH_PACKING_H_
#define MALLOCGAME_SEARCH_PACKING_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "mallocgame/game/game.h"
#include "mallocgame/game/priority/arrangement.h"
#include "mallocgame/game/priority/copy_schedule.h"
#include "mallocgame/plan/plan.h"
#include "mallocgame/search/intent.h"

namespace mallocgame {

// Only accesses of *free* buffers count: those that are eligible and not tiny. All others are
// served from main memory. Fast memory never serves an access that the game forbids. If it serves
// the entry of a loop or the begin of a transfer between chips, it serves every access inside too,
// whatever is wanted there. What a segment says of a residence counts at the first access that this
// residence serves.
//
// Pack() is the inner loop of a search, so -1 stands for none here.
class Packing {
 public:
  // `plan` must be well formed. The intent at first is that of the plan (ReadPacking).
  Packing(const Game& game, const Plan& plan);

  // The accesses that count.
  const std::vector<AccessId>& accesses() const { return accesses_; }
  // A segment for each access of the program. kPreload counts at the first access of a buffer that
  // can be preloaded, for as many buffers as the hardware has preloads; elsewhere it is kLate, as
  // are kEarly and kKeep where no residence serves the access before.
  Intent& intent() { return intent_; }
  bool CanBePreloaded(BufferId buffer) const;

  // Makes the plan that the intent asks for and returns its latency under Simulate.
  int64_t Pack();
  // The plan made last, which is valid; and for each of its residences the first access that it
  // serves, with its offset.
  Plan ToPlan() const { return schedule_.ToPlan(arrangement_); }
  std::vector<std::pair<AccessId, int64_t>> Offsets() const;

 private:
  // A residence that is asked for, by its first decision; `last` is a position like
  // PlannedResidence's.
  struct Asked {
    double rank = 0;
    int32_t first_decision = 0, position = 0, last = 0;
    bool preload = false, held = false;
    Tick lead = 0;
    int64_t offset = -1;
    // Whether it is placed in the same way, at the same turn.
    bool SameAs(const Asked& other) const {
      return first_decision == other.first_decision && last == other.last &&
             preload == other.preload && lead == other.lead && offset == other.offset &&
             held == other.held;
    }
  };
  struct Known {
    int32_t last = -1;
    bool preload = false;
    std::optional<PlannedResidence> planned;
  };

  void Ask();
  void Place();
  bool PlaceOne(const Asked& asked);
  bool PlaceAsAsked(const Asked& asked, const PlannedResidence& planned);
  const Segment& wanted(int32_t decision) const {
    return intent_[game_->tables().decisions[decision].access.index()];
  }

  std::shared_ptr<const Game> game_;  // the caller's, with small buffers too
  ArrangementTables tables_;
  Arrangement arrangement_;
  CopySchedule schedule_;
  std::vector<AccessId> accesses_;
  Intent intent_;
  std::vector<int32_t> buffer_of_;     // for each buffer of the program: its index in the game; -1
  std::vector<Asked> asked_, placed_;  // in the order of their ranks; placed_ by the last Place
  std::vector<bool> was_placed_;       // for each of placed_
  std::vector<Known> known_;           // for each decision: the residence that it asked for last
};

}  // namespace mallocgame

#endif  // MALLOCGAME_SEARCH_PACKING_H_
