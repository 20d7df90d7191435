#include "mallocgame/placement/level_model.h"

#include <algorithm>
#include <cmath>

namespace mallocgame {
namespace {

// The time of `amount` at `per_second` in picoseconds, rounded to nearest.
int64_t RatePs(int64_t amount, int64_t per_second) {
  return static_cast<int64_t>(
      std::llround(static_cast<double>(amount) * 1e12 / static_cast<double>(per_second)));
}

}  // namespace

LevelModel::LevelModel(const Program& program, const Hierarchy& hierarchy,
                       const PlacementGraph& graph)
    : nodes_(graph.nodes.size()) {
  for (const MemoryLevel& level : hierarchy.levels) capacity_.push_back(level.capacity_bytes);
  for (const PlacementNode& node : graph.nodes) {
    for (size_t kind = 0; kind < 2; ++kind) {
      const PlacedTensor& tensor = node.tensors[kind];
      tensors_.push_back({tensor.size_bytes, tensor.begin, tensor.end, kind == 0});
      total_bytes_ += tensor.size_bytes;
    }
  }
  const int64_t slowest = hierarchy.levels.back().bytes_per_second;
  std::vector<int64_t> bytes(tensors_.size(), 0);
  for (const PlacementNode& node : graph.nodes) {
    const InstructionCost& cost = program.cost().instructions[node.tick];
    const int32_t first_access = program.instruction(node.tick).first_access;
    int64_t fixed = 0;
    std::vector<uint32_t> touched;
    for (const std::vector<CostArray>* arrays : {&cost.operands, &cost.outputs}) {
      for (const CostArray& array : *arrays) {
        const int32_t tensor =
            array.slot < 0
                ? -1
                : graph.tensor_of[program.accesses()[first_access + array.slot].buffer.index()];
        if (tensor < 0) {
          fixed += array.accessed_bytes;
        } else if (array.accessed_bytes > 0) {
          touched.push_back(static_cast<uint32_t>(tensor));
          bytes[tensor] += array.accessed_bytes;
        }
      }
    }
    std::sort(touched.begin(), touched.end());
    touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
    rows_.push_back({RatePs(cost.flops, hierarchy.flops_per_second), RatePs(fixed, slowest),
                     program.trips(node.tick), static_cast<uint32_t>(term_tensor_.size())});
    for (const uint32_t tensor : touched) {
      term_tensor_.push_back(tensor);
      for (const MemoryLevel& level : hierarchy.levels)
        term_ps_.push_back(RatePs(bytes[tensor], level.bytes_per_second));
      bytes[tensor] = 0;
    }
  }
  rows_.push_back({0, 0, 0, static_cast<uint32_t>(term_tensor_.size())});
}

void LevelModel::Clear(Occupancy* occupancy) const {
  occupancy->activations.assign(capacity_.size() * nodes_, 0);
  occupancy->most.assign(capacity_.size(), 0);
  occupancy->weights.assign(capacity_.size(), 0);
}

bool LevelModel::Fits(const Tensor& tensor, size_t level, const Occupancy& occupancy) const {
  const int64_t room = capacity_[level] - occupancy.weights[level] - tensor.size_bytes;
  if (occupancy.most[level] <= room) return true;
  if (tensor.weights || room < 0) return false;
  const auto first = occupancy.activations.begin() + static_cast<ptrdiff_t>(level * nodes_);
  return std::all_of(first + tensor.begin, first + tensor.end,
                     [room](int64_t taken) { return taken <= room; });
}

void LevelModel::Take(const Tensor& tensor, size_t level, Occupancy* occupancy) const {
  if (tensor.weights) {
    occupancy->weights[level] += tensor.size_bytes;
    return;
  }
  int64_t* const taken = occupancy->activations.data() + level * nodes_;
  for (int32_t n = tensor.begin; n < tensor.end; ++n) {
    taken[n] += tensor.size_bytes;
    occupancy->most[level] = std::max(occupancy->most[level], taken[n]);
  }
}

uint8_t LevelModel::Settle(const Tensor& tensor, uint8_t level, Occupancy* occupancy) const {
  size_t at = level;
  while (at + 1 < capacity_.size() && !Fits(tensor, at, *occupancy)) ++at;
  Take(tensor, at, occupancy);
  return static_cast<uint8_t>(at);
}

int64_t LevelModel::Rectify(absl::Span<uint8_t> map, Occupancy* occupancy) const {
  Clear(occupancy);
  int64_t moved = 0;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (tensors_[i].size_bytes == 0) continue;
    const uint8_t level = Settle(tensors_[i], map[i], occupancy);
    if (level != map[i]) moved += tensors_[i].size_bytes;
    map[i] = level;
  }
  return moved;
}

std::vector<uint8_t> LevelModel::CompilerMap() const {
  std::vector<uint8_t> map(tensors_.size(), 0);
  Occupancy occupancy;
  Clear(&occupancy);
  for (const bool weights : {false, true}) {
    for (size_t i = 0; i < tensors_.size(); ++i) {
      if (tensors_[i].weights == weights && tensors_[i].size_bytes > 0)
        map[i] = Settle(tensors_[i], 0, &occupancy);
    }
  }
  return map;
}

int64_t LevelModel::peak_bytes() const {
  Occupancy occupancy;
  Clear(&occupancy);
  for (const Tensor& tensor : tensors_) Take(tensor, 0, &occupancy);
  return occupancy.weights[0] + occupancy.most[0];
}

PlacementCosts LevelModel::Costs() const {
  PlacementCosts costs;
  costs.capacity_bytes = capacity_;
  costs.term_ps = term_ps_;
  for (size_t r = 0; r + 1 < rows_.size(); ++r) {
    costs.trips.push_back(rows_[r].trips);
    costs.compute_ps.push_back(rows_[r].compute_ps);
    costs.fixed_ps.push_back(rows_[r].fixed_ps);
    for (size_t term = rows_[r].first_term; term < rows_[r + 1].first_term; ++term) {
      costs.term_node.push_back(static_cast<int32_t>(r));
      costs.term_tensor.push_back(static_cast<int32_t>(term_tensor_[term]));
    }
  }
  return costs;
}

int64_t LevelModel::LatencyPs(absl::Span<const uint8_t> map) const {
  const size_t levels = capacity_.size();
  int64_t latency = 0;
  for (size_t r = 0; r + 1 < rows_.size(); ++r) {
    int64_t transfers = rows_[r].fixed_ps;
    for (size_t term = rows_[r].first_term; term < rows_[r + 1].first_term; ++term) {
      transfers += term_ps_[term * levels + map[term_tensor_[term]]];
    }
    latency += std::max(rows_[r].compute_ps, transfers) * rows_[r].trips;
  }
  return latency;
}

}  // namespace mallocgame
