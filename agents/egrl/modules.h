// The networks of EGRL as Torch modules. Private to policy.cc and learner.cc, because no other
// source of this folder but edge_attention.cc includes Torch.
//
//   policy   graph -> logits [2 * nodes, levels], with one categorical head for each decision. A
//            graph U-Net (Gao and Ji, ICML 2019): on the way down it attends along the links and
//            then keeps the nodes with the highest scores, linked where two steps join them. The
//            way back up mirrors that.
//   critic   graph, maps -> latencies [maps], over the baseline's. A latency is a sum over nodes,
//            weighted by their shares. Each node's term comes from its features (with attention
//            along the links) and from how the map spreads its bytes over the levels. Maps of a
//            priority game need not fit: there it comes from what the map wants of the memories
//            while the node is alive, too.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "agents/egrl/config.h"
#include "agents/egrl/edge_attention.h"
#include "agents/egrl/problem_graph.h"

namespace mallocgame::egrl {

// A ProblemGraph as tensors, float32.
struct GraphTensors {
  explicit GraphTensors(const ProblemGraph& graph);
  int64_t nodes, levels;
  int64_t decisions;       // number of real decisions
  double slowest;          // ProblemGraph::slowest
  torch::Tensor features;  // [nodes, features]
  torch::Tensor real;      // [2 * nodes]: 1 or 0
  torch::Tensor share;     // [nodes]
  torch::Tensor fill;      // [memories, 2 * nodes, slices]; undefined without any
  torch::Tensor memory;  // [memories, levels]: 1 where the level takes bytes of the memory, else 0
  // [nodes, slices] on a priority game: how a node's life is spread over the slices; rows sum to 1.
  // Else undefined.
  torch::Tensor alive;
  // Sparse [2 * nodes, 2 * nodes]: 1 where the second decision must be Split for the first to be
  // open. Undefined where all are open.
  torch::Tensor ancestors;
  // Sparse [2 * nodes, 2 * nodes]: the share of a node's bytes that each decision has; the rows of
  // the first half take weights, the others activations.
  torch::Tensor parts;
  Links links;
  LinkTensors link_tensors;
};

class AttentionImpl : public torch::nn::Module {
 public:
  AttentionImpl(int64_t width, int64_t heads);
  // [nodes, width] -> [nodes, width].
  torch::Tensor forward(const torch::Tensor& x, const LinkTensors& links);

 private:
  int64_t heads_;
  torch::nn::Linear value_{nullptr}, score_{nullptr};
  torch::nn::LayerNorm norm_{nullptr};
};
TORCH_MODULE(Attention);

class PolicyModuleImpl : public torch::nn::Module {
 public:
  PolicyModuleImpl(const Config& config, int64_t features, int64_t levels);
  torch::Tensor forward(const GraphTensors& graph);

 private:
  double pooled_, slow_bias_;
  int64_t levels_;
  torch::nn::Linear embed_{nullptr}, end_{nullptr};
  torch::nn::LayerNorm embed_norm_{nullptr}, end_norm_{nullptr};
  std::vector<Attention> down_, up_;
  std::vector<torch::Tensor> direction_;  // for each pooling, the direction of its score
  Attention bottom_{nullptr};
};
TORCH_MODULE(PolicyModule);
// The number of weights that PolicyModule has, without making it.
int64_t NumPolicyWeights(const Config& config, int64_t features, int64_t levels);

class CriticModuleImpl : public torch::nn::Module {
 public:
  // `wanted`: the memories of which it reads what a map wants.
  CriticModuleImpl(const Config& config, int64_t features, int64_t levels, int64_t wanted);
  // What the critic makes of the nodes whatever the map, [nodes, critic_hidden].
  torch::Tensor Context(const GraphTensors& graph);
  // `maps` is [maps, 2 * nodes, levels]: a one-hot vector or probabilities for each decision, and 0
  // where there is nothing to place.
  torch::Tensor forward(const GraphTensors& graph, const torch::Tensor& context,
                        const torch::Tensor& maps);

 private:
  torch::nn::Linear embed_{nullptr}, map_{nullptr}, end_{nullptr};
  torch::nn::LayerNorm embed_norm_{nullptr};
  Attention attention_{nullptr};
};
TORCH_MODULE(CriticModule);
// The same of CriticModule.
int64_t NumCriticWeights(const Config& config, int64_t features, int64_t levels, int64_t wanted);

// The nodes with the highest scores, in ascending order: a `share` of all, rounded up. Of equal
// scores the first nodes are taken.
std::vector<int64_t> BestNodes(const torch::Tensor& scores, double share);

// Draws all weights from `seed`, in the order of registration. Biases become 0.
void Initialise(torch::nn::Module& module, uint64_t seed);

// All parameters as one list, in the order of registration, and back.
std::vector<float> WeightsOf(const torch::nn::Module& module);
void SetWeights(absl::Span<const float> weights, torch::nn::Module& module);

}  // namespace mallocgame::egrl
