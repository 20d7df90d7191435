// The changes of an order of instructions that local search tries. Private to the folder.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "mallocgame/base/rng.h"
#include "mallocgame/schedule/units.h"

namespace mallocgame {

class ScheduleMoves {
 public:
  // `units`, which must have freedom, must outlive this.
  explicit ScheduleMoves(const ScheduleUnits& units);

  // Changes `order`, in which `place` says for each tick of the program where it stands, by one
  // move, and returns true. A unit is pulled to an earlier place with all that it depends on and
  // that stands between, or pushed to a later one with all that depends on it. About half of the
  // moves bring two uses of one buffer together, the others go anywhere, near more often than far.
  // False: no legal move was found in a few tries.
  bool Propose(absl::Span<const Tick> place, UnitOrder& order, Rng& rng);

 private:
  bool ProposeTogether(absl::Span<const Tick> place, UnitOrder& order, Rng& rng);
  bool ProposeAnywhere(UnitOrder& order, Rng& rng);
  bool Pull(int32_t region, std::vector<int32_t>& order, size_t from, size_t to);
  bool Push(int32_t region, std::vector<int32_t>& order, size_t from, size_t to);
  bool HasOtherWork(int32_t region, absl::Span<const int32_t> units) const;

  const ScheduleUnits& units_;
  std::vector<int32_t> regions_;   // with freedom, the larger ones more often
  std::vector<BufferId> buffers_;  // worth bringing the uses of together
  std::vector<uint8_t> marked_;
  std::vector<int32_t> first_, second_;  // of a move at hand
};

}  // namespace mallocgame
