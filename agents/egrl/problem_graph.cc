#include "agents/egrl/problem_graph.h"

#include <algorithm>
#include <utility>

namespace mallocgame::egrl {
namespace {

// Greatest number of links of a node after a pooling. Without it, hubs of hubs would make the graph
// dense.
constexpr size_t kMostLinks = 64;

Links LinksOf(int nodes, const PlacementGraph& graph) {
  std::vector<std::pair<int32_t, int32_t>> pairs;
  for (int32_t n = 0; n < nodes; ++n) pairs.emplace_back(n, n);
  for (size_t e = 0; e < graph.from.size(); ++e) {
    pairs.emplace_back(graph.from[e], graph.to[e]);
    pairs.emplace_back(graph.to[e], graph.from[e]);
  }
  std::sort(pairs.begin(), pairs.end());
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  Links links;
  links.first.assign(nodes + 1, 0);
  for (const auto& [to, from] : pairs) {
    ++links.first[to + 1];
    links.from.push_back(from);
  }
  for (size_t n = 0; n < static_cast<size_t>(nodes); ++n) links.first[n + 1] += links.first[n];
  return links;
}

// For how long of a slice of the program a tensor is alive, in units of PlacementGraph::length.
double AliveIn(const PlacementGraph& graph, const PlacedTensor& tensor, int slice) {
  const double length = static_cast<double>(graph.length) / ProblemGraph::kSlices;
  const double begin = std::max<double>(tensor.begin, slice * length),
               end = std::min<double>(tensor.end, (slice + 1) * length);
  return std::max(0.0, end - begin);
}

// What each decision fills of the memories, the first of which have these capacities; activations
// take their bytes of all but the first once for each of the engines.
std::vector<float> FillOf(const PlacementGraph& graph, absl::Span<const int64_t> capacity_bytes,
                          int64_t engines) {
  std::vector<float> fill;
  const double length = static_cast<double>(graph.length) / ProblemGraph::kSlices;
  for (size_t memory = 0; memory < capacity_bytes.size(); ++memory) {
    for (const PlacementNode& node : graph.nodes) {
      for (size_t kind : {0, 1}) {
        const PlacedTensor& tensor = node.tensors[kind];
        const double copies = kind == 0 || memory == 0 ? 1 : static_cast<double>(engines);
        const double full = copies * static_cast<double>(tensor.size_bytes) /
                            static_cast<double>(capacity_bytes[memory]);
        for (int slice = 0; slice < ProblemGraph::kSlices; ++slice)
          fill.push_back(static_cast<float>(full * AliveIn(graph, tensor, slice) / length));
      }
    }
  }
  return fill;
}

std::vector<float> LivesOf(const PlacementGraph& graph) {
  std::vector<float> lives;
  for (const PlacementNode& node : graph.nodes) {
    const PlacedTensor& tensor = node.tensors[0];
    for (int slice = 0; slice < ProblemGraph::kSlices; ++slice)
      lives.push_back(
          static_cast<float>(AliveIn(graph, tensor, slice) / (tensor.end - tensor.begin)));
  }
  return lives;
}

// All levels but the last have a capacity on a hierarchy. On a priority game what places a
// residence takes fast memory.
void AddFill(const PlacementProblem& problem, ProblemGraph& graph) {
  graph.memory_of.assign(graph.levels, -1);
  if (const absl::StatusOr<PlacementCosts> costs = problem.Costs(); costs.ok()) {
    graph.memories = graph.levels - 1;
    for (int level = 0; level < graph.memories; ++level) graph.memory_of[level] = level;
    graph.fill =
        FillOf(problem.graph(), absl::MakeConstSpan(costs->capacity_bytes).first(graph.memories),
               costs->engines);
  } else if (problem.graph().of_runs()) {
    graph.memories = 1;
    std::fill_n(graph.memory_of.begin(), PlacementProblem::kPlacingLevels, 0);
    graph.fill = FillOf(problem.graph(), {problem.game()->usable_bytes()}, 1);
    graph.alive = LivesOf(problem.graph());
  }
}

}  // namespace

Links LinksWithinTwoSteps(const Links& links, const std::vector<int64_t>& kept) {
  const size_t nodes = links.nodes();
  std::vector<int64_t> number(nodes, -1), found_for(nodes, -1);
  for (size_t i = 0; i < kept.size(); ++i) number[kept[i]] = static_cast<int64_t>(i);
  Links result;
  const auto neighbours = [&](int64_t n) {
    return absl::MakeConstSpan(links.from)
        .subspan(links.first[n], links.first[n + 1] - links.first[n]);
  };
  for (const int64_t node : kept) {
    std::vector<int64_t> found;
    const auto take = [&](int64_t other) {
      const size_t o = other;
      if (number[o] < 0 || found_for[o] == node || found.size() >= kMostLinks) return;
      found_for[o] = node;
      found.push_back(number[o]);
    };
    take(node);
    for (const int64_t next : neighbours(node)) take(next);
    for (const int64_t next : neighbours(node)) {
      if (found.size() >= kMostLinks) break;
      for (const int64_t after : neighbours(next)) take(after);
    }
    std::sort(found.begin(), found.end());
    result.from.insert(result.from.end(), found.begin(), found.end());
    result.first.push_back(static_cast<int64_t>(result.from.size()));
  }
  return result;
}

ProblemGraph MakeProblemGraph(const PlacementProblem& problem) {
  const PlacementGraph& source = problem.graph();
  ProblemGraph graph;
  graph.nodes = static_cast<int>(source.nodes.size());
  graph.levels = problem.levels();
  graph.features = static_cast<int>(source.columns.size());
  graph.node_features = source.features;
  graph.links = LinksOf(graph.nodes, source);
  std::vector<double> bytes(source.nodes.size(), 0.0);
  for (size_t n = 0; n < bytes.size(); ++n)
    bytes[n] = static_cast<double>(source.unplaced_bytes[n]);
  for (const PlacedTransfer& transfer : source.transfers)
    bytes[transfer.node] += static_cast<double>(transfer.bytes);
  for (const auto& [node, decision, moved] : source.transfers) {
    const double share = static_cast<double>(moved) / bytes[node];
    graph.parts.push_back({node, decision, static_cast<float>(share)});
  }
  if (problem.graph().of_runs()) {
    for (int32_t n = 0; n < graph.nodes; ++n) graph.parts.push_back({n, 2 * n + 1, 1});
  }
  double all = 0;
  for (const int64_t stake : source.stake) all += static_cast<double>(stake);
  for (const int64_t stake : source.stake)
    graph.share.push_back(static_cast<float>(static_cast<double>(stake) / all));
  const PlacementMap slowest(problem.map_size(), static_cast<uint8_t>(graph.levels - 1));
  graph.slowest = static_cast<double>(problem.Evaluate(slowest)->latency_ps) /
                  static_cast<double>(problem.baseline_ps());
  for (const PlacementNode& node : source.nodes) {
    for (const PlacedTensor& tensor : node.tensors) {
      const bool real = tensor.size_bytes > 0 || problem.graph().of_runs();
      graph.real.push_back(real);
      graph.decisions += real;
    }
  }
  for (const int32_t parent : source.parent) {
    for (int kind = 0; kind < 2; ++kind) graph.parent.push_back(parent < 0 ? -1 : 2 * parent);
  }
  AddFill(problem, graph);
  return graph;
}

std::vector<uint8_t> OpenDecisions(const ProblemGraph& graph, absl::Span<const uint8_t> map) {
  std::vector<uint8_t> open(map.size(), 1);
  for (size_t i = 0; i < graph.parent.size(); ++i) {
    const int32_t parent = graph.parent[i];
    if (parent >= 0) open[i] = open[parent] != 0 && map[parent] == PlacementProblem::kSplitLevel;
  }
  return open;
}

}  // namespace mallocgame::egrl
