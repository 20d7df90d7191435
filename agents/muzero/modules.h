// The three networks of MuZero as Torch modules. Private to network.cc and learner.cc: nothing else
// includes Torch.
//
//   representation   observation [rows, size] -> hidden [rows, width]. Accesses and slices of the
//                    occupancy picture become tokens; the access at hand attends to them; with the
//                    actions and scalars that makes the hidden state.
//   dynamics         hidden, action -> hidden after it, distribution of the reward
//   prediction       hidden -> policy logits, distribution of the value
#ifndef AGENTS_MUZERO_MODULES_H_
#define AGENTS_MUZERO_MODULES_H_

#include <torch/torch.h>

#include <cstdint>
#include <tuple>
#include <vector>

#include "agents/muzero/config.h"

namespace mallocgame::muzero {

// Where the parts of an observation lie.
struct ObservationShape {
  int64_t size = 0;
  int64_t accesses = 0, access_rows = 0, access_features = 0;
  int64_t actions = 0, num_actions = 0, action_features = 0;
  int64_t occupancy = 0, columns = 0, cells = 0;
  int64_t idle = 0;
  int64_t scalars = 0, num_scalars = 0;
};
ObservationShape ShapeOf(const ObservationOptions& options, int num_actions);

class BlockImpl : public torch::nn::Module {
 public:
  explicit BlockImpl(int64_t width);
  torch::Tensor forward(const torch::Tensor& x);

 private:
  torch::nn::LayerNorm norm_{nullptr};
  torch::nn::Linear first_{nullptr}, second_{nullptr};
};
TORCH_MODULE(Block);

class RepresentationImpl : public torch::nn::Module {
 public:
  RepresentationImpl(const ObservationShape& shape, const Config& config);
  torch::Tensor forward(const torch::Tensor& observations);

 private:
  torch::Tensor Attend(const torch::Tensor& tokens, const torch::Tensor& middle,
                       const torch::Tensor& absent);

  ObservationShape shape_;
  int64_t heads_;
  torch::nn::Linear access_{nullptr}, column_{nullptr}, query_{nullptr}, join_{nullptr};
  torch::Tensor position_;
  torch::nn::Sequential blocks_{nullptr};
  torch::nn::LayerNorm norm_{nullptr};
};
TORCH_MODULE(Representation);

class DynamicsImpl : public torch::nn::Module {
 public:
  DynamicsImpl(int64_t num_actions, const Config& config);
  // `actions`: int64 [rows].
  std::tuple<torch::Tensor, torch::Tensor> forward(const torch::Tensor& hidden,
                                                   const torch::Tensor& actions);

 private:
  torch::nn::Embedding action_{nullptr};
  torch::nn::Linear reward_{nullptr};
  Block first_{nullptr}, second_{nullptr};
  torch::nn::LayerNorm norm_{nullptr};
};
TORCH_MODULE(Dynamics);

class PredictionImpl : public torch::nn::Module {
 public:
  PredictionImpl(int64_t num_actions, const Config& config);
  std::tuple<torch::Tensor, torch::Tensor> forward(const torch::Tensor& hidden);

 private:
  torch::nn::Linear trunk_{nullptr}, policy_{nullptr}, value_{nullptr};
};
TORCH_MODULE(Prediction);

// The head of the consistency loss (SimSiam, as in EfficientZero): what the dynamics predict,
// projected, should point where the representation of the real next observation does.
class ProjectionImpl : public torch::nn::Module {
 public:
  explicit ProjectionImpl(const Config& config);
  torch::Tensor project(const torch::Tensor& hidden);
  torch::Tensor predict(const torch::Tensor& projected);

 private:
  torch::nn::Linear project_{nullptr}, predict_first_{nullptr}, predict_second_{nullptr};
  torch::nn::LayerNorm norm_{nullptr};
};
TORCH_MODULE(Projection);

class NetworksImpl : public torch::nn::Module {
 public:
  NetworksImpl(const ObservationShape& shape, const Config& config);

  // Draws all weights from `seed`, in the order of registration; biases, and what the heads end
  // with, are 0.
  void Initialise(uint64_t seed);

  Representation representation{nullptr};
  Prediction prediction{nullptr};
  Dynamics dynamics{nullptr};      // empty unless the dynamics are learned
  Projection projection{nullptr};  // likewise
};
TORCH_MODULE(Networks);

// Mean of a distribution over bins (logits [rows, bins]) in units: float32 [rows].
torch::Tensor MeanOfBins(const torch::Tensor& logits);

torch::Device DeviceOf(const Config& config);

}  // namespace mallocgame::muzero

#endif  // AGENTS_MUZERO_MODULES_H_
