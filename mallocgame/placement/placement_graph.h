// A program as the placement problem sees it: each instruction that takes time is a node with two
// tensors to place. Its weights are the constants and entry parameters that it is the first to
// read, its activations the other buffers that it is the first to access. Each buffer belongs to
// one node. A buffer that no node accesses, or that is not eligible, is not placed.
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

// All buffers of one kind of one node, which one decision places. Without buffers size_bytes is 0,
// and the decision does nothing.
struct PlacedTensor {
  std::vector<BufferId> buffers;
  int64_t size_bytes = 0;
  int32_t begin = 0, end = 0;  // it is alive over the nodes [begin, end); weights always are
};

struct PlacementNode {
  Tick tick = 0;
  std::array<PlacedTensor, 2> tensors;  // weights, activations
};

// The bytes that one run of a node moves of a placed tensor; > 0.
struct PlacedTransfer {
  int32_t node = 0, tensor = 0;  // the tensor is 2 * its node, plus 1 for activations
  int64_t bytes = 0;
};

struct PlacementGraph {
  std::vector<PlacementNode> nodes;  // in schedule order
  std::vector<int32_t> from, to;  // each edge: `to` reads activations of `from`; sorted, distinct
  std::vector<float> features;    // [nodes, PlacementFeatures().size()], row-major
  std::vector<PlacedTransfer> transfers;  // by node, then by tensor; distinct
  std::vector<int64_t> unplaced_bytes;    // [nodes]: bytes that one run moves of other arrays
  // For each buffer: 2 * node, plus 1 if it belongs to the activations; -1 if it is not placed.
  std::vector<int32_t> tensor_of;
};

PlacementGraph MakePlacementGraph(const Program& program);

// The columns of PlacementGraph::features: those of the EGRL paper as far as a Program knows them.
// A column is 0 or 1, or log(1 + x) / 4 of a number x, so that one network can read all programs.
absl::Span<const Feature> PlacementFeatures();

}  // namespace mallocgame

#endif  // MALLOCGAME_PLACEMENT_PLACEMENT_GRAPH_H_
