// The fastest of the maps that fit, as maps are graded one after another.
#ifndef AGENTS_EGRL_BEST_MAP_H_
#define AGENTS_EGRL_BEST_MAP_H_

#include <cstdint>
#include <vector>

#include "mallocgame/placement/placement.h"
#include "mallocgame/placement/search.h"

namespace mallocgame::egrl {

class BestMap {
 public:
  // `problem` must outlive it.
  explicit BestMap(const PlacementProblem& problem);

  // Counts a graded map. True if it fits and is faster than all before.
  bool Offer(const PlacementMap& map, const PlacementOutcome& outcome);

  const PlacementSearchResult& result() const { return result_; }

  // Sets the state that result() described earlier. `map` must be a map of the problem.
  void Restore(PlacementMap map, std::vector<int64_t> best_ps);

 private:
  const PlacementProblem& problem_;
  PlacementSearchResult result_;
};

}  // namespace mallocgame::egrl

#endif  // AGENTS_EGRL_BEST_MAP_H_
