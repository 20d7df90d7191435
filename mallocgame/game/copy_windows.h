// The copy channel as the game books it. Its axis is service time: the picoseconds in which the
// channel could have served copies so far, the idle time of the instructions played plus the
// stalls. A copy occupies an interval of that axis, first in, first out; what is booked keeps its
// place, whatever is decided later, because everything before the tick now is final. Windows stay
// within one segment (Program::segment_begin): at a segment's begin the channel is empty and starts
// anew.
#ifndef MALLOCGAME_GAME_COPY_WINDOWS_H_
#define MALLOCGAME_GAME_COPY_WINDOWS_H_

#include <cstdint>
#include <vector>

#include "mallocgame/base/ids.h"
#include "mallocgame/game/undo_vector.h"

namespace mallocgame {

struct CopyWindow {
  Tick begin = 0;  // the copy starts before this tick
  // and is done before this one, after a stall of stall_ps at `end` if that isn't 0
  Tick end = 0;
  int64_t start_ps = 0;  // on the service axis
  int64_t stall_ps = 0;
};

class CopyWindows {
 public:
  // `shortest_ps`: no copy takes less; gaps below it are forgotten.
  CopyWindows(Tick ticks, int64_t shortest_ps);

  Tick now() const { return now_; }

  // The instruction at `now` is over and left idle_ps to copies; starts_segment: the next tick is a
  // segment's first.
  void Advance(UndoLog* log, int64_t idle_ps, bool starts_segment);

  // Windows for a copy of length_ps that may begin at tick `available` or later and is needed at
  // `now`. The latest gap between booked copies that takes it whole; false: there is none.
  bool FindLatest(int64_t length_ps, Tick available, CopyWindow* window) const;
  // The earliest such gap.
  bool FindEarliest(int64_t length_ps, Tick available, CopyWindow* window) const;
  // Behind the last booked copy, with a stall for what isn't hidden.
  CopyWindow FindBehind(int64_t length_ps, Tick available) const;
  void Book(UndoLog* log, const CopyWindow& window, int64_t length_ps);

  // Queues a copy that begins at `now`, behind all others; returns where on the axis it ends.
  int64_t Append(UndoLog* log, int64_t length_ps);
  // Waits at `now` until the channel has served up to `end_ps`; returns the stall.
  int64_t WaitUntil(int64_t end_ps);
  // The first tick in (after, now] before which the channel has served up to `end_ps`; -1: not yet
  // at `now`.
  Tick ServedBy(int64_t end_ps, Tick after) const;

  // Service time before the instruction at `now` runs; end of the last booked copy.
  int64_t now_ps() const { return service_[now_]; }
  int64_t booked_until_ps() const { return booked_until_; }

  struct Gap {  // free service time between two booked copies
    int64_t begin, end;
  };
  // Of this segment, in order, all before booked_until_ps().
  absl::Span<const Gap> gaps() const { return gaps_.items(); }
  // Service time before the instruction at `tick` <= now runs.
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
  std::vector<int64_t> service_;  // one a tick up to now: service time before its instruction runs
  UndoVector<Gap> gaps_;          // of this segment, all before booked_until_
};

}  // namespace mallocgame

#endif  // MALLOCGAME_GAME_COPY_WINDOWS_H_
