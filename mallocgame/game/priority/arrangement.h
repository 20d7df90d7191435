// Residences of one plan, placed one after the other and removed in any order. Both can be taken
// back, the last one first. An Arrangement knows what lies where and when, and what instructions
// cost with that; the copies that fill and empty the residences get their times from a CopyTimes
// (copy_times.h).
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "mallocgame/base/ids.h"
#include "mallocgame/game/priority/arrangement_tables.h"
#include "mallocgame/game/priority/gaps.h"
#include "mallocgame/game/priority/placed_boxes.h"
#include "mallocgame/game/tables.h"

namespace mallocgame {

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
  // What lies where, by indices into placed().
  const PlacedBoxes& boxes() const { return boxes_; }

  const ArrangementTables& tables() const { return *tables_; }
  // A hole has a buffer of -1.
  absl::Span<const PlannedResidence> placed() const { return placed_; }
  // One for each of placed(): a number that no other placing in this process has; 0: a hole.
  absl::Span<const uint64_t> stamps() const { return stamps_; }
  // For each kPlaces of placed() a number that changes when one of them does.
  static constexpr int kPlaces = 64;
  absl::Span<const uint64_t> versions() const { return versions_; }
  // For each decision the residence that serves it, as an index into placed(); -1: main memory.
  absl::Span<const int32_t> served_by() const { return served_by_; }
  int preloads() const { return preloads_; }
  // The time of all instructions without stalls; as one number, where two sets of prices count.
  int64_t compute_ps() const { return tables_->Value(compute_ps_); }
  const Times& compute_times() const { return compute_ps_; }
  // The time that the instruction at `tick` leaves to copies in one pass.
  int64_t idle_ps(Tick tick) const { return idle_[tick].own; }
  const Times& idle_times(Tick tick) const { return idle_[tick]; }
  // The bytes that are reserved at `tick`.
  int64_t TakenBytes(Tick tick) const;
  int64_t size(const PlannedResidence& planned) const {
    return tables_->tables.buffers[planned.buffer].size_bytes;
  }
  // For each tick: which of its decisions are served from fast memory, or kReplaced.
  absl::Span<const uint64_t> placements() const { return placements_; }

 private:
  void Put(int32_t r, const PlannedResidence& planned, uint64_t stamp);
  void Take(int32_t r);
  void SetPlacement(Tick tick, uint64_t placement);
  void Serve(int32_t r, bool fast);
  const Gaps& FindGaps(const PlannedResidence& planned, Tick begin) const;
  int64_t FindOffset(const PlannedResidence& planned, Tick begin) const;

  const ArrangementTables* tables_;
  std::vector<PlannedResidence> placed_;
  std::vector<uint64_t> stamps_, versions_;
  std::vector<int32_t> served_by_;
  std::vector<uint64_t> placements_;
  std::vector<Times> idle_;
  PlacedBoxes boxes_;  // of placed_, by index
  Times compute_ps_;
  int preloads_ = 0;
  std::vector<Step> steps_;
  std::vector<int32_t> holes_;  // the latest one last
  std::vector<Removal> removed_;
};

}  // namespace mallocgame
