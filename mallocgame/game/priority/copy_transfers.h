// The transfers that the residences of an arrangement need: which bytes, from when on and until
// when, and behind which evictions. They are changed, not made anew: an arrangement that differs
// from the one before in a few residences costs what lies near these.
#ifndef MALLOCGAME_GAME_PRIORITY_COPY_TRANSFERS_H_
#define MALLOCGAME_GAME_PRIORITY_COPY_TRANSFERS_H_

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "mallocgame/game/priority/arrangement.h"

namespace mallocgame {

// One slice of a prefetch, or an eviction.
struct Transfer {
  int32_t residence = 0;  // an index into residences
  int32_t slice = 0;      // its number among those of the residence
  bool eviction = false;
  int32_t scope = 0;
  int64_t part_begin = 0, part_end = 0, service_ps = 0;
  Tick free_from = 0;  // it can't begin before
  Tick deadline = 0;
  std::array<int32_t, 2> after = {-1, -1};  // evictions that must be done first; -1: none

  bool operator==(const Transfer&) const = default;
};

class CopyTransfers {
 public:
  using List = absl::InlinedVector<int32_t, 2>;

  // Makes them those of an arrangement.
  void Update(const Arrangement& arrangement);
  // Whether that one was of another game, so that nothing is left of it.
  bool begun_anew() const { return begun_anew_; }
  // The ticks whose instructions find arrays elsewhere since the last Update.
  absl::Span<const Tick> moved() const { return moved_; }
  // From here on changes are counted. A transfer that has gone and comes back as it was has not
  // changed.
  void Keep();
  // The transfers that were another then, or were not there, and those that are no more. An index
  // means the same until the next Keep.
  struct Changed {
    int32_t id;
    Transfer kept;  // with a residence of -1: it was not there
  };
  absl::Span<const Changed> changed() const { return touched_; }
  bool Has(int32_t id) const { return transfers_[id].residence >= 0; }

  const Transfer& operator[](int32_t id) const { return transfers_[id]; }
  size_t size() const { return transfers_.size(); }  // more than any index
  // The order in which transfers are due. Of those with one deadline, evictions go before the
  // prefetches into the same bytes.
  bool IsBefore(int32_t a, int32_t b) const {
    const Transfer &one = transfers_[a], &other = transfers_[b];
    if (one.deadline != other.deadline) return one.deadline < other.deadline;
    if (one.eviction != other.eviction) return one.eviction;
    return std::pair(residences_[one.residence].rank, one.slice) <
           std::pair(residences_[other.residence].rank, other.slice);
  }
  // Those that must be done at a tick, in that order; and those that are free from it on.
  const List& due_at(Tick tick) const { return due_at_[tick]; }
  const List& free_at(Tick tick) const { return free_at_[tick]; }
  // Those that wait for an eviction.
  const List& waiting_for(int32_t eviction) const { return waiting_[eviction]; }
  // Those of residence `r` of the arrangement, an index into placed() that is no hole: prefetches
  // in their order, then its eviction.
  template <class Visit>
  void VisitOf(int32_t r, const Visit& visit) const {
    const Residence& residence = residences_[order_[r]];
    for (const int32_t slice : residence.slices) visit(slice);
    if (residence.eviction >= 0) visit(residence.eviction);
  }

 private:
  struct Residence {
    PlannedResidence planned;
    int32_t rank = -1;      // its index in placed()
    int32_t eviction = -1;  // -1: none
    bool kept = false;      // the next arrangement has it too
    uint64_t keeps = 0;     // how often Keep had been called when it came
    int32_t place = -1;     // its rank, also when it has gone
    bool refilled = false;  // its slices are to be made anew
    List slices;
  };
  struct Key {
    Tick tick;
    int32_t residence;
  };
  using Keys = std::vector<Key>;
  using Ranges = std::vector<std::pair<int64_t, int64_t>>;

  void Reset(const Arrangement& arrangement);
  void FindChanged();
  void Come(int32_t r);
  void ReplaceChanged();
  void ReplaceFrom(size_t same);
  void FindKept(size_t same);
  void KeepRising();
  void TakeAway(absl::Span<const int32_t> gone);
  void Insert(absl::Span<const int32_t> come);
  bool IsLess(const Key& a, const Key& b) const;
  void Erase(Keys& keys, absl::Span<const int32_t> gone, Tick PlannedResidence::* tick);
  void Insert(Keys& keys, absl::Span<const int32_t> come, Tick PlannedResidence::* tick);
  bool TakeFrom(Ranges& open, const PlannedResidence& planned) const;
  void Affect(const PlannedResidence& changed);
  void RefillBehind(const PlannedResidence& planned);
  void Refill(int32_t id);
  void Hurry(int32_t id);
  Tick EvictionDeadline(const PlannedResidence& planned) const;
  Tick InScope(Tick tick, int32_t scope, Tick least) const;
  void AddEviction(int32_t id);
  void MakeSlices(int32_t id);
  void TakeOver(int32_t id, int32_t other, Tick earliest);
  void AddSlice(int32_t id, int64_t begin, int64_t end, Tick free_from, int32_t after);
  int32_t SourceOf(const PlannedResidence& planned) const;
  int32_t Add(const Transfer& transfer);
  void Remove(int32_t id);
  void Touch(int32_t id);
  void DropUnchanged();
  int32_t FreeTransfer(const Transfer& wanted);
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
  std::vector<int32_t> begins_with_;  // by decision: the residence whose first one it is; -1: none
  // Residences by their need and by their end; those with evictions by their end.
  Keys by_need_, by_end_, leaving_;
  std::vector<Transfer> transfers_;
  std::vector<int32_t> free_transfers_;
  std::vector<List> waiting_, due_at_, free_at_;
  std::vector<Changed> touched_;
  std::vector<int32_t> touched_at_;  // by transfer: its place in touched_; -1: none
  std::vector<int32_t> left_;        // residences that have gone since Keep, and may come back
  uint64_t keeps_ = 0;
  bool ranks_changed_ = false;  // since Keep, so that nothing may come back
  std::vector<Tick> moved_;
  // Scratch space.
  std::vector<int32_t> changed_, kept_, rising_, before_, gone_, come_, hurried_, refilled_;
  std::vector<Transfer> slices_;
  Ranges open_, still_open_;
};

}  // namespace mallocgame

#endif  // MALLOCGAME_GAME_PRIORITY_COPY_TRANSFERS_H_
