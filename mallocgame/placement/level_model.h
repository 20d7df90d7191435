// What a map costs on a Hierarchy, computed from tables: a map of ResNet-50 takes about a
// microsecond. Private to the folder.
//
// Capacity. Weights lie in their level all the time, activations from the node that first writes
// them to the last that accesses them, once for each engine in the levels that engines share. Bytes
// count, not offsets. Rectify goes through the nodes in
// order, weights before activations: a tensor that does not fit beside those placed before it moves
// to the next slower level that has room.
//
// Latency. It is the sum over instructions of trips * max(compute, transfers). Compute is the flops
// over an engine's rate, transfers the sum over all arrays of the accessed bytes over an engine's
// bandwidth of the level that they lie in. Arrays that are not placed lie in the slowest level.
//
// Staging (Hierarchy says what it is). The weights that are fetched next are always those that are
// needed first, so one number says all: for how long the slowest level has worked ahead. Fetching
// as early and as much as possible is the best that can be done with a map, because a fetch takes
// the same time of the same level whenever it is done.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "mallocgame/placement/hierarchy.h"
#include "mallocgame/placement/placement.h"
#include "mallocgame/placement/placement_graph.h"
#include "mallocgame/program/program.h"

namespace mallocgame {

class LevelModel {
 public:
  LevelModel(const Program& program, const Hierarchy& hierarchy, const PlacementGraph& graph);

  // Working memory of Rectify, which each thread uses again and again: the bytes taken.
  struct Occupancy {
    std::vector<int64_t> activations;  // [levels, nodes]
    // For each level: the most bytes of activations at one node, and the bytes of weights.
    std::vector<int64_t> most, weights;
  };

  // Moves tensors of `map`, which gives each its level, until it fits; returns the bytes that
  // moved.
  int64_t Rectify(absl::Span<uint8_t> map, Occupancy* occupancy) const;
  // The latency of a map that fits.
  int64_t LatencyPs(absl::Span<const uint8_t> map) const;

  // What a compiler does: it gives each tensor the fastest level that has room for it, first to all
  // activations in order, then to all weights.
  std::vector<uint8_t> CompilerMap() const;

  PlacementCosts Costs() const;

  int64_t total_bytes() const { return total_bytes_; }
  // The most bytes alive at once, which the last level must hold.
  int64_t peak_bytes() const;

 private:
  struct Tensor {
    int64_t size_bytes;
    int32_t begin, end;
    bool weights;
  };
  // An instruction: the time of its flops, of its arrays that are not placed, and its first term.
  struct Row {
    int64_t compute_ps, fixed_ps, trips;
    uint32_t first_term;
    int64_t staged_term;  // the transfer of its own weights if they can be fetched ahead, else -1
  };

  void Clear(Occupancy* occupancy) const;
  int64_t BytesIn(const Tensor& tensor, size_t level) const;
  bool Fits(const Tensor& tensor, size_t level, const Occupancy& occupancy) const;
  void Take(const Tensor& tensor, size_t level, Occupancy* occupancy) const;
  uint8_t Settle(const Tensor& tensor, uint8_t level, Occupancy* occupancy) const;

  std::vector<int64_t> capacity_;
  int64_t engines_, staging_ps_;  // the time in which the slowest level fills the staging buffer
  std::vector<Tensor> tensors_;   // two for each node
  size_t nodes_;
  std::vector<Row> rows_;  // one for each node, and one more, whose first_term ends the last one's
  // A term is the transfer of a tensor by an instruction: the tensor, and its time at each level.
  std::vector<uint32_t> term_tensor_;
  std::vector<int64_t> term_ps_;  // [terms, levels]
  int64_t total_bytes_ = 0;
};

}  // namespace mallocgame
