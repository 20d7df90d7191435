// The networks of the strong agent as Torch modules, and what both agents' networks share. Private
// to the sources of this folder that include Torch.
//
//   representation   observation [rows, size] -> hidden state [rows, width]. Items, which are the
//                    accesses of the time game or the runs of the priority game, and slices of the
//                    occupancy picture become tokens; in the schedule game the units that are shown
//                    do too. Those that the game asks about, the current access, the candidates or
//                    the units, attend to all. The result makes the hidden state,
//                    together with the first and the mean of what is asked about, the mean and the
//                    greatest of what the actions say, and the scalars. So what it joins is of the
//                    same size for any number of candidates.
//   prediction       hidden state, what is seen of each action -> logits of the policy;
//                    hidden state -> distribution of the value
//
// The policy has one head for all actions. It reads the hidden state, what the observation says of
// the action and of the item or unit that it takes, and which mode it is. So what is learned of one
// candidate holds for all. What the baseline took first begins with a lead, and the head learns
// where to part from it.
#ifndef AGENTS_MUZERO_MODULES_H_
#define AGENTS_MUZERO_MODULES_H_

#include <torch/torch.h>

#include <cstdint>
#include <tuple>
#include <vector>

#include "agents/muzero/config.h"
#include "agents/muzero/observation_shape.h"
#include "agents/muzero/paper_modules.h"

namespace mallocgame::muzero {

class RepresentationImpl : public torch::nn::Module {
 public:
  RepresentationImpl(const ObservationShape& shape, const Config& config);
  torch::Tensor forward(const torch::Tensor& observations);

 private:
  torch::Tensor Attend(const torch::Tensor& tokens, const torch::Tensor& asked,
                       const torch::Tensor& absent);

  ObservationShape shape_;
  torch::nn::Linear item_{nullptr}, unit_{nullptr}, column_{nullptr}, query_{nullptr},
      action_{nullptr}, join_{nullptr};
  torch::Tensor position_;
  torch::nn::Sequential blocks_{nullptr};
  torch::nn::LayerNorm norm_{nullptr};
};
TORCH_MODULE(Representation);

class PredictionImpl : public torch::nn::Module {
 public:
  PredictionImpl(const ObservationShape& shape, const Config& config);
  // `seen`: the observations of the positions, or KnownOf them.
  std::tuple<torch::Tensor, torch::Tensor> forward(const torch::Tensor& hidden,
                                                   const torch::Tensor& seen);

 private:
  torch::Tensor Policy(const torch::Tensor& hidden, const torch::Tensor& seen);

  ObservationShape shape_;
  torch::nn::Linear state_{nullptr}, item_{nullptr}, unit_{nullptr}, action_{nullptr},
      second_{nullptr}, policy_{nullptr}, trunk_{nullptr}, value_{nullptr};
  torch::Tensor mode_, ordering_;
};
TORCH_MODULE(Prediction);

// All that is learned: the networks of the strong agent, or those of the paper's
// (paper_modules.h).
class NetworksImpl : public torch::nn::Module {
 public:
  NetworksImpl(const ObservationShape& shape, const Config& config);

  // Draws all weights from `seed`, in the order of registration. Biases and the last layers of the
  // heads become 0.
  void Initialise(uint64_t seed);

  // The hidden state [rows, width] of observations [rows, size].
  torch::Tensor Represent(const torch::Tensor& observations);
  // The logits of the policy and the distribution of the value. The strong agent's policy looks at
  // the observations too.
  std::tuple<torch::Tensor, torch::Tensor> Predict(const torch::Tensor& hidden,
                                                   const torch::Tensor& observations);
  // The learned dynamics, of the paper's agent alone: the next hidden state, and the distribution
  // of the reward.
  std::tuple<torch::Tensor, torch::Tensor> Step(const torch::Tensor& hidden,
                                                const torch::Tensor& actions);

 private:
  Representation representation_{nullptr};
  Prediction prediction_{nullptr};
  PaperRepresentation paper_representation_{nullptr};
  PaperDynamics paper_dynamics_{nullptr};
  PaperPrediction paper_prediction_{nullptr};
};
TORCH_MODULE(Networks);

// The number of weights that Networks has, without making them.
int64_t NumWeights(const ObservationShape& shape, const Config& config);

// The logarithms of the policy's probabilities, in which only actions count that are legal by the
// mask of the observations [rows, size]: [rows, num_actions].
torch::Tensor LogPolicy(const torch::Tensor& logits, const torch::Tensor& observations,
                        const ObservationShape& shape);

// The mean of distributions over bins, given by logits [rows, bins], in units: float32 [rows].
torch::Tensor MeanOfBins(const torch::Tensor& logits);

// The device that `config` asks for.
torch::Device DeviceOf(const Config& config);

}  // namespace mallocgame::muzero

#endif  // AGENTS_MUZERO_MODULES_H_
