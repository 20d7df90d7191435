// A placement problem as the networks read it, in plain numbers: the features of its nodes, their
// links, and the sizes of its decisions. Decision 2 * node + kind places the weights (kind 0) or
// the activations (kind 1) of a node. On a priority game it says how a run is served (kind 0) or
// when it has its turn (kind 1). Those of a run that is a part of another one count only if that is
// Split; all decisions that count are *open*.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "mallocgame/placement/placement.h"

namespace mallocgame::egrl {

// Which nodes attend to which: node n to from[first[n]] .. from[first[n + 1] - 1], in ascending
// order. Each node attends to itself too.
struct Links {
  std::vector<int64_t> first{0}, from;
  int64_t nodes() const { return static_cast<int64_t>(first.size()) - 1; }
};

// The links between the nodes `kept` (in ascending order), which are numbered anew: two nodes are
// linked if `links` joins them by two steps or fewer. A node that would have very many links keeps
// those found first.
Links LinksWithinTwoSteps(const Links& links, const std::vector<int64_t>& kept);

struct ProblemGraph {
  static constexpr int kSlices = 16;
  // That so much of a node's bytes are a decision's.
  struct Part {
    int32_t node, decision;
    float share;
  };

  int nodes = 0, levels = 0, features = 0;
  std::vector<float> node_features;  // [nodes, features]
  Links links;              // the program's edges in both directions, and each node with itself
  std::vector<float> real;  // [2 * nodes]: 1, or 0 where there is nothing to place
  int decisions = 0;        // number of decisions that are real
  // [2 * nodes] on a priority game: the decision that opens this one if it is Split, -1 for one
  // that is always open; it comes before. Else empty.
  std::vector<int32_t> parent;
  std::vector<float> share;  // [nodes]: the node's share of PlacementGraph::stake
  std::vector<Part> parts;
  double slowest = 1;  // latency with everything in the slowest level, over the baseline's
  // What capacity limits: for each level the memory that it takes bytes of, as a first index into
  // `fill`; -1: as many as are wanted. -1 for all on a time game, of whose memory no more is told.
  std::vector<int32_t> memory_of;
  int memories = 0;
  // [memories, 2 * nodes, slices]: the share of the memory that the decision fills, multiplied by
  // the share of the slice during which it is alive. The slices of the program have the same number
  // of nodes, or on a priority game the same time.
  std::vector<float> fill;
  // [nodes, slices] on a priority game, whose maps need not fit: the share of the node's life that
  // lies in the slice. Else empty.
  std::vector<float> alive;
  // The number of memories of which critics read what a map wants.
  int wanted() const { return alive.empty() ? 0 : memories; }

  int64_t map_size() const { return 2 * static_cast<int64_t>(nodes); }
};

ProblemGraph MakeProblemGraph(const PlacementProblem& problem);

// For each decision of a map 1 if it is open, else 0.
std::vector<uint8_t> OpenDecisions(const ProblemGraph& graph, absl::Span<const uint8_t> map);

}  // namespace mallocgame::egrl
