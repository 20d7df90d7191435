// A program as the placement problem sees it. Each instruction that takes time is a node with two
// tensors to place. Its weights are the constants and entry parameters that it is the first to
// read, its activations the other buffers that it is the first to access. Each buffer belongs to
// one node. A buffer that no node accesses, or that is not eligible, is not placed.
//
// As a priority game sees it, a node is a run: accesses of one buffer that follow each other. Its
// first tensor is that buffer; in the place of the second one stands when the run has its turn.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "mallocgame/base/ids.h"
#include "mallocgame/game/feature.h"
#include "mallocgame/program/program.h"

namespace mallocgame {

struct PriorityTables;

// All buffers of one kind of one node, which one decision places. Without buffers size_bytes is 0,
// and the decision does nothing.
struct PlacedTensor {
  std::vector<BufferId> buffers;
  int64_t size_bytes = 0;
  // It is alive over [begin, end), in units of which PlacementGraph::length make up the program;
  // weights of an instruction always are.
  int32_t begin = 0, end = 0;
};

struct PlacementNode {
  Tick tick = 0;                        // of the instruction, or of the run's first access
  std::array<PlacedTensor, 2> tensors;  // weights, activations
};

// The bytes that one run of a node moves of a placed tensor; > 0.
struct PlacedTransfer {
  int32_t node = 0, tensor = 0;  // the tensor is 2 * its node, plus 1 for activations
  int64_t bytes = 0;
};

struct PlacementGraph {
  // Instructions in schedule order; runs by Run::id, so that a run comes before its parts.
  std::vector<PlacementNode> nodes;
  // Each edge, sorted and distinct. `to` reads activations of `from`. Or runs: `to` is a part of
  // `from`; both are whole lives and an instruction that reads `from` writes `to`; or they meet in
  // time and `from` is one of the whole lives next in importance above `to`.
  std::vector<int32_t> from, to;
  absl::Span<const Feature> columns;      // of a node; of runs: kRunFeatures (run_graph.h)
  std::vector<float> features;            // [nodes, columns.size()], row-major
  std::vector<PlacedTransfer> transfers;  // by node, then by tensor; distinct
  std::vector<int64_t> unplaced_bytes;    // [nodes]: bytes that one run moves of other arrays
  // [nodes]: how much of the latency is a node's, but for a factor: the bytes that it moves in all
  // its trips, or the picoseconds that a run saves as estimated; >= 0, not all of them 0.
  std::vector<int64_t> stake;
  int32_t length = 0;  // the program's, in units of PlacedTensor::begin: nodes, or shares of time
  // For each buffer: 2 * node, plus 1 if it belongs to the activations; -1 if it is not placed.
  // With runs 2 * the node of its whole life.
  std::vector<int32_t> tensor_of;
  // [nodes] of runs: the node of which it is a part, -1 of a whole life. Else empty.
  std::vector<int32_t> parent;

  bool of_runs() const { return !parent.empty(); }
};

// The instructions of a program. The columns are like those recalled of EGRL
// (docs/related-work.md), as far as a Program knows them: each is 0 or 1, or log(1 + x) / 4 of a
// number x, so that one network can read all programs.
PlacementGraph MakePlacementGraph(const Program& program);
// The runs of a priority game.
PlacementGraph MakePlacementGraph(const PriorityTables& tables);

}  // namespace mallocgame
