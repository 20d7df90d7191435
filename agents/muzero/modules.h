// The networks of MuZero as Torch modules. Private to torch_network.cc and learner.cc, because no
// other source of this folder includes Torch.
//
//   representation   observation [rows, size] -> hidden state [rows, width]. Items, which are the
//                    accesses of the time game or the runs of the priority game, and slices of the
//                    occupancy picture become tokens; in the schedule game the units that are shown
//                    do too. Those that the game asks about, the current access, the candidates or
//                    the units, attend to all. The result makes the hidden state,
//                    together with the first and the mean of what is asked about, the mean and the
//                    greatest of what the actions say, and the scalars. So what it joins is of the
//                    same size for any number of candidates.
//   dynamics         hidden state, action, what is known of the next position -> next hidden state,
//                    distribution of the reward
//   prediction       hidden state, what is seen of each action -> logits of the policy;
//                    hidden state -> distribution of the value
//
// The policy has one head for all actions. It reads the hidden state, what the observation says of
// the action and of the item or unit that it takes, and which mode it is. So what is learned of one
// candidate holds for all. What the baseline took first begins with a lead, and the head learns
// where to part from it.
//
// What is known without the rules of memory are the items and units, the actions that are legal,
// and what the baseline does: KnownOf. Learned dynamics are given it, and predict the rest.
#ifndef AGENTS_MUZERO_MODULES_H_
#define AGENTS_MUZERO_MODULES_H_

#include <torch/torch.h>

#include <cstdint>
#include <tuple>
#include <vector>

#include "agents/muzero/config.h"

namespace mallocgame::muzero {

// Where the parts of an observation lie: an offset for each part, and the sizes of its axes.
struct ObservationShape {
  int64_t size = 0;
  int64_t items = 0, num_items = 0, item_features = 0;
  int64_t first_asked = 0, num_asked = 0;  // the items that the game asks about
  // In the schedule game: the units, to each of which an action belongs, and how many actions
  // decide the order. Those come first, and the last of them belongs to no unit. 0 in other games.
  int64_t units = 0, num_units = 0, unit_features = 0, ordering = 0;
  int64_t actions = 0, num_actions = 0, action_features = 0;
  int64_t occupancy = 0, columns = 0, cells = 0;
  int64_t idle = 0, demand = -1;  // demand is -1 where there is no such part
  int64_t scalars = 0, num_scalars = 0;
  int64_t mask = 0;  // of legal actions, [num_actions]
  // What the agent sees beside the observation (task.h): both parts, one behind the other.
  int64_t beside = 0, num_beside = 0;
};
ObservationShape ShapeOf(const Config& config);

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
  torch::Tensor Attend(const torch::Tensor& tokens, const torch::Tensor& asked,
                       const torch::Tensor& absent);

  ObservationShape shape_;
  int64_t heads_;
  torch::nn::Linear item_{nullptr}, unit_{nullptr}, column_{nullptr}, query_{nullptr},
      action_{nullptr}, join_{nullptr};
  torch::Tensor position_;
  torch::nn::Sequential blocks_{nullptr};
  torch::nn::LayerNorm norm_{nullptr};
};
TORCH_MODULE(Representation);

class DynamicsImpl : public torch::nn::Module {
 public:
  DynamicsImpl(const ObservationShape& shape, const Config& config);
  // `actions`: int64 [rows]; `known`: KnownOf the next observations, zeros where the game is over.
  std::tuple<torch::Tensor, torch::Tensor> forward(const torch::Tensor& hidden,
                                                   const torch::Tensor& actions,
                                                   const torch::Tensor& known);

 private:
  ObservationShape shape_;
  torch::nn::Embedding action_{nullptr};
  torch::nn::Linear known_{nullptr};
  torch::nn::Linear reward_{nullptr};
  Block first_{nullptr}, second_{nullptr};
  torch::nn::LayerNorm norm_{nullptr};
};
TORCH_MODULE(Dynamics);

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

// The head of the consistency loss (SimSiam, as in EfficientZero). The projection of what the
// dynamics predict should point in the same direction as that of the real next observation.
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

  // Draws all weights from `seed`, in the order of registration. Biases and the last layers of the
  // heads become 0.
  void Initialise(uint64_t seed);

  Representation representation{nullptr};
  Prediction prediction{nullptr};
  Dynamics dynamics{nullptr};      // empty unless the dynamics are learned
  Projection projection{nullptr};  // empty unless the dynamics are learned
};
TORCH_MODULE(Networks);

// The number of weights that Networks has, without making them.
int64_t NumWeights(const ObservationShape& shape, const Config& config);

// The observations [rows, size] with 0 in place of what the rules of memory alone can say.
torch::Tensor KnownOf(const torch::Tensor& observations, const ObservationShape& shape);

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
