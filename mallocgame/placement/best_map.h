// The fastest of the maps that fit, as maps are graded one after another. Which one that is is
// decided by what was measured; what is told of it is the latency without noise.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "mallocgame/placement/placement.h"
#include "mallocgame/placement/search.h"

namespace mallocgame {

class BestMap {
 public:
  // `problem` must outlive it.
  explicit BestMap(const PlacementProblem& problem);

  // Counts a graded map. True if it fits and was measured faster than all before.
  bool Offer(absl::Span<const uint8_t> map, const PlacementOutcome& measured);

  const PlacementSearchResult& result() const { return result_; }
  int64_t measured_ps() const { return measured_ps_; }  // of the map; 0 before the first that fits

  // Sets the state that result() described earlier. `map` must be a map of the problem.
  void Restore(PlacementMap map, std::vector<int64_t> best_ps, int64_t measured_ps);

 private:
  const PlacementProblem& problem_;
  PlacementSearchResult result_;
  int64_t measured_ps_ = 0;
};

}  // namespace mallocgame
