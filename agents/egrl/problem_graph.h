// A placement problem as the networks read it, in plain numbers: the features of its nodes, their
// links, and the sizes of its decisions. Decision 2 * node + kind places the weights (kind 0) or
// the activations (kind 1) of a node.
#ifndef AGENTS_EGRL_PROBLEM_GRAPH_H_
#define AGENTS_EGRL_PROBLEM_GRAPH_H_

#include <cstdint>
#include <vector>

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
  Links links;               // the program's edges in both directions, and each node with itself
  std::vector<float> real;   // [2 * nodes]: 1, or 0 where there is nothing to place
  int decisions = 0;         // number of decisions that are real
  std::vector<float> share;  // [nodes]: the node's share of all bytes moved by all of its runs
  std::vector<Part> parts;
  double slowest = 1;  // latency with everything in the slowest level, over the baseline's
  // [levels - 1, 2 * nodes, slices]: the share of the level that the decision fills, multiplied by
  // the share of the slice during which it is alive. The slices of the program have the same number
  // of nodes. Empty on a game.
  std::vector<float> fill;

  int64_t map_size() const { return 2 * static_cast<int64_t>(nodes); }
};

ProblemGraph MakeProblemGraph(const PlacementProblem& problem);

}  // namespace mallocgame::egrl

#endif  // AGENTS_EGRL_PROBLEM_GRAPH_H_
