// The transfers that the residences of an arrangement need: which bytes, from when on and until
// when, and behind which evictions. They are changed, not made anew: an arrangement that differs
// from the one before in a few residences costs what lies near these.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "mallocgame/game/priority/arrangement.h"
#include "mallocgame/game/priority/transfer_set.h"

namespace mallocgame {

class CopyTransfers : public TransferSet {
 public:
  // Makes them those of an arrangement.
  void Update(const Arrangement& arrangement);
  // Whether that one was of another game, so that nothing is left of it.
  bool begun_anew() const { return begun_anew_; }
  // The ticks whose instructions find arrays elsewhere since the last Update.
  absl::Span<const Tick> moved() const { return moved_; }
  // From here on changes are counted (TransferSet).
  void Keep();
  // The transfers of residence `r` of the arrangement, an index into placed() that is no hole:
  // prefetches in their order, then its eviction.
  template <class Visit>
  void VisitOf(int32_t r, const Visit& visit) const {
    const Residence& residence = residences_[order_[r]];
    for (const int32_t slice : residence.slices) visit(slice);
    if (residence.eviction >= 0) visit(residence.eviction);
  }

 private:
  struct Residence {
    PlannedResidence planned;
    int32_t eviction = -1;  // -1: none
    bool kept = false;      // the next arrangement has it too
    uint64_t keeps = 0;     // how often Keep had been called when it came
    int32_t place = -1;     // its index in placed(), also when it has gone
    bool refilled = false;  // its slices are to be made anew
    List slices;
  };
  void Reset(const Arrangement& arrangement);
  void FindChanged();
  void Come(int32_t r);
  void ReplaceChanged();
  void ReplaceFrom(size_t same);
  void FindKept(size_t same);
  void KeepRising();
  void TakeAway(absl::Span<const int32_t> gone);
  void Affect(const PlannedResidence& changed);
  void RefillBehind(const PlannedResidence& planned);
  void Refill(int32_t id);
  void Hurry(int32_t id);
  Tick EvictionDeadline(const PlannedResidence& planned);
  Tick InScope(Tick tick, int32_t scope, Tick least) const;
  void AddEviction(int32_t id);
  void MakeSlices(int32_t id);
  void TakeOver(int32_t id, int32_t other, Tick earliest);
  void AddSlice(int32_t id, int64_t begin, int64_t end, Tick free_from, int32_t after);
  int32_t SourceOf(const PlannedResidence& planned) const;
  void NoteMoved(const PlannedResidence& planned);
  int32_t first_decision(const PlannedResidence& planned) const {
    return tables_->decisions_of(planned.buffer)[planned.first];
  }
  int64_t size_of(const PlannedResidence& planned) const {
    return tables_->tables.buffers[planned.buffer].size_bytes;
  }
  int64_t top(const PlannedResidence& planned) const { return planned.offset + size_of(planned); }

  const Arrangement* arrangement_ = nullptr;
  const ArrangementTables* tables_ = nullptr;
  uint64_t game_ = 0;  // GameTables::id
  bool begun_anew_ = false;
  std::vector<Residence> residences_;
  std::vector<int32_t> free_residences_;
  std::vector<int32_t> order_;        // by rank: the residence; -1: a hole
  std::vector<uint64_t> stamps_;      // by rank: Arrangement::stamps()
  std::vector<uint64_t> versions_;    // Arrangement::versions()
  std::vector<int32_t> begins_with_;  // by decision: the residence whose first one it is; -1: none
  std::vector<int32_t> left_;         // residences that have gone since Keep, and may come back
  uint64_t keeps_ = 0;
  std::vector<Tick> moved_;
  // Scratch space.
  std::vector<int32_t> changed_, kept_, rising_, before_, gone_, come_, hurried_, refilled_;
  std::vector<Transfer> slices_;
  Gaps open_, still_open_, searched_;
};

}  // namespace mallocgame
