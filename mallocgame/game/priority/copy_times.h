// The copies of an arrangement: when each may begin, and when each does begin. The channel is
// played once, first in, first out, as Simulate plays it. Whenever it would be idle it begins a
// copy: of those that can begin, the one that is needed first.
//
// They are changed, not made anew: behind a change the channel is played on only until its
// state is as it was, and what comes behind that stays.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "mallocgame/game/priority/arrangement.h"
#include "mallocgame/game/priority/copy_transfers.h"
#include "mallocgame/plan/plan.h"

namespace mallocgame {

// It belongs to one thread at a time, and may be used for any arrangement after any other.
class CopyTimes {
 public:
  // Times the copies of an arrangement and returns the time of all stalls: compute_ps() plus
  // that is the latency of the plan under Simulate, or the value of its latencies where two sets of
  // prices count: then there is one channel for each, and a copy is done when both have served it.
  // It takes the less time the less differs from the arrangement before.
  int64_t Run(const Arrangement& arrangement);
  // The same for an arrangement that may be given up: the next call begins with what was kept last,
  // by Run or by Keep, at no cost. If the stalls seem to be more than `most` it may break off, and
  // returns a time that is more; such times can't be kept.
  int64_t Try(const Arrangement& arrangement, int64_t most);
  void Keep();
  // The plan of the arrangement that was kept last, which must be as it was then. It is valid.
  Plan ToPlan(const Arrangement& arrangement) const;

 private:
  struct Queued {
    int32_t transfer;
    Times left_ps;
    bool operator==(const Queued&) const = default;
  };
  // The state of the channel before a tick. Transfers are in the order in which they are due.
  struct State {
    std::vector<Queued> queue;
    std::vector<int32_t> ready;  // those that can begin
  };
  // When a transfer was served. The play that is going on has its own word on those that it has
  // seen; of all others counts what the plays before have said.
  struct Service {
    Tick begin = -1, done = -1;
    int32_t turn = 0;  // its place among those that began at this tick
    uint64_t play = 0;
    bool is_done = false;  // in this play
  };
  // A stretch of ticks in which something is another.
  struct Change {
    Tick begin, end;
    int32_t added;  // a transfer that has to be done before the state can be as it was; -1: none
  };

  // How a try found what it has changed.
  struct Journal {
    std::vector<std::pair<int32_t, Service>> services;
    std::vector<std::pair<Tick, Times>> stalls;
    std::vector<std::pair<size_t, int32_t>> pin_turns;
    std::vector<std::pair<size_t, State>> states;
    size_t num_states = 0;  // of `states`, whose other ones are there for their capacity
  };

  void TakeBack();
  void FindChanges();
  void SetService(int32_t id, const Service& service);
  void KeepState(Tick tick);
  Times StallsSoon(Tick tick) const;
  void SetStall(Tick tick, const Times& stall);
  int64_t ValueOf(const Times& stall) const;
  bool IsTooMuch(const Times& savings) const;
  bool PlayFrom(size_t first_change);
  bool IsAsBefore(Tick tick) const;
  Times FillPins(Tick t);
  void PlayTick(Tick t);
  Times ServeFront(Tick done);
  bool IsBegun(int32_t id) const;
  bool IsDone(int32_t id) const;
  bool CanBegin(int32_t id) const;
  void SetReady(int32_t id);
  bool Outstanding();
  void ServeIdle(Tick t);
  bool IssueNext(Tick t);
  bool TryIssue(int32_t id, Tick t);
  void Issue(int32_t id, Tick tick);

  const Arrangement* arrangement_ = nullptr;
  const ArrangementTables* tables_ = nullptr;
  CopyTransfers transfers_;
  std::vector<Service> services_;  // by transfer
  std::vector<State> states_;      // by block of ticks, before its first one
  std::vector<Times> stall_of_;    // by tick
  std::vector<Times> stall_of_block_;
  std::vector<int32_t> pin_turns_;  // of the copies that fill pins (GameTables::fetched_pins)
  Times stall_;                     // their sum
  std::vector<Times> idle_of_;      // by tick: Arrangement::idle_times of the kept times
  // The ticks at which that is another in the times of a try, with what it is there.
  std::vector<std::pair<Tick, Times>> moved_;
  bool is_kept_ = true;
  Journal journal_;
  int64_t most_ = 0;
  std::vector<Change> changes_;
  std::vector<Times> savings_;  // the most stalls that the changes from one on seem to save
  // The play that is going on.
  uint64_t play_ = 0;
  Tick from_ = 0;               // its first tick
  size_t next_change_ = 0;      // the first of changes_ that begins behind it
  Tick changed_until_ = 0;      // where the last of those before ends
  std::vector<int32_t> added_;  // transfers of those before
  std::deque<Queued> queue_;
  std::vector<int32_t> ready_,
      soon_;  // those that can begin, and those that can from the next tick
  int32_t turn_ = 0;
  // For each direction, prefetches first: how many copies are outstanding, and the residence that
  // the last one belongs to.
  std::array<int32_t, 2> outstanding_ = {}, last_issued_ = {};
};

}  // namespace mallocgame
