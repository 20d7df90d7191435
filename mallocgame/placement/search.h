// Searches for a map that need no network, each within a budget of evaluations. A learner is
// compared with them.
//
//   compiler    The problem's baseline map; one evaluation.
//   first-come  Each tensor gets the fastest level that has room, node by node, weights before
//               activations; one evaluation.
//   random      Every map has levels drawn anew.
//   greedy-dp   As recalled of EGRL: node by node, it takes the best of all pairs of levels for the
//               node's two tensors, with the others as they are. It begins with everything in the
//               slowest level, goes pass after pass until nothing changes, and then begins from a
//               random map.
//   evolution   EGRL's population without the network: each member holds, for every tensor, a prior
//               for each level and a temperature. It draws from them the map that is evaluated.
//   anneal      Our own: simulated annealing from the compiler's map, over maps that are
//               rectified before they are evaluated. It shows how much can be gained, but slowly.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "mallocgame/placement/placement.h"

namespace mallocgame {

struct PlacementSearchOptions {
  int64_t evaluations = 4000;  // the most that it makes; > 0
  uint64_t seed = 0;
  int threads = 1;  // 1 to 1024; the result does not depend on it
  // Called after each batch with the number of evaluations made. If it returns false, the search
  // ends and returns what it has found.
  std::function<bool(int64_t)> progress = {};
};

struct PlacementSearchResult {
  // The fastest map that could be carried out as it is; the one with everything in the slowest
  // level if there was none.
  PlacementMap map;
  PlacementOutcome outcome;
  int64_t evaluations = 0;
  // For each evaluation: the latency of the fastest map so far that fits, 0 as long as there is
  // none. Where measurements have noise, the map is the one that was measured fastest.
  std::vector<int64_t> best_ps;
};

std::vector<std::string> PlacementSearchNames();

// NotFound lists the names. InvalidArgument: `evaluations` is less than 1, or `threads` outside 1
// to 1024.
absl::StatusOr<PlacementSearchResult> SearchPlacement(const PlacementProblem& problem,
                                                      absl::string_view name,
                                                      const PlacementSearchOptions& options);

}  // namespace mallocgame
