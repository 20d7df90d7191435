// Makes a whole plan from wishes. A wish says whether fast memory should serve an access, by which
// residence, and which residence chooses its place first. Everything else follows from the wishes.
// Residences get their offsets in the order of their ranks. Then copies are scheduled, the one that
// is needed first in front, each as early as the channel and the bytes at its place allow. The game
// decides in time order and moves whole buffers; an Arranger knows no order in time, and it
// prefetches in slices.
#ifndef MALLOCGAME_SOLVERS_PLANNING_ARRANGER_H_
#define MALLOCGAME_SOLVERS_PLANNING_ARRANGER_H_

#include <array>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "mallocgame/game/game.h"
#include "mallocgame/plan/plan.h"

namespace mallocgame {

// What is wanted for one access. The last three fields describe the residence that serves it, and
// count only at the first access that this residence serves.
struct Wish {
  bool fast = false;  // fast memory serves the access
  bool kept = false;  // the residence that serves the buffer's previous access serves this one too
  float rank = 1;     // residences choose their offsets by rising rank
  // the bytes are reserved for the prefetch this long before the first access, if there is room
  Tick lead = 0;
  int64_t offset = -1;  // taken if it is free; -1: any offset will do
  friend bool operator==(const Wish&, const Wish&) = default;
};

// Only wishes for the accesses of *free* buffers count: those that are eligible, not tiny, and used
// outside of loops and branches only. All other residences and copies stay as they are in the plan
// that an Arranger starts from. Fast memory never serves an access that the game forbids.
//
// Arrange() is the inner loop of a search, so -1 stands for none here.
class Arranger {
 public:
  // `plan` must be valid. The first wishes describe that plan.
  Arranger(const Game& game, const Plan& plan);

  // The accesses whose wishes count.
  const std::vector<AccessId>& accesses() const { return accesses_; }
  std::vector<Wish>& wishes() { return wishes_; }  // one for each access of the program
  // The buffers to preload: it happens if their first residence serves their first access. At most
  // max_preloads() of them.
  std::vector<BufferId>& preloaded() { return preloaded_; }
  size_t max_preloads() const { return max_preloads_; }
  bool CanBePreloaded(BufferId buffer) const;

  // Makes the plan that the wishes ask for and returns its latency under Simulate.
  int64_t Arrange();
  // The plan made last, which is valid; and for each of its residences the first access that it
  // serves, with its offset.
  Plan ToPlan() const;
  std::vector<std::pair<AccessId, int64_t>> Offsets() const;

 private:
  // A residence that is to serve accesses [first, last] of its buffer, counted in the order of the
  // buffer's accesses.
  struct PlannedResidence {
    BufferId buffer;
    absl::Span<const AccessId> accesses;  // all of the buffer's
    int32_t first = 0, last = 0;
    int64_t size = 0, offset = -1;
    Tick need = 0;  // the first tick that needs all of its bytes
    Tick end = 0;   // the tick after the last access
    bool fetched = false, preload = false;
    Tick replaces = -1;
    Tick written = -1;        // the tick after the last write; -1: it is never written
    int32_t write_back = -1;  // index into transfers_; -1: none
  };
  // Bytes [offset, top) are occupied in ticks [begin, end), by residence `planned`, or by something
  // that can't be moved (-1).
  struct Occupied {
    Tick begin = 0, end = 0;
    int64_t offset = 0, top = 0;
    int32_t planned = -1;
  };
  // One slice of a prefetch, or a write-back.
  struct Transfer {
    int32_t planned = 0;
    bool write_back = false;
    int64_t part_begin = 0, part_end = 0, service_ps = 0;
    Tick free_from = 0;  // it can't begin before
    Tick deadline = 0;
    int32_t after[2] = {-1, -1};  // write-backs that must be done first; -1: none
    Tick begin = -1, done = -1;
  };
  struct QueuedTransfer {
    int32_t transfer;  // index into transfers_; -1 - c: copy c of the fixed plan
    int64_t left_ps;
  };

  bool IsFree(BufferId id) const;
  bool InSimpleRegion(Tick tick) const;
  bool Replaceable(Tick tick) const;
  void ReadPlan(const Plan& plan);

  void PlanResidences();
  void AddResidence(BufferId buffer, int32_t first, int32_t last);
  void PlaceResidences();
  void AddOccupied(const Occupied& occupied);
  bool PlaceAt(PlannedResidence& planned, Tick begin, int64_t offset);
  int64_t BestFit(Tick begin, Tick end, int64_t size);
  Tick EarliestFetch(const PlannedResidence& planned) const;

  void MakeTransfers();
  void AddWriteBack(int32_t r);
  void HurryWriteBack(const Occupied& occupied);
  void AddSlices(int32_t r);
  void AddSlice(int32_t r, int64_t begin, int64_t end, Tick free_from, int32_t after);
  int64_t PricePs();
  int64_t SchedulePs();
  int64_t ServeFront(Tick done);
  bool Outstanding(Tick t);
  void ServeIdle(Tick t, size_t& open);
  bool IssueNext(Tick t, size_t& open);
  Tick ReadyAt(const Transfer& transfer) const;
  void Issue(int32_t j, Tick tick);
  AccessId id(const PlannedResidence& planned, int32_t i) const { return planned.accesses[i]; }
  const Access& access(const PlannedResidence& planned, int32_t i) const {
    return program_.access(id(planned, i));
  }
  const PlannedResidence& planned(int32_t r) const { return planned_[r]; }
  Tick NeedOf(const Occupied& occupied) const {
    return occupied.planned < 0 ? occupied.begin : planned(occupied.planned).need;
  }
  // Calls `visit` with everything that is occupied at a tick of [begin, end), and perhaps with
  // more, until it returns false.
  template <class Visit>
  void VisitOccupied(Tick begin, Tick end, const Visit& visit) const;

  const Game& game_;
  const Program& program_;
  const Hardware& hardware_;
  int64_t capacity_;
  size_t max_preloads_;
  std::vector<bool> simple_;  // one for each tick: it is in no loop or branch
  bool all_simple_ = true;
  std::vector<AccessId> accesses_;
  std::vector<bool> may_be_fast_;  // one for each access
  std::vector<bool> replaceable_;  // one for each tick
  std::vector<Wish> wishes_;
  std::vector<BufferId> buffers_, preloaded_;
  Plan fixed_;  // what wishes can't change
  std::vector<Occupied> fixed_occupied_;
  // for each tick, the fixed copies that begin or end there
  std::vector<std::vector<int32_t>> fixed_begins_, fixed_ends_;
  // for each direction and tick: how many copies may be outstanding beside the fixed ones
  std::array<std::vector<int32_t>, 2> free_windows_;

  std::vector<PlannedResidence> planned_;
  std::vector<int32_t>
      planned_for_;  // for each access, the residence that serves it; -1: main memory
  std::vector<Occupied> occupied_;
  // for each block of ticks: indices of what is occupied in it
  std::vector<std::vector<int32_t>> occupied_near_;
  std::vector<Transfer> transfers_;
  std::vector<int32_t> by_deadline_;
  std::deque<QueuedTransfer> queue_;
  std::vector<int32_t>
      issued_;     // transfers, and -1 - c for fixed copy c, in the order of their begins
  Tick wake_ = 0;  // no transfer can begin before this tick
  // For each direction, prefetches first: how many copies are outstanding at the current tick, and
  // the residence that the last one belongs to.
  std::array<int32_t, 2> outstanding_ = {}, last_issued_ = {};
  std::vector<Price> prices_;  // one for each tick
  absl::flat_hash_map<std::pair<Tick, uint64_t>, Price> known_prices_;
  // Scratch space, kept so that its memory is allocated once.
  std::vector<std::pair<int64_t, int64_t>> taken_, still_open_;
  std::vector<const Occupied*> by_need_, by_end_;
  std::vector<std::pair<float, int32_t>> order_;
  std::vector<uint64_t> masks_;
  std::vector<bool> replaced_, fixed_done_;
};

}  // namespace mallocgame

#endif  // MALLOCGAME_SOLVERS_PLANNING_ARRANGER_H_
