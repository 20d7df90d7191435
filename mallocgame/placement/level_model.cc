#include "mallocgame/placement/level_model.h"

#include <algorithm>
#include <cmath>

namespace mallocgame {
namespace {

// The time of `amount` at `per_second` in picoseconds, rounded to nearest.
int64_t RatePs(int64_t amount, double per_second) {
  return static_cast<int64_t>(std::llround(static_cast<double>(amount) * 1e12 / per_second));
}

}  // namespace

LevelModel::LevelModel(const Program& program, const Hierarchy& hierarchy,
                       const PlacementGraph& graph)
    : engines_(hierarchy.engines), nodes_(graph.nodes.size()) {
  for (const MemoryLevel& level : hierarchy.levels) capacity_.push_back(level.capacity_bytes);
  for (const PlacementNode& node : graph.nodes) {
    for (size_t kind = 0; kind < 2; ++kind) {
      const PlacedTensor& tensor = node.tensors[kind];
      tensors_.push_back({tensor.size_bytes, tensor.begin, tensor.end, kind == 0});
      total_bytes_ += tensor.size_bytes;
    }
  }
  // The time of a transfer by one engine.
  const auto transfer_ps = [&](int64_t bytes, size_t level) {
    return RatePs(bytes, static_cast<double>(hierarchy.levels[level].bytes_per_second) /
                             static_cast<double>(level == 0 ? 1 : engines_));
  };
  const size_t slowest = hierarchy.levels.size() - 1;
  staging_ps_ = transfer_ps(hierarchy.staging_bytes, slowest);
  size_t next = 0;
  for (size_t n = 0; n < nodes_; ++n) {
    const Tick tick = graph.nodes[n].tick;
    rows_.push_back({RatePs(program.cost().instructions[tick].flops,
                            static_cast<double>(hierarchy.flops_per_second)),
                     transfer_ps(graph.unplaced_bytes[n], slowest), program.trips(tick),
                     static_cast<uint32_t>(term_tensor_.size()), -1});
    for (; next < graph.transfers.size() && graph.transfers[next].node == static_cast<int32_t>(n);
         ++next) {
      const auto& [node, tensor, bytes] = graph.transfers[next];
      if (tensor == 2 * node && rows_.back().trips == 1 && staging_ps_ > 0)
        rows_.back().staged_term = static_cast<int64_t>(term_tensor_.size());
      term_tensor_.push_back(static_cast<uint32_t>(tensor));
      for (size_t level = 0; level <= slowest; ++level)
        term_ps_.push_back(transfer_ps(bytes, level));
    }
  }
  rows_.push_back({0, 0, 0, static_cast<uint32_t>(term_tensor_.size()), -1});
}

void LevelModel::Clear(Occupancy* occupancy) const {
  occupancy->activations.assign(capacity_.size() * nodes_, 0);
  occupancy->most.assign(capacity_.size(), 0);
  occupancy->weights.assign(capacity_.size(), 0);
}

int64_t LevelModel::BytesIn(const Tensor& tensor, size_t level) const {
  return tensor.size_bytes * (tensor.weights || level == 0 ? 1 : engines_);
}

bool LevelModel::Fits(const Tensor& tensor, size_t level, const Occupancy& occupancy) const {
  const int64_t room = capacity_[level] - occupancy.weights[level] - BytesIn(tensor, level);
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
  const int64_t bytes = BytesIn(tensor, level);
  int64_t* const taken = occupancy->activations.data() + level * nodes_;
  for (int32_t n = tensor.begin; n < tensor.end; ++n) {
    taken[n] += bytes;
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
  const size_t last = capacity_.size() - 1;
  for (const Tensor& tensor : tensors_) Take(tensor, last, &occupancy);
  return occupancy.weights[last] + occupancy.most[last];
}

PlacementCosts LevelModel::Costs() const {
  PlacementCosts costs;
  costs.capacity_bytes = capacity_;
  costs.engines = engines_;
  costs.staging_ps = staging_ps_;
  costs.term_ps = term_ps_;
  for (size_t r = 0; r + 1 < rows_.size(); ++r) {
    costs.trips.push_back(rows_[r].trips);
    costs.compute_ps.push_back(rows_[r].compute_ps);
    costs.fixed_ps.push_back(rows_[r].fixed_ps);
    costs.staged_term.push_back(static_cast<int32_t>(rows_[r].staged_term));
    for (size_t term = rows_[r].first_term; term < rows_[r + 1].first_term; ++term) {
      costs.term_node.push_back(static_cast<int32_t>(r));
      costs.term_tensor.push_back(static_cast<int32_t>(term_tensor_[term]));
    }
  }
  return costs;
}

int64_t LevelModel::LatencyPs(absl::Span<const uint8_t> map) const {
  const size_t levels = capacity_.size(), slowest = levels - 1;
  // `ahead` is the time for which the slowest level has worked for later nodes.
  int64_t latency = 0, ahead = 0;
  for (size_t r = 0; r + 1 < rows_.size(); ++r) {
    const Row& row = rows_[r];
    int64_t slow = row.fixed_ps, faster = 0;
    for (size_t term = row.first_term; term < rows_[r + 1].first_term; ++term) {
      const size_t level = map[term_tensor_[term]];
      (level == slowest ? slow : faster) += term_ps_[term * levels + level];
    }
    int64_t taken = 0;
    if (row.staged_term >= 0 && map[2 * r] == slowest) {
      const int64_t* const ps = term_ps_.data() + static_cast<size_t>(row.staged_term) * levels;
      taken = std::min(ahead, ps[slowest]);
      slow -= taken;
      if (taken > 0)
        faster += static_cast<int64_t>(
            std::llround(static_cast<double>(ps[0]) * static_cast<double>(taken) /
                         static_cast<double>(ps[slowest])));
    }
    const int64_t time = std::max(row.compute_ps, slow + faster);
    latency += time * row.trips;
    ahead = std::min(staging_ps_, ahead - taken + (time - slow) * row.trips);
  }
  return latency;
}

}  // namespace mallocgame
