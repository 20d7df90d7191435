// A program as the placement problem sees it: a node for each instruction that takes time, with two
// tensors to place. Its weights are the constants and entry parameters that it is the first to
// read, its activations the buffers that it is the first to write. Each buffer belongs to one node;
// a buffer that no node accesses, or that isn't eligible, isn't placed.
#ifndef MALLOCGAME_PLACEMENT_PLACEMENT_GRAPH_H_
#define MALLOCGAME_PLACEMENT_PLACEMENT_GRAPH_H_

#include <array>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "mallocgame/base/ids.h"
#include "mallocgame/game/feature.h"
#include "mallocgame/program/program.h"

namespace mallocgame {

// All buffers of one kind of one node: what one decision places. Without buffers size_bytes is 0
// and the decision is idle.
struct PlacedTensor {
  std::vector<BufferId> buffers;
  int64_t size_bytes = 0;
  int32_t begin = 0, end = 0;  // alive over nodes [begin, end); weights always are
};

struct PlacementNode {
  Tick tick = 0;
  std::array<PlacedTensor, 2> tensors;  // weights, activations
};

struct PlacementGraph {
  std::vector<PlacementNode> nodes;  // in schedule order
  std::vector<int32_t> from, to;     // edges: `to` reads activations of `from`; sorted, distinct
  std::vector<float> features;       // [nodes, PlacementFeatures().size()], row-major
  // one a buffer: 2 * node + (0 weights, 1 activations); -1: isn't placed
  std::vector<int32_t> tensor_of;
};

PlacementGraph MakePlacementGraph(const Program& program);

// What the columns of PlacementGraph::features are: the EGRL paper's as far as a Program knows
// them, log(1 + x) and then standardised over the nodes of the graph.
absl::Span<const Feature> PlacementFeatures();

}  // namespace mallocgame

#endif  // MALLOCGAME_PLACEMENT_PLACEMENT_GRAPH_H_
