// Transfers in the order in which they are due, by the ticks from which they are free, and what has
// changed among them.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "mallocgame/base/ids.h"
#include "mallocgame/program/both_prices.h"

namespace mallocgame {

// One slice of a prefetch, or an eviction.
struct Transfer {
  int32_t residence = 0;  // an index into residences
  int32_t slice = 0;      // its number among those of the residence
  bool eviction = false;
  int32_t scope = 0;
  int64_t part_begin = 0, part_end = 0;
  Times service_ps = {};
  Tick free_from = 0;  // it can't begin before
  Tick deadline = 0;
  std::array<int32_t, 2> after = {-1, -1};  // evictions that must be done first; -1: none

  bool operator==(const Transfer&) const = default;
};

// Whoever derives from it fills it.
class TransferSet {
 public:
  using List = absl::InlinedVector<int32_t, 2>;

  // The transfers that were another at the last Keep, or were not there, and those that are no
  // more. One that has gone and comes back as it was has not changed. An index means the same until
  // the next Keep.
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
    return std::pair(ranks_[one.residence], one.slice) <
           std::pair(ranks_[other.residence], other.slice);
  }
  // Those that must be done at a tick, in that order; and those that are free from it on.
  const List& due_at(Tick tick) const { return due_at_[tick]; }
  const List& free_at(Tick tick) const { return free_at_[tick]; }
  // Those that wait for an eviction.
  const List& waiting_for(int32_t eviction) const { return waiting_[eviction]; }

 protected:
  // Makes it that of a program of so many ticks, without a transfer.
  void Clear(Tick ticks);
  void KeepTransfers();
  int32_t Add(const Transfer& transfer);
  void Remove(int32_t id);
  void SetDeadline(int32_t id, Tick deadline);
  // Forgets changes that were taken back. Between two calls changed() may have such ones.
  void DropUnchanged();

  // The place of a residence in the order of all; -1: it has none. Those whose transfers are here
  // have one.
  int32_t rank(int32_t residence) const { return ranks_[residence]; }
  void SetRank(int32_t residence, int32_t rank);
  // Residences with transfers get other ranks: until the next Keep no transfer comes back.
  void ChangeRanks() { ranks_changed_ = true; }
  bool ranks_changed() const { return ranks_changed_; }

 private:
  void MakeDue(int32_t id);
  void Touch(int32_t id);
  int32_t FreeTransfer(const Transfer& wanted);

  std::vector<Transfer> transfers_;
  std::vector<int32_t> free_transfers_;
  std::vector<List> waiting_, due_at_, free_at_;
  std::vector<Changed> touched_;
  std::vector<int32_t> touched_at_;  // by transfer: its place in touched_; -1: none
  std::vector<int32_t> ranks_;       // by residence
  bool ranks_changed_ = false;       // since Keep
};

}  // namespace mallocgame
