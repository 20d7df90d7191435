// Which instructions are nodes, which buffers belong to them, how long these live, and what a
// network sees of them.
#include "mallocgame/placement/placement_graph.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/match.h"

namespace mallocgame {
namespace {

constexpr int kWeights = 0, kActivations = 1;

constexpr Feature kFeatures[] = {
    {"op_product",
     "1 if the instruction multiplies matrices or convolves (16 flops or more for each byte); with "
     "the next six it stands for op_id"},
    {"op_fusion", "1 if the instruction is a fusion"},
    {"op_data", "1 if the instruction only moves data (no flops)"},
    {"op_convolution", "1 if it is a convolution or dot, or a fusion that is named after one"},
    {"op_reduce", "likewise of a reduction"},
    {"op_index", "likewise of a gather, a scatter, a dynamic slice or its update"},
    {"op_copy", "likewise of a copy, reshape, transpose, pad, slice or broadcast"},
    {"weight_size", "bytes of its weights"},
    {"ifm_size", "bytes that it reads and that are no weights"},
    {"ofm_size", "bytes that it writes"},
    {"weight_rows", "outermost dimension of its weights in rows of tiles; 0 if not known"},
    {"ofm_rows", "the same of its activations"},
    {"n_ops_left", "nodes after this one"},
    {"n_w_left", "nodes after this one that have weights"},
    {"flops",
     "flops of one run; stands for groups, kernel, stride, pad, dilation and batch, which a "
     "Program "
     "does not know"},
    {"intensity", "flops for each byte moved"},
    {"trips", "how often the instruction runs"},
    {"readers", "nodes that read its activations"},
    {"lifetime", "nodes over which its activations live"},
    {"is_output", "1 if some of its activations are results of the program"},
};

constexpr size_t kColumns = std::size(kFeatures);
consteval size_t Column(std::string_view name) { return ColumnOf(kFeatures, name); }

bool IsWeight(const Buffer& buffer) {
  return buffer.origin == BufferOrigin::kParameter || buffer.origin == BufferOrigin::kConstant;
}

bool Reads(AccessKind kind) { return kind == AccessKind::kRead || kind == AccessKind::kUpdate; }

struct Work {
  int64_t read = 0, written = 0;
  int64_t bytes() const { return read + written; }
};

Work WorkOf(const InstructionCost& cost) {
  Work work;
  for (const CostArray& array : cost.operands) work.read += array.accessed_bytes;
  for (const CostArray& array : cost.outputs) work.written += array.accessed_bytes;
  return work;
}

class Builder {
 public:
  explicit Builder(const Program& program) : program_(program) {}

  PlacementGraph Build() {
    AddNodes();
    AddTensors();
    AddEdges();
    AddTransfers();
    AddFeatures();
    graph_.length = static_cast<int32_t>(graph_.nodes.size());
    return std::move(graph_);
  }

 private:
  int32_t NodeAt(Tick tick) const { return node_at_[tick]; }

  void AddNodes() {
    node_at_.assign(program_.ticks(), -1);
    for (Tick t = 0; t < program_.ticks(); ++t) {
      const InstructionCost& cost = program_.cost().instructions[t];
      if (program_.instruction(t).kind != InstructionKind::kOrdinary ||
          (WorkOf(cost).bytes() == 0 && cost.flops == 0))
        continue;
      node_at_[t] = static_cast<int32_t>(graph_.nodes.size());
      graph_.nodes.push_back({t, {}});
    }
  }

  void AddTensors() {
    const size_t count = program_.buffers().size();
    graph_.tensor_of.assign(count, -1);
    for (size_t b = 0; b < count; ++b) {
      const BufferId id(static_cast<int64_t>(b));
      const Buffer& buffer = program_.buffer(id);
      const absl::Span<const AccessId> accesses = program_.accesses_of(id);
      const auto first = std::find_if(accesses.begin(), accesses.end(), [&](AccessId a) {
        return NodeAt(program_.access(a).tick) >= 0;
      });
      if (!buffer.eligible || program_.pinned(id) || first == accesses.end()) continue;
      const int32_t node = NodeAt(program_.access(*first).tick);
      const int kind = IsWeight(buffer) ? kWeights : kActivations;
      PlacedTensor& tensor = graph_.nodes[node].tensors[kind];
      const auto [begin, end] =
          kind == kWeights ? std::pair(0, static_cast<int32_t>(graph_.nodes.size())) : Lifetime(id);
      tensor.begin = tensor.buffers.empty() ? begin : std::min(tensor.begin, begin);
      tensor.end = std::max(tensor.end, end);
      tensor.buffers.push_back(id);
      tensor.size_bytes += buffer.size_bytes;
      graph_.tensor_of[b] = 2 * node + kind;
    }
  }

  // The nodes [begin, end) over which a buffer lives. If it lives at a loop's boundary, it lives
  // all through the loop.
  std::pair<int32_t, int32_t> Lifetime(BufferId id) const {
    const absl::Span<const AccessId> accesses = program_.accesses_of(id);
    Tick begin = program_.access(accesses.front()).tick;
    Tick end = program_.buffer(id).is_output ? program_.ticks()
                                             : program_.access(accesses.back()).tick + 1;
    for (bool grown = true; grown;) {
      grown = false;
      for (const Loop& loop : program_.loops()) {
        const bool inside = begin > loop.entry && end <= loop.exit;
        const bool apart = end <= loop.entry || begin > loop.exit;
        if (inside || apart || (begin <= loop.entry && end > loop.exit)) continue;
        begin = std::min(begin, loop.entry);
        end = std::max(end, loop.exit + 1);
        grown = true;
      }
    }
    const auto node_from = [&](Tick tick) {
      const auto at =
          std::lower_bound(graph_.nodes.begin(), graph_.nodes.end(), tick,
                           [](const PlacementNode& node, Tick t) { return node.tick < t; });
      return static_cast<int32_t>(at - graph_.nodes.begin());
    };
    return {node_from(begin), node_from(end)};
  }

  void AddEdges() {
    std::vector<std::pair<int32_t, int32_t>> edges;
    for (const Access& access : program_.accesses()) {
      const int32_t tensor = graph_.tensor_of[access.buffer.index()], reader = NodeAt(access.tick);
      if (tensor < 0 || tensor % 2 == kWeights || reader < 0 || reader == tensor / 2 ||
          !Reads(access.kind))
        continue;
      edges.emplace_back(tensor / 2, reader);
    }
    std::sort(edges.begin(), edges.end());
    edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
    for (const auto& [from, to] : edges) {
      graph_.from.push_back(from);
      graph_.to.push_back(to);
    }
  }

  void AddTransfers() {
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      const Tick tick = graph_.nodes[n].tick;
      const int32_t first_access = program_.instruction(tick).first_access;
      const InstructionCost& cost = program_.cost().instructions[tick];
      std::map<int32_t, int64_t> bytes;  // by tensor; -1: not placed
      for (const std::vector<CostArray>* arrays : {&cost.operands, &cost.outputs}) {
        for (const CostArray& array : *arrays) {
          const bool placed = array.slot >= 0;
          const int32_t tensor =
              placed
                  ? graph_.tensor_of[program_.accesses()[first_access + array.slot].buffer.index()]
                  : -1;
          bytes[tensor] += array.accessed_bytes;
        }
      }
      graph_.unplaced_bytes.push_back(bytes[-1]);
      int64_t all = 0;
      for (const auto& [tensor, moved] : bytes) all += moved;
      graph_.stake.push_back(all * program_.trips(tick));
      for (const auto& [tensor, moved] : bytes) {
        if (tensor >= 0 && moved > 0)
          graph_.transfers.push_back({static_cast<int32_t>(n), tensor, moved});
      }
    }
  }

  void AddFeatures() {
    graph_.columns = kFeatures;
    const size_t count = graph_.nodes.size();
    std::vector<double> rows(count * kColumns, 0.0);
    double weights_left = 0;
    for (size_t n = count; n-- > 0;) {
      const PlacementNode& node = graph_.nodes[n];
      double* const row = rows.data() + n * kColumns;
      Describe(node, row);
      row[Column("n_ops_left")] = static_cast<double>(count - 1 - n);
      row[Column("n_w_left")] = weights_left;
      weights_left += node.tensors[kWeights].size_bytes > 0;
    }
    for (const int32_t from : graph_.from) ++rows[from * kColumns + Column("readers")];
    graph_.features.resize(rows.size());
    for (size_t i = 0; i < rows.size(); ++i) {
      const bool flag = absl::StartsWith(kFeatures[i % kColumns].name, "op_") ||
                        i % kColumns == Column("is_output");
      graph_.features[i] =
          static_cast<float>(flag ? rows[i] : std::log1p(std::max(0.0, rows[i])) / 4);
    }
  }

  // Of the largest buffer.
  double Rows(const PlacedTensor& tensor) const {
    int64_t largest = 0, rows = 0;
    for (const BufferId id : tensor.buffers) {
      const Buffer& buffer = program_.buffer(id);
      if (buffer.size_bytes <= largest || buffer.unit_bytes == 0) continue;
      largest = buffer.size_bytes;
      rows = buffer.size_bytes / buffer.unit_bytes;
    }
    return static_cast<double>(rows);
  }

  void Describe(const PlacementNode& node, double* row) const {
    const Instruction& instruction = program_.instruction(node.tick);
    const InstructionCost& cost = program_.cost().instructions[node.tick];
    const Work work = WorkOf(cost);
    const double flops = static_cast<double>(cost.flops);
    int64_t weights_read = 0;
    for (const CostArray& array : cost.operands) {
      if (array.slot < 0) continue;
      const BufferId buffer = program_.accesses()[instruction.first_access + array.slot].buffer;
      if (IsWeight(program_.buffer(buffer))) weights_read += array.accessed_bytes;
    }
    row[Column("intensity")] = work.bytes() > 0 ? flops / static_cast<double>(work.bytes()) : 0;
    row[Column("op_product")] = row[Column("intensity")] >= 16;
    row[Column("op_fusion")] = instruction.opcode == "fusion";
    row[Column("op_data")] = cost.flops == 0;
    // XLA names a fusion after the instructions that it is made of.
    const std::string& called =
        instruction.opcode == "fusion" ? instruction.name : instruction.opcode;
    const auto is_one_of = [&](std::initializer_list<const char*> words) {
      return std::any_of(words.begin(), words.end(),
                         [&](const char* word) { return absl::StrContains(called, word); });
    };
    row[Column("op_convolution")] = is_one_of({"convolution", "dot"});
    row[Column("op_reduce")] = is_one_of({"reduce"});
    row[Column("op_index")] = is_one_of({"gather", "scatter", "dynamic-slice", "dynamic-update",
                                         "dynamic_slice", "dynamic_update"});
    row[Column("op_copy")] =
        is_one_of({"copy", "reshape", "transpose", "pad", "slice", "broadcast"});
    row[Column("weight_rows")] = Rows(node.tensors[kWeights]);
    row[Column("ofm_rows")] = Rows(node.tensors[kActivations]);
    row[Column("weight_size")] = static_cast<double>(node.tensors[kWeights].size_bytes);
    row[Column("ifm_size")] = static_cast<double>(work.read - weights_read);
    row[Column("ofm_size")] = static_cast<double>(work.written);
    row[Column("flops")] = flops;
    row[Column("trips")] = static_cast<double>(program_.trips(node.tick));
    row[Column("lifetime")] = node.tensors[kActivations].end - node.tensors[kActivations].begin;
    for (const BufferId buffer : node.tensors[kActivations].buffers) {
      if (program_.buffer(buffer).is_output) row[Column("is_output")] = 1;
    }
  }

  const Program& program_;
  PlacementGraph graph_;
  std::vector<int32_t> node_at_;  // for each tick; -1 if it is no node
};

}  // namespace

PlacementGraph MakePlacementGraph(const Program& program) { return Builder(program).Build(); }

}  // namespace mallocgame
