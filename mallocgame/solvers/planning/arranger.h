// A whole plan made from wishes. The wishes say which accesses fast memory should serve, by which
// residence, and who chooses its place first; everything else follows: places in fast memory in
// that order, then copies, each as early as the channel and the bytes at its place allow, the one
// that is needed first in front. Where the game decides in time order with whole copies, here no
// decision is before another in time, and prefetches come in slices.
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

// One an access. The last three are those of a residence and count at the first access that it
// serves.
struct Wish {
  bool fast = false;  // served from fast memory
  bool kept = false;  // by the residence that serves the buffer's access before this one
  float rank = 1;     // residences choose their places by rising rank
  // its place is kept free for the prefetch so long before the first access, if there is room
  Tick lead = 0;
  int64_t offset = -1;  // the place it takes if that is free; -1: any
  friend bool operator==(const Wish&, const Wish&) = default;
};

// Wishes are for the accesses of *free* buffers: eligible, not tiny, and used outside of loops and
// branches only. All other residences and copies stay as they are in the plan that an Arranger
// starts from. Accesses that the game forbids are never served from fast memory.
class Arranger {
 public:
  // `plan` must be valid. The first wishes are what it does.
  Arranger(const Game& game, const Plan& plan);

  // Accesses that wishes count for.
  const std::vector<AccessId>& accesses() const { return accesses_; }
  std::vector<Wish>& wishes() { return wishes_; }  // one an access of the program
  // Buffers whose first residence is preloaded if it starts with the first access; at most
  // max_preloads() of them.
  std::vector<BufferId>& preloaded() { return preloaded_; }
  size_t max_preloads() const { return max_preloads_; }
  bool CanBePreloaded(BufferId buffer) const;

  // Makes the arrangement that the wishes ask for; returns its latency under Simulate.
  int64_t Arrange();
  // The arrangement made last, as a valid plan, and where its residences lie: first access and
  // offset.
  Plan ToPlan() const;
  std::vector<std::pair<AccessId, int64_t>> Places() const;

 private:
  // A residence that serves accesses [first, last] of its buffer, counted in the buffer's own
  // order.
  struct Run {
    BufferId buffer;
    absl::Span<const AccessId> accesses;  // of the buffer
    int32_t first = 0, last = 0;
    int64_t size = 0, offset = -1;
    Tick need = 0;  // the first tick at which its bytes are needed whole
    Tick end = 0;   // behind the last access
    bool fetched = false, preload = false;
    Tick replaces = -1;
    Tick written = -1;        // behind the last write, if there is one
    int32_t write_back = -1;  // job
  };
  // Bytes that are taken at some ticks, by run `run`, or by something that can't be moved (-1).
  struct Place {
    Tick begin = 0, end = 0;
    int64_t offset = 0, top = 0;
    int32_t run = -1;
  };
  // A transfer: a slice of a prefetch, or a write-back.
  struct Job {
    int32_t run = 0;
    bool write_back = false;
    int64_t part_begin = 0, part_end = 0, service_ps = 0;
    Tick free_from = 0;  // earliest begin
    Tick deadline = 0;
    int32_t after[2] = {-1, -1};  // write-backs that must be done before
    Tick begin = -1, done = -1;
  };
  struct Queued {
    int32_t job;  // -1 - copy: one of the fixed copies
    int64_t left_ps;
  };

  bool IsFree(BufferId buffer) const;
  bool InSimpleRegion(Tick tick) const;
  bool Replaceable(Tick tick) const;
  void ReadPlan(const Plan& plan);

  void MakeRuns();
  void AddRun(BufferId buffer, int32_t first, int32_t last);
  void PlaceRuns();
  void AddPlace(const Place& place);
  bool PlaceAt(Run& run, Tick begin, int64_t offset);
  int64_t BestFit(Tick begin, Tick end, int64_t size);
  Tick EarliestFetch(const Run& run) const;

  void MakeJobs();
  void AddWriteBack(int32_t r);
  void HurryWriteBack(const Place& place);
  void AddSlices(int32_t r);
  void AddSlice(int32_t r, int64_t begin, int64_t end, Tick free_from, int32_t after);
  int64_t PricePs();
  int64_t SchedulePs();
  int64_t ServeFront(Tick done);
  bool Outstanding(Tick t);
  void ServeIdle(Tick t, size_t& open);
  bool IssueNext(Tick t, size_t& open);
  Tick ReadyAt(const Job& job) const;
  void Issue(int32_t j, Tick tick);
  AccessId id(const Run& run, int32_t i) const { return run.accesses[i]; }
  const Access& access(const Run& run, int32_t i) const { return program_.access(id(run, i)); }
  const Run& run(int32_t r) const { return runs_[r]; }
  Tick NeedOf(const Place& place) const {
    return place.run < 0 ? place.begin : run(place.run).need;
  }
  // Calls `visit` with places of which some may be taken at a tick of [begin, end), all that are
  // among them, until it says false.
  template <class Visit>
  void VisitPlaces(Tick begin, Tick end, const Visit& visit) const;

  const Game& game_;
  const Program& program_;
  const Hardware& hardware_;
  int64_t capacity_;
  size_t max_preloads_;
  std::vector<bool> simple_;  // one a tick: in no loop or branch
  bool all_simple_ = true;
  std::vector<AccessId> accesses_;
  std::vector<bool> may_be_fast_;  // one an access
  std::vector<bool> replaceable_;  // one a tick
  std::vector<Wish> wishes_;
  std::vector<BufferId> buffers_, preloaded_;
  Plan fixed_;  // what can't be changed
  std::vector<Place> fixed_places_;
  std::vector<std::vector<int32_t>> fixed_begins_, fixed_ends_;  // copies by tick
  // by direction and tick: copies that may be on their way beside these
  std::array<std::vector<int32_t>, 2> free_windows_;

  std::vector<Run> runs_;
  std::vector<int32_t> run_of_;  // one an access; -1: main memory
  std::vector<Place> places_;
  // one a block of ticks: places that reach into it
  std::vector<std::vector<int32_t>> places_near_;
  std::vector<Job> jobs_;
  std::vector<int32_t> by_deadline_;
  std::deque<Queued> queue_;
  std::vector<int32_t> issued_;  // jobs, and -1 - copy, in order
  Tick wake_ = 0;                // no job can begin before
  // By direction, prefetches first: copies on their way at the tick at hand, and the run that the
  // last one belongs to.
  std::array<int32_t, 2> outstanding_ = {}, last_issued_ = {};
  std::vector<Price> prices_;  // one a tick
  absl::flat_hash_map<std::pair<Tick, uint64_t>, Price> known_prices_;
  // Kept for their memory only.
  std::vector<std::pair<int64_t, int64_t>> taken_, still_open_;
  std::vector<const Place*> by_need_, by_end_;
  std::vector<std::pair<float, int32_t>> order_;
  std::vector<uint64_t> masks_;
  std::vector<bool> replaced_, fixed_done_;
};

}  // namespace mallocgame

#endif  // MALLOCGAME_SOLVERS_PLANNING_ARRANGER_H_
