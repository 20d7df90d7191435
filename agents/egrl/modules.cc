#include "agents/egrl/modules.h"

#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

namespace mallocgame::egrl {
namespace {

namespace nn = torch::nn;

// How many weights the parts of the networks have.
int64_t LinearWeights(int64_t in, int64_t out) { return (in + 1) * out; }
int64_t NormWeights(int64_t width) { return 2 * width; }
int64_t AttentionWeights(int64_t width, int64_t heads) {
  return width * width + width * 2 * heads + NormWeights(width);
}

nn::LayerNorm Norm(int64_t width) { return nn::LayerNorm(nn::LayerNormOptions({width})); }

torch::Tensor Floats(const std::vector<float>& data, at::IntArrayRef shape) {
  return torch::tensor(data).view(shape);
}

torch::Tensor PartsOf(const ProblemGraph& graph) {
  std::vector<int64_t> rows, columns;
  std::vector<float> shares;
  for (const auto& [node, decision, share] : graph.parts) {
    rows.push_back(node + (decision % 2 == 0 ? 0 : graph.nodes));
    columns.push_back(decision);
    shares.push_back(share);
  }
  const auto at = torch::stack({torch::tensor(rows), torch::tensor(columns)});
  return torch::sparse_coo_tensor(at, torch::tensor(shares), {2 * graph.nodes, 2 * graph.nodes})
      .coalesce();
}

torch::Tensor MemoryOf(const ProblemGraph& graph) {
  auto memory = torch::zeros({graph.memories, graph.levels});
  for (size_t level = 0; level < graph.memory_of.size(); ++level) {
    const auto at = static_cast<int64_t>(level);
    if (graph.memory_of[level] >= 0) memory[graph.memory_of[level]][at] = 1;
  }
  return memory;
}

torch::Tensor AncestorsOf(const ProblemGraph& graph) {
  std::vector<int64_t> rows, columns;
  for (int64_t i = 0; i < graph.map_size(); ++i) {
    for (int32_t at = graph.parent[i]; at >= 0; at = graph.parent[at]) {
      rows.push_back(i);
      columns.push_back(at);
    }
  }
  const auto at =
      torch::stack({torch::tensor(rows, torch::kInt64), torch::tensor(columns, torch::kInt64)});
  return torch::sparse_coo_tensor(at, torch::ones({static_cast<int64_t>(rows.size())}),
                                  {graph.map_size(), graph.map_size()})
      .coalesce();
}

}  // namespace

GraphTensors::GraphTensors(const ProblemGraph& graph)
    : nodes(graph.nodes), levels(graph.levels), decisions(graph.decisions), slowest(graph.slowest),
      features(Floats(graph.node_features, {graph.nodes, graph.features})),
      real(torch::tensor(graph.real)), share(torch::tensor(graph.share)), memory(MemoryOf(graph)),
      parts(PartsOf(graph)), links(graph.links), link_tensors(graph.links) {
  if (graph.memories > 0)
    fill = Floats(graph.fill, {graph.memories, 2 * graph.nodes, ProblemGraph::kSlices});
  if (!graph.parent.empty()) ancestors = AncestorsOf(graph);
  if (!graph.alive.empty()) alive = Floats(graph.alive, {graph.nodes, ProblemGraph::kSlices});
}

AttentionImpl::AttentionImpl(int64_t width, int64_t heads) : heads_(heads) {
  value_ = register_module("value", nn::Linear(nn::LinearOptions(width, width).bias(false)));
  score_ = register_module("score", nn::Linear(nn::LinearOptions(width, 2 * heads).bias(false)));
  norm_ = register_module("norm", Norm(width));
}

torch::Tensor AttentionImpl::forward(const torch::Tensor& x, const LinkTensors& links) {
  const int64_t nodes = x.size(0), width = x.size(1);
  const auto values = value_->forward(x).view({nodes, heads_, width / heads_});
  const auto scores = score_->forward(x).view({nodes, 2, heads_});
  return torch::elu(norm_->forward(x + EdgeAttention(values, scores, links).view({nodes, width})));
}

PolicyModuleImpl::PolicyModuleImpl(const Config& config, int64_t features, int64_t levels)
    : pooled_(config.pooled), slow_bias_(config.slow_bias), levels_(levels) {
  const int64_t width = config.hidden;
  embed_ = register_module("embed", nn::Linear(features, width));
  embed_norm_ = register_module("embed_norm", Norm(width));
  for (int i = 0; i < config.depth; ++i) {
    down_.emplace_back(register_module("down" + std::to_string(i), Attention(width, config.heads)));
    direction_.push_back(
        register_parameter("direction" + std::to_string(i), torch::zeros({1, width})));
  }
  bottom_ = register_module("bottom", Attention(width, config.heads));
  for (int i = 0; i < config.depth; ++i) {
    up_.emplace_back(register_module("up" + std::to_string(i), Attention(width, config.heads)));
  }
  end_norm_ = register_module("end_norm", Norm(width));
  end_ = register_module("end", nn::Linear(width, 2 * levels));
}

int64_t NumPolicyWeights(const Config& config, int64_t features, int64_t levels) {
  const int64_t width = config.hidden, attention = AttentionWeights(width, config.heads);
  return LinearWeights(features, width) + NormWeights(width) +
         config.depth * (2 * attention + width) + attention + NormWeights(width) +
         LinearWeights(width, 2 * levels);
}

torch::Tensor PolicyModuleImpl::forward(const GraphTensors& graph) {
  struct Floor {
    torch::Tensor x, kept;
    LinkTensors links;
  };
  const auto embedded = torch::elu(embed_norm_->forward(embed_->forward(graph.features)));
  std::vector<Floor> floors;
  auto x = embedded;
  Links links = graph.links;
  LinkTensors link_tensors = graph.link_tensors;
  for (size_t i = 0; i < down_.size(); ++i) {
    x = down_[i]->forward(x, link_tensors);
    const auto scores =
        torch::sigmoid(torch::mm(x, direction_[i].t()) / (direction_[i].norm() + 1e-6));
    const std::vector<int64_t> kept = BestNodes(scores, pooled_);
    floors.push_back({x, torch::tensor(kept, torch::kInt64), link_tensors});
    x = (x * scores).index_select(0, floors.back().kept);
    links = LinksWithinTwoSteps(links, kept);
    link_tensors = LinkTensors(links);
  }
  x = bottom_->forward(x, link_tensors);
  for (size_t i = down_.size(); i-- > 0;) {
    const Floor& floor = floors[i];
    x = up_[i]->forward(floor.x.index_add(0, floor.kept, x), floor.links);
  }
  const auto logits =
      end_->forward(end_norm_->forward(x + embedded)).view({2 * graph.nodes, levels_});
  auto bias = torch::zeros({levels_});
  bias[levels_ - 1] = slow_bias_;
  return logits + bias;
}

namespace {

// More than this is wanted too much anyway, and would dwarf what else a critic reads.
constexpr double kMostWanted = 4;

// What the maps want of the memories while each node is alive, [nodes, maps, 2 * memories]: the
// mean share of a memory, and of what is beyond all of it.
torch::Tensor WantedBeside(const GraphTensors& graph, const torch::Tensor& maps) {
  const auto takes = torch::matmul(maps, graph.memory.t()).permute({2, 0, 1});
  const auto wanted = torch::bmm(takes, graph.fill);  // [memories, maps, slices]
  const auto both = torch::cat({wanted, torch::relu(wanted - 1)}, 0);
  return torch::matmul(both, graph.alive.t()).permute({2, 1, 0}).clamp_max(kMostWanted);
}

}  // namespace

CriticModuleImpl::CriticModuleImpl(const Config& config, int64_t features, int64_t levels,
                                   int64_t wanted) {
  const int64_t width = config.critic_hidden;
  embed_ = register_module("embed", nn::Linear(features, width));
  embed_norm_ = register_module("embed_norm", Norm(width));
  attention_ = register_module("attention", Attention(width, config.heads));
  map_ = register_module("map", nn::Linear(2 * (levels + wanted), width));
  end_ = register_module("end", nn::Linear(width, 1));
}

int64_t NumCriticWeights(const Config& config, int64_t features, int64_t levels, int64_t wanted) {
  const int64_t width = config.critic_hidden;
  return LinearWeights(features, width) + NormWeights(width) +
         AttentionWeights(width, config.heads) + LinearWeights(2 * (levels + wanted), width) +
         LinearWeights(width, 1);
}

torch::Tensor CriticModuleImpl::Context(const GraphTensors& graph) {
  const auto embedded = torch::elu(embed_norm_->forward(embed_->forward(graph.features)));
  return attention_->forward(embedded, graph.link_tensors);
}

torch::Tensor CriticModuleImpl::forward(const GraphTensors& graph, const torch::Tensor& context,
                                        const torch::Tensor& maps) {
  const int64_t count = maps.size(0), nodes = graph.nodes, levels = graph.levels;
  // How each node's bytes are spread: [nodes, maps, levels] for its weights and activations.
  const auto decided = maps.permute({1, 0, 2}).reshape({2 * nodes, count * levels});
  const auto spread = torch::mm(graph.parts, decided).view({2, nodes, count, levels});
  auto read = torch::cat({spread[0], spread[1]}, 2);
  if (graph.alive.defined()) read = torch::cat({read, WantedBeside(graph, maps)}, 2);
  const auto terms = end_->forward(torch::relu(map_->forward(read) + context.unsqueeze(1)));
  return graph.slowest * torch::mv(terms.squeeze(2).t(), graph.share);
}

std::vector<int64_t> BestNodes(const torch::Tensor& scores, double share) {
  const auto values = scores.detach().contiguous();
  const float* const score = values.data_ptr<float>();
  std::vector<int64_t> nodes(values.numel());
  std::iota(nodes.begin(), nodes.end(), 0);
  const auto better = [score](int64_t a, int64_t b) {
    return score[a] != score[b] ? score[a] > score[b] : a < b;
  };
  const auto kept = static_cast<size_t>(std::ceil(share * static_cast<double>(nodes.size())));
  std::partial_sort(nodes.begin(), nodes.begin() + static_cast<ptrdiff_t>(kept), nodes.end(),
                    better);
  nodes.resize(kept);
  std::sort(nodes.begin(), nodes.end());
  return nodes;
}

void Initialise(torch::nn::Module& module, uint64_t seed) {
  const torch::NoGradGuard no_gradient;
  auto generator = at::detail::createCPUGenerator(seed);
  for (auto& item : module.named_parameters()) {
    torch::Tensor& parameter = item.value();
    if (item.key().find("norm.") != std::string::npos) continue;  // 1 and 0 already
    if (parameter.dim() < 2) {
      parameter.zero_();
    } else {
      parameter.normal_(0, 1 / std::sqrt(static_cast<double>(parameter.size(1))), generator);
    }
  }
}

std::vector<float> WeightsOf(const torch::nn::Module& module) {
  std::vector<float> weights;
  for (const torch::Tensor& parameter : module.parameters()) {
    const torch::Tensor data = parameter.detach().contiguous();
    weights.insert(weights.end(), data.data_ptr<float>(), data.data_ptr<float>() + data.numel());
  }
  return weights;
}

void SetWeights(absl::Span<const float> weights, torch::nn::Module& module) {
  const float* next = weights.data();
  for (torch::Tensor& parameter : module.parameters()) {
    std::copy_n(next, parameter.numel(), parameter.data_ptr<float>());
    next += parameter.numel();
  }
}

}  // namespace mallocgame::egrl
