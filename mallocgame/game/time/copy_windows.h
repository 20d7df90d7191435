// The copy channel as the game books it. The channel is measured by service time: the picoseconds
// in which it could have served copies so far, that is the idle time of the instructions played
// plus the stalls. A copy occupies an interval of that axis, first in, first out. What is booked
// keeps its interval whatever is decided later, because everything before the current tick is
// final. Windows stay within one segment (Program::segment_begin): at the start of one the channel
// is empty and starts anew.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "mallocgame/base/ids.h"
#include "mallocgame/game/undo_vector.h"

namespace mallocgame {

// A copy starts before the instruction at tick `begin` runs and is done before the one at `end`
// runs, after a stall of stall_ps there. start_ps is where it starts on the service axis.
struct CopyWindow {
  Tick begin = 0;
  Tick end = 0;
  int64_t start_ps = 0;
  int64_t stall_ps = 0;
};

class CopyWindows {
 public:
  // No copy takes less than `shortest_ps`; gaps shorter than that are forgotten.
  CopyWindows(Tick ticks, int64_t shortest_ps);

  Tick now() const { return now_; }

  // Goes to the next tick: the instruction at now() has run and has left idle_ps to copies.
  // `starts_segment` says whether the next tick is the first of a segment.
  void Advance(UndoLog* log, int64_t idle_ps, bool starts_segment);

  // The next three find a window for a copy of length_ps that may begin at tick `available` or
  // later and is needed at now(). The window in the latest gap between booked copies that takes it
  // whole, if there is one.
  std::optional<CopyWindow> FindLatest(int64_t length_ps, Tick available) const;
  // The window in the earliest such gap.
  std::optional<CopyWindow> FindEarliest(int64_t length_ps, Tick available) const;
  // The window behind the last booked copy, with a stall for what it does not hide.
  CopyWindow FindBehind(int64_t length_ps, Tick available) const;
  // Books a window that one of them found for length_ps.
  void Book(UndoLog* log, const CopyWindow& window, int64_t length_ps);

  // Queues a copy that begins at now(), behind all others; returns where it ends on the axis.
  int64_t Append(UndoLog* log, int64_t length_ps);
  // Waits at now() until the channel has served up to `end_ps`; returns the stall.
  int64_t WaitUntil(int64_t end_ps);
  // The first tick in (after, now()] before which the channel has served up to `end_ps`; kNever if
  // it has not yet.
  Tick ServedBy(int64_t end_ps, Tick after) const;

  // The service time before the instruction at now() runs, and the end of the last booked copy.
  int64_t now_ps() const { return service_[now_]; }
  int64_t booked_until_ps() const { return booked_until_; }

  // Free service time between two booked copies.
  struct Gap {
    int64_t begin, end;
  };
  // The gaps of this segment in order, all before booked_until_ps().
  absl::Span<const Gap> gaps() const { return gaps_.items(); }
  // The service time of this segment, from `since` to now(), that no booked copy takes.
  int64_t FreePs(Tick since) const;
  // The service time before the instruction at `tick` runs; tick <= now().
  int64_t service_ps(Tick tick) const { return service_[tick]; }
  Tick segment_begin() const { return segment_begin_; }

  // What Rollback needs beside the log and its mark.
  struct Moment {
    Tick now;
    Tick segment_begin;
    int64_t now_ps;
    int64_t booked_until;
  };
  Moment moment() const { return {now_, segment_begin_, now_ps(), booked_until_}; }
  void Rollback(const Moment& moment, const UndoLog& log, uint32_t mark);

 private:
  // The last tick in [segment begin, now] whose service time is at most `ps`.
  Tick LastTickAt(int64_t ps) const;
  Tick FirstTickServed(int64_t ps, Tick from) const;
  int64_t EarliestStart(Tick available) const;
  CopyWindow Hidden(Tick begin, int64_t start_ps, int64_t length_ps) const;

  int64_t shortest_;
  Tick now_ = 0;
  Tick segment_begin_ = 0;
  int64_t booked_until_ = 0;
  std::vector<int64_t> service_;  // for each tick up to now: service time before its instruction
  UndoVector<Gap> gaps_;          // those of this segment, all before booked_until_
};

}  // namespace mallocgame
