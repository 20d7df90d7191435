// When should a prefetch begin? XLA's answer: so that the instructions it hides behind take a
// preferred multiple of the copy's own time, and if that fails, at the begins next to it (XLA
// reference 4.5; CostAnalysisPrefetchIntervalPicker).
//
// A start is named as XLA names it, by the tick `s` behind which the copy starts: the window is
// [s + 1, end).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "mallocgame/base/ids.h"
#include "mallocgame/program/program.h"

namespace mallocgame {

class IntervalPicker {
 public:
  struct Options {
    double min_overlap = 1;        // the window hides the copy's time at least this often,
    double preferred_overlap = 2;  // and at best this often
    // the longest window, and the longest stay between two uses: max_overlap times the time to copy
    // all of fast memory
    double most_ps = 0;
    double loop_weight = 5;  // an instruction counts so much more for each loop around it
  };

  // `elapsed_ps` is the time of each tick with everything in main memory. `program` must outlive
  // the picker.
  IntervalPicker(const Program& program, absl::Span<const int64_t> elapsed_ps,
                 const Options& options);

  // The time of the ticks between `s` and `e`, without these two, as it counts at the outermost
  // loop level in between. 0 for s < 0.
  double Elapsed(Tick s, Tick e) const;
  // Says whether a buffer may stay in fast memory from one use to the next.
  bool MayStay(Tick from, Tick to) const { return Elapsed(from, to) < options_.most_ps; }

  // The largest tick <= `end` at which a window may end: not right behind a branch, call or loop
  // that lies in the same region.
  Tick WindowEnd(Tick end) const;
  // The largest end, at most `end` and at least `begin`, of a window that begins at `begin` and
  // lies in one region.
  Tick WindowEndFrom(Tick begin, Tick end) const;
  // Says whether a window that ends at `end`, which is a WindowEnd, may begin behind `s`: both must
  // lie in one region.
  bool MayBegin(Tick s, Tick end) const;

  // The begins to try, the best first. `saved_ps` is what the instruction that uses the buffer
  // saves with its operand in fast memory.
  class Candidates {
   public:
    std::optional<Tick> Next();
    std::optional<Tick> latest() const { return latest_; }

   private:
    friend class IntervalPicker;
    const IntervalPicker* picker_ = nullptr;
    Tick end_ = 0;
    std::optional<Tick> earliest_, latest_, first_;
    std::optional<Tick> later_, earlier_;  // the next ones in either direction
    bool turn_later_ = false;
    void Start();
  };
  Candidates Begins(Tick first, Tick end, int64_t copy_ps, int64_t saved_ps) const;
  // Where the `count` slices of a prefetch behind `s` begin: each one when another part of the time
  // is over (XLA reference 4.12). The first start is `s`.
  std::vector<Tick> SliceBegins(Tick s, Tick end, int count) const;
  // The first tick e > `from` such that Elapsed(from, e) >= overlap_ps; the end if there is none.
  Tick HiddenBy(Tick from, double overlap_ps) const;
  // The begin in [first, last], of a window that ends at `end`, which hides a time closest to the
  // preferred one; of several that hide the same, the earliest.
  std::optional<Tick> Preferred(Tick first, Tick last, Tick end, int64_t copy_ps) const;

 private:
  // The region inside `own` in which `s` or the tick behind it lies; `own` if there is none. A
  // window in `own` begins behind an `s` for which there is none, or behind the tick before `own`.
  int32_t NestedAt(Tick s, int32_t own) const;
  // The nearest begin at or before `s` (at or after it) of a window that ends at `end`, if it is
  // not before `least` (after `most`).
  std::optional<Tick> AtOrBefore(Tick s, Tick end, Tick least) const;
  std::optional<Tick> AtOrAfter(Tick s, Tick end, Tick most) const;
  int32_t RegionOf(Tick tick) const { return program_.instruction(tick).region; }
  const Region& region(int32_t index) const { return program_.regions()[index]; }
  // The region inside `outer` that holds the ticks of `inner`, a region inside that one.
  const Region& ChildOf(int32_t outer, int32_t inner) const;
  int MinDepth(Tick s, Tick e) const;
  // The smallest s in [from, to] with Elapsed(s, end) <= limit; to + 1 if there is none.
  Tick SmallestWithin(Tick from, Tick to, Tick end, double limit) const;

  const Program& program_;
  Options options_;
  std::vector<double> sum_;     // the weighted time before each tick
  std::vector<double> weight_;  // loop_weight to the power of the depth
  std::vector<std::vector<uint8_t>>
      least_depth_;  // [k][t]: the fewest loops around any of the 2^k ticks from t on
};

}  // namespace mallocgame
