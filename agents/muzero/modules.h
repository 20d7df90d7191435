// The networks as Torch modules, and what they say as numbers. Private to the sources of this
// folder that include Torch.
//
// Of the strong agent:
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
//
// Of MuZero as published, with sizes and details of ours:
//
//   representation   observation of the time game [rows, size] -> hidden state [rows, width]:
//                    convolutions over the picture of memory, whose channels are the occupancy and
//                    the channel's idle time, and over the uses in the order of decisions
//   dynamics         hidden state, action -> next hidden state, distribution of the reward
//   prediction       hidden state -> logits of the policy, distribution of the value
//
// Values and rewards are in units, thousandths of the baseline's latency. A distribution is over
// bins that are evenly spaced after the map h(x) = sign(x) (sqrt(|x| + 1) - 1). They are fine near
// the baseline, where players differ, and coarse far from it.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <memory>
#include <tuple>

#include "agents/muzero/config.h"

namespace mallocgame::muzero {

// Where the parts of an observation lie: an offset for each, and the sizes of its axes.
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
  // What the strong agent sees beside the observation (task.h): both parts, one behind the other.
  int64_t beside = 0, num_beside = 0;
};
ObservationShape ShapeOf(const Config& config);

// All that is learned.
class Networks : public torch::nn::Module {
 public:
  // Draws all weights from `seed`, in the order of registration. Biases and the last layers of the
  // heads become 0.
  void Initialise(uint64_t seed);

  // The hidden state [rows, width] of observations [rows, size].
  virtual torch::Tensor Represent(const torch::Tensor& observations) = 0;
  // The logits of the policy and the distribution of the value. The strong agent's policy looks at
  // the observations too.
  virtual std::tuple<torch::Tensor, torch::Tensor> Predict(const torch::Tensor& hidden,
                                                           const torch::Tensor& observations) = 0;
  // The learned dynamics, of the paper's agent alone: the next hidden state, and the distribution
  // of the reward. `actions`: int64 [rows].
  virtual std::tuple<torch::Tensor, torch::Tensor> Step(const torch::Tensor& hidden,
                                                        const torch::Tensor& actions) = 0;
};
std::shared_ptr<Networks> MakeNetworks(const ObservationShape& shape, const Config& config);

// The logarithms of the policy's probabilities, in which only actions count that are legal by the
// mask of the observations [rows, size]: [rows, num_actions].
torch::Tensor LogPolicy(const torch::Tensor& logits, const torch::Tensor& observations,
                        const ObservationShape& shape);

// The mean of distributions over bins, given by logits [rows, bins], in units: float32 [rows].
torch::Tensor MeanOfBins(const torch::Tensor& logits);
// The cross entropy between such distributions and the two-hot distributions of `targets` [rows],
// which are in units: [rows]. Two-hot is the distribution of at most two bins whose mean, after h,
// is that of the target.
torch::Tensor BinLoss(const torch::Tensor& logits, const torch::Tensor& targets);

}  // namespace mallocgame::muzero
