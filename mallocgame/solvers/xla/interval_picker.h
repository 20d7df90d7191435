// When should a prefetch begin? XLA's answer: so that the instructions it hides behind take a
// preferred multiple of the copy's own time, and if that fails, at the begins next to it (XLA
// reference 4.5; CostAnalysisPrefetchIntervalPicker).
//
// A begin is named as XLA does, by the tick `s` behind which the copy starts: the window is [s + 1,
// end).
#ifndef MALLOCGAME_SOLVERS_XLA_INTERVAL_PICKER_H_
#define MALLOCGAME_SOLVERS_XLA_INTERVAL_PICKER_H_

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
    double min_overlap = 1;        // of the copy's time, that the window must hide at least
    double preferred_overlap = 2;  // and at best
    // no window and no stay without a use is longer: max overlap x time to copy all fast memory
    double most_ps = 0;
    double loop_weight = 5;  // what an instruction in a loop counts, for each loop around it
  };

  // `elapsed_ps`: the time of each tick with everything in main memory. `program` must outlive the
  // picker.
  IntervalPicker(const Program& program, absl::Span<const int64_t> elapsed_ps,
                 const Options& options);

  // Time of the ticks between `s` and `e`, both left out, in units of the outermost loop level in
  // between. 0 for s < 0.
  double Elapsed(Tick s, Tick e) const;
  // May a buffer stay in fast memory from one use to the next?
  bool MayStay(Tick from, Tick to) const { return Elapsed(from, to) < options_.most_ps; }

  // The largest tick <= `end` that a window which ends there may end at: not right behind a branch,
  // call or loop inside.
  Tick WindowEnd(Tick end) const;
  // May a window begin behind `s`, if it ends at `end` (a WindowEnd)? Both in one region.
  bool MayBegin(Tick s, Tick end) const;

  // The begins to try, best first. `saved_ps`: what the using instruction takes less with its
  // operand in fast memory.
  class Candidates {
   public:
    std::optional<Tick> Next();
    std::optional<Tick> latest() const { return latest_; }

   private:
    friend class IntervalPicker;
    const IntervalPicker* picker_ = nullptr;
    Tick end_ = 0;
    std::optional<Tick> earliest_, latest_, first_;
    std::optional<Tick> later_, earlier_;  // the last ones tried in either direction
    bool turn_later_ = true, started_ = false;
  };
  Candidates Begins(Tick first, Tick end, int64_t copy_ps, int64_t saved_ps) const;
  // Where the `count` slices of a prefetch behind `s` begin: each when the time left has fallen by
  // another part (XLA reference 4.12). The first is `s`.
  std::vector<Tick> SliceBegins(Tick s, Tick end, int count) const;
  // The first tick e > `from` by which a copy behind `from` is hidden `overlap` times.
  Tick HiddenBy(Tick from, double overlap_ps) const;

 private:
  // The next s <= `s` (>= `s`) behind which a window that ends at `end` may begin.
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
  std::vector<double> sum_;                        // of the weighted time before each tick
  std::vector<double> weight_;                     // loop_weight to the power of the depth
  std::vector<std::vector<uint8_t>> least_depth_;  // of 2^k ticks from each on: loops around
};

}  // namespace mallocgame

#endif  // MALLOCGAME_SOLVERS_XLA_INTERVAL_PICKER_H_
