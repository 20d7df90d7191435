// The networks of MuZero as published, as Torch modules. Private to the sources of this folder that
// include Torch. Sizes and details are ours.
//
//   representation   observation of the time game [rows, size] -> hidden state [rows, width]:
//                    convolutions over the picture of memory, whose channels are the occupancy and
//                    the channel's idle time, and over the uses in the order of decisions
//   dynamics         hidden state, action -> next hidden state, distribution of the reward
//   prediction       hidden state -> logits of the policy, distribution of the value
#ifndef AGENTS_MUZERO_PAPER_MODULES_H_
#define AGENTS_MUZERO_PAPER_MODULES_H_

#include <torch/torch.h>

#include <cstdint>
#include <tuple>

#include "agents/muzero/config.h"
#include "agents/muzero/observation_shape.h"

namespace mallocgame::muzero {

// A residual block.
class BlockImpl : public torch::nn::Module {
 public:
  explicit BlockImpl(int64_t width);
  torch::Tensor forward(const torch::Tensor& x);

 private:
  torch::nn::LayerNorm norm_{nullptr};
  torch::nn::Linear first_{nullptr}, second_{nullptr};
};
TORCH_MODULE(Block);

class PaperRepresentationImpl : public torch::nn::Module {
 public:
  PaperRepresentationImpl(const ObservationShape& shape, const Config& config);
  torch::Tensor forward(const torch::Tensor& observations);

 private:
  ObservationShape shape_;
  torch::nn::Conv1d near_{nullptr}, far_{nullptr};     // over uses
  torch::nn::Conv2d fine_{nullptr}, coarse_{nullptr};  // over the picture
  torch::nn::Linear join_{nullptr};
  torch::nn::Sequential blocks_{nullptr};
  torch::nn::LayerNorm norm_{nullptr};
};
TORCH_MODULE(PaperRepresentation);

class PaperDynamicsImpl : public torch::nn::Module {
 public:
  PaperDynamicsImpl(const ObservationShape& shape, const Config& config);
  // `actions`: int64 [rows].
  std::tuple<torch::Tensor, torch::Tensor> forward(const torch::Tensor& hidden,
                                                   const torch::Tensor& actions);

 private:
  torch::nn::Embedding action_{nullptr};
  Block first_{nullptr}, second_{nullptr};
  torch::nn::LayerNorm norm_{nullptr};
  torch::nn::Linear reward_{nullptr};
};
TORCH_MODULE(PaperDynamics);

class PaperPredictionImpl : public torch::nn::Module {
 public:
  PaperPredictionImpl(const ObservationShape& shape, const Config& config);
  std::tuple<torch::Tensor, torch::Tensor> forward(const torch::Tensor& hidden);

 private:
  torch::nn::Linear choose_{nullptr}, policy_{nullptr}, trunk_{nullptr}, value_{nullptr};
};
TORCH_MODULE(PaperPrediction);

// The number of weights of all three, without making them.
int64_t NumPaperWeights(const ObservationShape& shape, const Config& config);

}  // namespace mallocgame::muzero

#endif  // AGENTS_MUZERO_PAPER_MODULES_H_
