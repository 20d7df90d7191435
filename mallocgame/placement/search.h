// Ways to find a map that need no network, all within one budget of evaluations: what a learner is
// compared with.
//
//   compiler    the problem's baseline map; one evaluation
//   first-come  each tensor in the fastest level that has room, node by node, weights before
//               activations; one evaluation
//   random      each tensor's level drawn anew each time
//   greedy-dp   the EGRL paper's: node by node, the best of all pairs of levels for its two tensors
//               with the others as they are, starting with everything in the slowest level; pass
//               after pass until nothing changes, then from a random map
//   evolution   EGRL's population without the network: each member holds, for every tensor, a prior
//               for each level and a temperature, from which it draws the map that is graded
//   anneal      no method of the paper: simulated annealing from the compiler's map, over maps that
//               are rectified before they are graded. Says how much there is to gain, and is slow
//               to say it
#ifndef MALLOCGAME_PLACEMENT_SEARCH_H_
#define MALLOCGAME_PLACEMENT_SEARCH_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "mallocgame/placement/placement.h"

namespace mallocgame {

struct PlacementSearchOptions {
  int64_t evaluations = 4000;  // at most; > 0
  uint64_t seed = 0;
  int threads = 1;  // the result doesn't depend on it
  // Called after each batch with the evaluations made; false ends the search, which then returns
  // what it has.
  std::function<bool(int64_t)> progress = {};
};

struct PlacementSearchResult {
  // the fastest one that could be carried out as it is; the all-slowest one if there was none
  PlacementMap map;
  PlacementOutcome outcome;
  int64_t evaluations = 0;
  // one an evaluation: the least latency so far of maps that fit; 0: none yet
  std::vector<int64_t> best_ps;
};

std::vector<std::string> PlacementSearchNames();

// NotFound lists the names. InvalidArgument: evaluations < 1, threads outside 1 to 1024.
absl::StatusOr<PlacementSearchResult> SearchPlacement(const PlacementProblem& problem,
                                                      absl::string_view name,
                                                      const PlacementSearchOptions& options);

}  // namespace mallocgame

#endif  // MALLOCGAME_PLACEMENT_SEARCH_H_
