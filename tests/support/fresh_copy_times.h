// The oracle of CopyTimes: makes the transfers of an arrangement and plays the channel over the
// whole program each time, and keeps nothing from one arrangement to the next.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "mallocgame/game/priority/arrangement.h"
#include "mallocgame/plan/plan.h"

namespace mallocgame::testing {

class FreshCopyTimes {
 public:
  int64_t Run(const Arrangement& arrangement);
  Plan ToPlan(const Arrangement& arrangement) const;

 private:
  // One slice of a prefetch, or an eviction.
  struct Transfer {
    int32_t placed = 0;
    bool eviction = false;
    int64_t part_begin = 0, part_end = 0, service_ps = 0;
    Tick free_from = 0;  // it can't begin before
    Tick deadline = 0;
    int32_t scope = 0;
    int32_t missing = 0;      // how many evictions that must be done first are not done yet
    int32_t first_wait = -1;  // of an eviction: the list of those that wait for it, in waits_
    int32_t place = 0;        // in by_deadline_
    Tick begin = -1, done = -1;
  };
  // A transfer waits for an eviction; and the next one that waits for the same, -1: none.
  struct Wait {
    int32_t transfer, next;
  };
  struct QueuedTransfer {
    int32_t transfer;
    int64_t left_ps;
  };

  void MakeTransfers();
  void AddEviction(int32_t r);
  void HurryEviction(int32_t r);
  void AddSlices(int32_t r);
  void TakeOver(int32_t r, int32_t other, Tick earliest);
  void AddSlice(int32_t r, int64_t begin, int64_t end, Tick free_from, int32_t after);
  void AddPrefetch(int32_t r, int64_t begin, int64_t end, Tick free_from);
  int32_t SourceOf(const PlannedResidence& planned) const;
  void WaitFor(int32_t transfer, int32_t eviction);
  int64_t Play();
  int64_t ServeFront(Tick done);
  void CanBegin(int32_t j, Tick tick);
  void SetReady(int32_t j);
  bool Outstanding();
  void ServeIdle(Tick t);
  bool IssueNext(Tick t);
  bool TryIssue(int32_t j, Tick t);
  void Issue(int32_t j, Tick tick);
  Tick InScope(Tick tick, int32_t scope, Tick least) const;
  const PlannedResidence& placed(int32_t r) const { return arrangement_->placed()[r]; }
  int64_t top(const PlannedResidence& planned) const {
    return planned.offset + arrangement_->size(planned);
  }

  const Arrangement* arrangement_ = nullptr;
  const ArrangementTables* tables_ = nullptr;
  std::vector<int32_t> eviction_of_;  // for each residence: index into transfers_; -1: none
  std::vector<Transfer> transfers_;
  std::vector<Wait> waits_;
  // Residences by their need and by their end; those with evictions by their end.
  std::vector<uint64_t> by_need_, by_end_, leaving_, by_deadline_keys_;
  std::vector<int32_t> by_deadline_;
  std::deque<QueuedTransfer> queue_;
  // In the order of their begins; -1 - k is the copy that fills the k-th pin (GameTables).
  std::vector<int32_t> issued_;
  // For each tick, the transfers that can begin from it on: a list, whose links are in next_ready_.
  std::vector<int32_t> ready_at_, next_ready_;
  std::vector<uint64_t> ready_;  // a bit for each place in by_deadline_: it can begin now
  // For each direction, prefetches first: how many copies are outstanding, and the residence that
  // the last one belongs to.
  std::array<int32_t, 2> outstanding_ = {}, last_issued_ = {};
  std::vector<std::pair<int64_t, int64_t>> open_, still_open_;
};

}  // namespace mallocgame::testing
