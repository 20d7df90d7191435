// What the accesses to come would like to have of fast memory and of the copy channel, whatever is
// decided: how scarce both are over the ticks that an action would take. Private to the folder.
//
// An access wishes for its buffer in fast memory while its instruction runs, and before that from
// the latest tick at which a prefetch for it begins and is hidden, if all instructions find all
// they use in fast memory and the channel does nothing else; or from the buffer's previous access
// on, if that is later, for then the buffer is rather kept. What is written needs no prefetch. The
// time of the prefetch is spread evenly over the all-main time before the access.
#pragma once

#include <vector>

#include "absl/types/span.h"
#include "mallocgame/base/ids.h"
#include "mallocgame/game/game.h"

namespace mallocgame {

// Immutable.
class Demand {
 public:
  explicit Demand(const Game& game);

  // Sums over the all-main time, of which the whole program is 1.
  struct Wanted {
    double space = 0;    // the share of fast memory that is wished for
    double excess = 0;   // the part of that share above 1
    double copy_ps = 0;  // the time of the prefetches that are wished for
    Wanted& operator+=(const Wanted& other);
  };
  // What the accesses at tick `now` and later wish for over the ticks [begin, end).
  Wanted Over(Tick begin, Tick end, Tick now) const;
  // The share of the all-main time that lies before a tick.
  double position(Tick tick) const { return position_[tick]; }

 private:
  struct Wish {
    double begin;         // its position
    double share;         // of fast memory
    double copy_density;  // the prefetch's picoseconds for each unit of position
  };
  absl::Span<const Wish> Around(Tick tick) const {
    return absl::MakeConstSpan(wishes_).subspan(first_wish_[tick],
                                                first_wish_[tick + 1] - first_wish_[tick]);
  }

  std::vector<double> position_;
  // For each tick, all that is wished for before it.
  std::vector<Wanted> before_;
  // The wishes that begin before tick t for accesses at t or later are wishes_[first_wish_[t],
  // first_wish_[t + 1]), by their begin.
  std::vector<Wish> wishes_;
  std::vector<size_t> first_wish_;
};

}  // namespace mallocgame
