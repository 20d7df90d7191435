// A placement problem as the networks read it: what its nodes are like, how they are linked, and
// what its decisions weigh. Plain numbers; decision 2 * node + kind places the weights (0) or
// activations (1) of a node.
#ifndef AGENTS_EGRL_PROBLEM_GRAPH_H_
#define AGENTS_EGRL_PROBLEM_GRAPH_H_

#include <cstdint>
#include <vector>

#include "mallocgame/placement/placement.h"

namespace mallocgame::egrl {

// Who attends to whom: node n to from[first[n]] .. from[first[n + 1] - 1], in ascending order,
// itself among them.
struct Links {
  std::vector<int64_t> first{0}, from;
  int64_t nodes() const { return static_cast<int64_t>(first.size()) - 1; }
};

// The links of the nodes `kept` (ascending), numbered anew: those that `links` joins by two steps
// or fewer. Of a node that would have very many, those found first.
Links LinksWithinTwoSteps(const Links& links, const std::vector<int64_t>& kept);

struct ProblemGraph {
  static constexpr int kSlices = 16;

  int nodes = 0, levels = 0, features = 0;
  std::vector<float> node_features;  // [nodes, features]
  // the program's edges, both ways, and each node with itself
  Links links;
  std::vector<int32_t> edge_from, edge_to;  // the program's edges: `to` reads activations of `from`
  std::vector<float> real;                  // [2 * nodes] 1, or 0: there is nothing to place
  int decisions = 0;                        // real ones
  // [2 * nodes, slices] the decision's share of all placed bytes, over the share of each slice of
  // the program (all slices are equally long in nodes) in which it is alive.
  std::vector<float> occupancy;

  int64_t map_size() const { return 2 * static_cast<int64_t>(nodes); }
};

ProblemGraph MakeProblemGraph(const PlacementProblem& problem);

}  // namespace mallocgame::egrl

#endif  // AGENTS_EGRL_PROBLEM_GRAPH_H_
