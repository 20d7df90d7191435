// Residences of one plan, placed one after the other and removed in any order. Both can be taken
// back, the last one first. An Arrangement knows what lies where and when, and what instructions
// cost with that; the copies that fill and empty the residences are scheduled by a CopySchedule
// (copy_schedule.h).
//
// A residence serves some accesses of its buffer that follow each other. Accesses are the decisions
// of GameTables; here a decision is named by its position among those of its buffer.
#ifndef MALLOCGAME_GAME_PRIORITY_ARRANGEMENT_H_
#define MALLOCGAME_GAME_PRIORITY_ARRANGEMENT_H_

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "mallocgame/base/ids.h"
#include "mallocgame/game/game.h"
#include "mallocgame/game/tables.h"

namespace mallocgame {

// A residence that serves the decisions [first, last] of a buffer, wherever it will lie.
struct PlannedResidence {
  int32_t buffer = 0;  // index into GameTables::buffers
  int32_t first = 0, last = 0;
  Tick need = 0;            // the first tick that needs all of its bytes
  Tick end = 0;             // the tick after the last one that needs them
  Tick earliest_fetch = 0;  // no prefetch for it may begin before this tick
  // The last tick from which the instructions hide the prefetch if they find all they use in fast
  // memory and the channel does nothing else; not before earliest_fetch. `need` without a prefetch.
  Tick latest_fetch = 0;
  bool fetched = false;  // a prefetch fills it
  bool preload = false;  // it is filled before the program starts
  Tick replaces = -1;    // the plain copy whose place its prefetch takes; -1: none
  // If main memory needs the value that it leaves behind: the ticks between which it is written
  // back, at the latest. -1: it does not.
  Tick written = -1, eviction_deadline = -1;
  int32_t scope = 0;  // of its copies: ArrangementTables::scopes
  // Where it lies, and the tick from which its bytes are reserved for it; set by Place.
  int64_t offset = -1;
  Tick begin = 0;

  bool operator==(const PlannedResidence&) const = default;
};

// What arrangements of one game look up.
struct ArrangementTables {
  explicit ArrangementTables(const Game& of);

  absl::Span<const int32_t> decisions_of(int32_t buffer) const {
    return absl::MakeConstSpan(by_buffer).subspan(first[buffer], first[buffer + 1] - first[buffer]);
  }
  const Decision& decision(int32_t buffer, int32_t position) const {
    return tables.decisions[by_buffer[first[buffer] + position]];
  }
  // The residence that serves these decisions of `buffer`; nothing if no valid plan has it.
  std::optional<PlannedResidence> Plan(int32_t buffer, int32_t first_position,
                                       int32_t last_position, bool preload) const;
  bool CanBePreloaded(int32_t buffer) const;

  const Game& game;
  const Program& program;
  const GameTables& tables;
  // The decisions of buffer b, as indices into GameTables::decisions, are by_buffer[first[b],
  // first[b + 1]).
  std::vector<int32_t> by_buffer, first;
  std::vector<uint8_t> may_be_fast;  // for each decision of GameTables
  std::vector<uint8_t> replaceable;  // for each tick: a plain copy that a prefetch may replace
  // The next three have one entry for each tick, and one for the program's end. A scope is the
  // innermost loop condition, loop body or branch around a tick, as an index into
  // Program::regions(); the copies of a residence run in the scope that it begins in.
  std::vector<int32_t> scopes;
  std::vector<int64_t> passes;      // how often a wait at this tick happens in one run
  std::vector<uint8_t> scope_ends;  // the scope of the tick before ends here

 private:
  void FindScopes();
  bool Replaceable(Tick tick) const;
  Tick EarliestFetch(const PlannedResidence& planned) const;
  Tick LatestFetch(const PlannedResidence& planned) const;
};

class Arrangement {
 public:
  explicit Arrangement(const ArrangementTables& tables);

  // Places a residence whose bytes are reserved from `begin` on, which lies in
  // [planned.earliest_fetch, planned.need] if it is fetched. It gets `offset` if that is free. Else
  // it gets a place that is free, and of these the one that takes the least from prefetches: a
  // prefetch would like to have its bytes from latest_fetch on, even if they are reserved only
  // later. Ties go by the game's policy. False: there is no room, and nothing has changed.
  bool Place(const PlannedResidence& planned, Tick begin, int64_t offset = -1);
  // Places a residence there, for a caller who knows that Place would.
  void PlaceAt(const PlannedResidence& planned, Tick begin, int64_t offset);
  // Removes placed()[r], which leaves a hole there. What is placed next fills the latest hole.
  void Remove(int32_t r);
  // Takes back the last placing or removal of those that count. There must be one.
  void Undo();
  // How many placings and removals count, and of which residences: those since the last Settle.
  struct Step {
    int32_t residence;
    enum : uint8_t { kAppended, kFilled, kRemoved } kind;
  };
  absl::Span<const Step> steps() const { return steps_; }
  // What the removals among them have removed.
  struct Removal {
    PlannedResidence planned;
    uint64_t stamp;
  };
  absl::Span<const Removal> removals() const { return removed_; }
  // Nothing that was done so far will be taken back.
  void Settle();
  void Clear();

  // Whether the bytes [offset, top) may be taken over the ticks [begin, end).
  bool IsFree(Tick begin, Tick end, int64_t offset, int64_t top) const;
  // Makes `over` the residences that have bytes at some of the ticks [begin, end), as indices into
  // placed() that rise. False: they are many, perhaps more than `most`.
  bool FindOver(Tick begin, Tick end, size_t most, std::vector<int32_t>& over) const;
  // Whether there is room for it.
  bool HasRoom(const PlannedResidence& planned, Tick begin) const;

  const ArrangementTables& tables() const { return *tables_; }
  // A hole has a buffer of -1.
  absl::Span<const PlannedResidence> placed() const { return placed_; }
  // One for each of placed(): a number that no other placing in this process has; 0: a hole.
  absl::Span<const uint64_t> stamps() const { return stamps_; }
  // For each decision the residence that serves it, as an index into placed(); -1: main memory.
  absl::Span<const int32_t> served_by() const { return served_by_; }
  int preloads() const { return preloads_; }
  // The time of all instructions without stalls.
  int64_t compute_ps() const { return compute_ps_; }
  // The time that the instruction at `tick` leaves to copies in one pass.
  int64_t idle_ps(Tick tick) const { return idle_[tick]; }
  // The bytes that are reserved at `tick`.
  int64_t TakenBytes(Tick tick) const;
  int64_t size(const PlannedResidence& planned) const {
    return tables_->tables.buffers[planned.buffer].size_bytes;
  }
  // For each tick: which of its decisions are served from fast memory, or kReplaced.
  absl::Span<const uint64_t> placements() const { return placements_; }

 private:
  // What a residence takes, without the rest: the bytes [offset, top) over the ticks [begin, end).
  // It would like to have them from `wanted` on.
  struct Box {
    Tick wanted = 0, begin = 0, end = 0;
    int64_t offset = 0, top = 0;
    int32_t first_node = -1;
  };
  // A place in the list of a block, and the same residence's next one; -1: none.
  struct Node {
    int32_t placed, next, previous, of_next_block;
  };
  using TakenRanges = absl::InlinedVector<std::pair<int64_t, int64_t>, 64>;  // of offsets
  void Put(int32_t r, const PlannedResidence& planned, uint64_t stamp);
  void Take(int32_t r);
  // Blocks of 2^bits ticks each, of which `first` is the first in heads_.
  struct Level {
    int bits;
    int32_t first;
  };
  const Level& LevelOf(const Box& box) const;
  void Link(int32_t r);
  void Unlink(int32_t r);
  void SetPlacement(Tick tick, uint64_t placement);
  void Serve(int32_t r, bool fast);
  bool IsFull(const PlannedResidence& planned, Tick begin) const;
  bool HasGap(TakenRanges& taken, const PlannedResidence& planned, Tick begin) const;
  template <class Visit>
  void VisitGaps(TakenRanges& taken, const PlannedResidence& planned, Tick begin,
                 const Visit& visit) const;
  int64_t FindOffset(const PlannedResidence& planned, Tick begin) const;
  template <class Visit>
  void VisitPlaced(Tick begin, Tick end, const Visit& visit) const;
  template <class Visit>
  bool VisitLevel(const Level& level, Tick begin, Tick end, const Visit& visit) const;

  const ArrangementTables* tables_;
  std::vector<PlannedResidence> placed_;
  std::vector<uint64_t> stamps_;
  std::vector<Box> boxes_;  // one for each of placed_
  std::vector<int32_t> served_by_;
  std::vector<uint64_t> placements_;
  std::vector<int64_t> idle_;
  // What is placed or wanted in each block of ticks: lists in one pool, so that a copy is a few
  // blocks. A residence stands at the level of blocks of which it takes few.
  std::vector<Level> levels_;
  std::vector<Node> nodes_;
  int32_t free_node_ = -1;  // the first of a list
  std::vector<int32_t> heads_, counts_;
  // Of each shortest block: the bytes that are taken at its first tick.
  std::vector<int64_t> taken_;
  int64_t compute_ps_ = 0;
  int preloads_ = 0;
  std::vector<Step> steps_;
  std::vector<int32_t> holes_;  // the latest one last
  std::vector<Removal> removed_;
};

}  // namespace mallocgame

#endif  // MALLOCGAME_GAME_PRIORITY_ARRANGEMENT_H_
