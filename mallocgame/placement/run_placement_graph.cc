// The runs of a priority game as nodes: what a network sees of them, and which of them meet.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "mallocgame/game/priority/priority_tables.h"
#include "mallocgame/game/priority/run_graph.h"
#include "mallocgame/placement/placement_graph.h"

namespace mallocgame {
namespace {

// So many of the whole lives that are next in importance above a run, and that it meets in time,
// are linked with it.
constexpr int kRivals = 4;
constexpr int32_t kLength = 1 << 20;

class RunBuilder {
 public:
  explicit RunBuilder(const PriorityTables& tables)
      : tables_(tables), program_(tables.arrangement.program), runs_(tables) {}

  PlacementGraph Build() {
    graph_.length = kLength;
    graph_.columns = kRunFeatures;
    graph_.features = runs_.features;
    AddNodes();
    AddParts();
    AddUses();
    AddRivals();
    std::sort(edges_.begin(), edges_.end());
    edges_.erase(std::unique(edges_.begin(), edges_.end()), edges_.end());
    for (const auto& [from, to] : edges_) {
      graph_.from.push_back(from);
      graph_.to.push_back(to);
    }
    return std::move(graph_);
  }

 private:
  static int32_t UnitAt(float piece) {
    return static_cast<int32_t>(std::lround(piece / RunGraph::kPieces * kLength));
  }

  void AddNodes() {
    const size_t count = tables_.runs.size();
    graph_.nodes.resize(count);
    graph_.stake.resize(count);
    graph_.unplaced_bytes.assign(count, 0);
    graph_.parent.assign(count, -1);
    graph_.tensor_of.assign(program_.buffers().size(), -1);
    for (const Run& run : tables_.runs) {
      const GameBuffer& buffer = tables_.arrangement.tables.buffers[run.buffer];
      PlacementNode& node = graph_.nodes[run.id];
      node.tick = tables_.arrangement.decision(run.buffer, run.first).tick;
      PlacedTensor& tensor = node.tensors[0];
      tensor.buffers = {buffer.id};
      tensor.size_bytes = buffer.size_bytes;
      tensor.begin = UnitAt(runs_.begin[run.id]);
      tensor.end = std::max(tensor.begin + 1, UnitAt(runs_.end[run.id]));
      graph_.stake[run.id] = 1 + std::max<int64_t>(0, run.saving_ps);
    }
    for (const int32_t root : tables_.roots) {
      const Run& run = tables_.runs[root];
      graph_.tensor_of[tables_.arrangement.tables.buffers[run.buffer].id.index()] = 2 * run.id;
    }
    for (int32_t n = 0; n < static_cast<int32_t>(count); ++n)
      graph_.transfers.push_back({n, 2 * n, graph_.nodes[n].tensors[0].size_bytes});
  }

  void AddParts() {
    for (const Run& run : tables_.runs) {
      if (run.parent < 0) continue;
      const int32_t parent = tables_.runs[run.parent].id;
      graph_.parent[run.id] = parent;
      edges_.emplace_back(parent, run.id);
    }
  }

  // What an instruction reads, and what it writes.
  void AddUses() {
    for (Tick t = 0; t < program_.ticks(); ++t) {
      const Instruction& instruction = program_.instruction(t);
      std::vector<int32_t> read, written;
      for (int32_t a = 0; a < instruction.access_count; ++a) {
        const Access& access = program_.accesses()[instruction.first_access + a];
        const int32_t tensor = graph_.tensor_of[access.buffer.index()];
        if (tensor < 0) continue;
        if (access.kind == AccessKind::kRead || access.kind == AccessKind::kUpdate)
          read.push_back(tensor / 2);
        if (access.kind == AccessKind::kWrite || access.kind == AccessKind::kUpdate)
          written.push_back(tensor / 2);
      }
      for (const int32_t from : read) {
        for (const int32_t to : written) {
          if (from != to) edges_.emplace_back(from, to);
        }
      }
    }
  }

  void AddRivals() {
    std::vector<int32_t> order(graph_.nodes.size()), before;
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [this](int32_t a, int32_t b) {
      return runs_.log_importance[a] > runs_.log_importance[b];
    });
    for (const int32_t n : order) {
      int found = 0;
      for (auto rival = before.rbegin(); rival != before.rend() && found < kRivals; ++rival) {
        if (runs_.begin[*rival] >= runs_.end[n] || runs_.begin[n] >= runs_.end[*rival]) continue;
        edges_.emplace_back(*rival, n);
        ++found;
      }
      if (graph_.parent[n] < 0) before.push_back(n);
    }
  }

  const PriorityTables& tables_;
  const Program& program_;
  const RunGraph runs_;
  PlacementGraph graph_;
  std::vector<std::pair<int32_t, int32_t>> edges_;
};

}  // namespace

PlacementGraph MakePlacementGraph(const PriorityTables& tables) {
  return RunBuilder(tables).Build();
}

}  // namespace mallocgame
