// What a map costs on a Hierarchy, from tables: a map of ResNet-50 takes about a microsecond.
// Private to the folder.
//
// Capacity. Weights lie in their level all the time, activations from the node that first writes
// them to the last that accesses them; bytes count, not offsets. Rectifying goes through the nodes
// in order, weights before activations: a tensor that doesn't fit beside those placed before it
// moves to the next slower level that has room.
//
// Latency. Sum over instructions of trips * max(compute, transfers); compute is flops over the
// chip's rate, transfers the sum over all arrays of accessed bytes over the bandwidth of the level
// they lie in. What isn't placed lies in the slowest level.
#ifndef MALLOCGAME_PLACEMENT_LEVEL_MODEL_H_
#define MALLOCGAME_PLACEMENT_LEVEL_MODEL_H_

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

  // Bytes by level and node while maps are rectified; one a thread, used again and again.
  struct Occupancy {
    std::vector<int64_t> activations;    // [levels, nodes]
    std::vector<int64_t> most, weights;  // one a level
  };

  // Makes `map` (one level a tensor) one that fits; returns the bytes that had to move.
  int64_t Rectify(absl::Span<uint8_t> map, Occupancy* occupancy) const;
  // Of a map that fits.
  int64_t LatencyPs(absl::Span<const uint8_t> map) const;

  // The compiler: each tensor in the fastest level that has room for it, all activations in order,
  // then all weights.
  std::vector<uint8_t> CompilerMap() const;

  PlacementCosts Costs() const;

  int64_t total_bytes() const { return total_bytes_; }
  // The most bytes alive at once: what the last level must hold.
  int64_t peak_bytes() const;

 private:
  struct Tensor {
    int64_t size_bytes;
    int32_t begin, end;
    bool weights;
  };
  struct Row {  // of an instruction
    int64_t compute_ps, fixed_ps, trips;
    uint32_t first_term;
  };

  void Clear(Occupancy* occupancy) const;
  bool Fits(const Tensor& tensor, size_t level, const Occupancy& occupancy) const;
  void Take(const Tensor& tensor, size_t level, Occupancy* occupancy) const;
  uint8_t Settle(const Tensor& tensor, uint8_t level, Occupancy* occupancy) const;

  std::vector<int64_t> capacity_;
  std::vector<Tensor> tensors_;  // two a node
  size_t nodes_;
  std::vector<Row> rows_;  // and one more, whose first_term ends the last
  std::vector<uint32_t> term_tensor_;
  std::vector<int64_t> term_ps_;  // [terms, levels]
  int64_t total_bytes_ = 0;
};

}  // namespace mallocgame

#endif  // MALLOCGAME_PLACEMENT_LEVEL_MODEL_H_
