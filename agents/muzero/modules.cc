#include "agents/muzero/modules.h"

#include <ATen/CPUGeneratorImpl.h>

#include <cmath>
#include <string>

#include "agents/muzero/task.h"
#include "agents/muzero/value_scale.h"
#include "agents/training/torch_runtime.h"
#include "mallocgame/base/error.h"

namespace mallocgame::muzero {
namespace {

namespace nn = torch::nn;

constexpr int64_t kColumnsPerToken = 4;
constexpr int64_t kPresent = 0;  // index of the feature of an item that is 0 if it is absent
constexpr double kNever = 1e4;   // subtracted from a score or logit of what is left out
// The index, among what the baseline does with an action, of whether it took that first, and the
// probability that the policy gives such an action at first, where all others are legal.
constexpr int64_t kTakenFirst = 1;
constexpr double kBaselineShare = 0.9;

// By how much the logit of such an action begins ahead.
double BaselineLead(const ObservationShape& shape) {
  return std::log(kBaselineShare / (1 - kBaselineShare) *
                  static_cast<double>(shape.num_actions - 1));
}

int64_t ColumnFeatures(const ObservationShape& shape) {
  return shape.cells + 2 + (shape.demand >= 0 ? 2 : 0);
}
int64_t JoinedFeatures(const ObservationShape& shape, const Config& config) {
  return (4 + Config::kHeads) * config.embedding() + shape.num_scalars + kLeadFeatures;
}

// Parts of `observations`, [rows, size].
torch::Tensor AskedItems(const torch::Tensor& observations, const ObservationShape& s) {
  return observations
      .narrow(1, s.items + s.first_asked * s.item_features, s.num_asked * s.item_features)
      .reshape({observations.size(0), s.num_asked, s.item_features});
}
torch::Tensor Units(const torch::Tensor& observations, const ObservationShape& s) {
  return observations.narrow(1, s.units, s.num_units * s.unit_features)
      .reshape({observations.size(0), s.num_units, s.unit_features});
}
torch::Tensor BaselineActions(const torch::Tensor& observations, const ObservationShape& s) {
  return observations.narrow(1, s.beside, s.num_actions * Baseline::kFeatures)
      .reshape({observations.size(0), s.num_actions, Baseline::kFeatures});
}
// What is seen of each action: what the observation says, and what the baseline does.
int64_t ActionFeaturesSeen(const ObservationShape& s) {
  return s.action_features + Baseline::kFeatures;
}
torch::Tensor SeenActions(const torch::Tensor& observations, const ObservationShape& s) {
  const auto actions = observations.narrow(1, s.actions, s.num_actions * s.action_features)
                           .reshape({observations.size(0), s.num_actions, s.action_features});
  return torch::cat({actions, BaselineActions(observations, s)}, 2);
}

// The modes of an action that places.
int64_t Modes(const ObservationShape& s) { return (s.num_actions - s.ordering) / s.num_asked; }

// The mean over axis 1 of those of `x` [rows, n, depth] that `which` [rows, n] says; 0 of none.
torch::Tensor Mean(const torch::Tensor& x, const torch::Tensor& which) {
  return torch::bmm(which.unsqueeze(1), x).squeeze(1) / (which.sum(1, true) + 1e-6);
}

}  // namespace

RepresentationImpl::RepresentationImpl(const ObservationShape& shape, const Config& config)
    : shape_(shape) {
  const int64_t embedding = config.embedding();
  const int64_t column_tokens = shape.columns / kColumnsPerToken;
  // Checkpoints name the modules.
  item_ = register_module("access", nn::Linear(shape.item_features, embedding));
  if (shape.num_units > 0)
    unit_ = register_module("unit", nn::Linear(shape.unit_features, embedding));
  column_ =
      register_module("column", nn::Linear(kColumnsPerToken * ColumnFeatures(shape), embedding));
  position_ = register_parameter(
      "position", torch::zeros({shape.num_units + shape.num_items + column_tokens, embedding}));
  query_ = register_module("query", nn::Linear(2 * embedding, Config::kHeads * embedding));
  action_ = register_module("action", nn::Linear(ActionFeaturesSeen(shape), embedding));
  join_ = register_module("join", nn::Linear(JoinedFeatures(shape, config), config.width));
  blocks_ = register_module("blocks", nn::Sequential());
  for (int i = 0; i < Config::kBlocks; ++i) blocks_->push_back(Block(config.width));
  norm_ = register_module("norm", nn::LayerNorm(nn::LayerNormOptions({config.width})));
}

// What is asked about makes one query for each head, over all tokens. Keys and values are the
// tokens themselves: the projections of the query and of the result do what projections of the
// tokens would, at a tenth of the cost. Absent items are left out.
torch::Tensor RepresentationImpl::Attend(const torch::Tensor& tokens, const torch::Tensor& asked,
                                         const torch::Tensor& absent) {
  const int64_t rows = tokens.size(0), depth = tokens.size(2);
  const auto query = query_->forward(asked).view({rows, Config::kHeads, depth});
  const auto scores =
      torch::bmm(query, tokens.transpose(1, 2)) / std::sqrt(static_cast<double>(depth));
  const auto weights = torch::softmax(scores - kNever * absent.unsqueeze(1), -1);
  return torch::bmm(weights, tokens).reshape({rows, Config::kHeads * depth});
}

torch::Tensor RepresentationImpl::forward(const torch::Tensor& observations) {
  const auto& s = shape_;
  const int64_t rows = observations.size(0);
  const auto part = [&](int64_t offset, int64_t length) {
    return observations.narrow(1, offset, length);
  };
  const auto items =
      part(s.items, s.num_items * s.item_features).reshape({rows, s.num_items, s.item_features});
  auto tokens = item_->forward(items);
  auto absent = 1 - items.select(2, kPresent);
  if (s.num_units > 0) {
    const auto units = Units(observations, s);
    tokens = torch::cat({unit_->forward(units), tokens}, 1);
    absent = torch::cat({1 - units.select(2, kPresent), absent}, 1);
  }
  auto columns =
      torch::cat({part(s.occupancy, s.columns * s.cells).reshape({rows, s.columns, s.cells}),
                  part(s.idle, s.columns * 2).reshape({rows, s.columns, 2})},
                 2);
  if (s.demand >= 0)
    columns = torch::cat({columns, part(s.demand, s.columns * 2).reshape({rows, s.columns, 2})}, 2);
  const int64_t count = s.columns / kColumnsPerToken;
  tokens = torch::cat({tokens, column_->forward(columns.reshape({rows, count, -1}))}, 1);
  absent = torch::cat({absent, torch::zeros({rows, count}, absent.options())}, 1);
  tokens = torch::relu(tokens + position_);
  const int64_t num_asked = s.num_units + s.num_asked;
  const auto present = 1 - absent.narrow(1, s.first_asked, num_asked);
  const auto all_asked = tokens.narrow(1, s.first_asked, num_asked);
  auto first = all_asked.select(1, 0);
  if (s.num_units > 0) {
    // Either units are asked about or candidates.
    const auto of = [&](int64_t i) {
      return all_asked.select(1, i) * present.select(1, i).unsqueeze(1);
    };
    first = of(0) + of(s.num_units);
  }
  const auto asked = torch::cat({first, Mean(all_asked, present)}, 1);
  const auto legal = part(s.mask, s.num_actions);
  // In place, as in the policy: these are the largest tensors. An illegal action is all 0.
  auto actions = action_->forward(SeenActions(observations, s));
  actions.sub_(kNever * (1 - legal).unsqueeze(2)).relu_();
  const auto joined =
      torch::cat({asked, Attend(tokens, asked, absent), Mean(actions, legal), actions.amax(1),
                  part(s.scalars, s.num_scalars), part(s.size - kLeadFeatures, kLeadFeatures)},
                 1);
  return norm_->forward(blocks_->forward(torch::relu(join_->forward(joined))));
}

PredictionImpl::PredictionImpl(const ObservationShape& shape, const Config& config)
    : shape_(shape) {
  const int64_t depth = config.embedding();
  state_ = register_module("state", nn::Linear(config.width, depth));
  item_ = register_module("item", nn::Linear(shape.item_features, depth));
  action_ = register_module("action", nn::Linear(ActionFeaturesSeen(shape), depth));
  mode_ = register_parameter("mode", torch::zeros({Modes(shape), depth}));
  if (shape.num_units > 0) {
    unit_ = register_module("unit", nn::Linear(shape.unit_features, depth));
    ordering_ = register_parameter("ordering", torch::zeros({2, depth}));  // of a unit, of none
  }
  second_ = register_module("second", nn::Linear(depth, depth));
  policy_ = register_module("policy_end", nn::Linear(depth, 1));
  trunk_ = register_module("trunk", nn::Linear(config.width, config.width));
  value_ = register_module("value_end", nn::Linear(config.width, kBins));
}

torch::Tensor PredictionImpl::Policy(const torch::Tensor& hidden, const torch::Tensor& seen) {
  const auto& s = shape_;
  const int64_t rows = hidden.size(0), modes = mode_.size(0), depth = mode_.size(1);
  const auto actions = SeenActions(seen, s);
  const auto state = state_->forward(hidden).unsqueeze(1);
  auto first = action_->forward(actions);
  first.narrow(1, s.ordering, s.num_asked * modes)
      .view({rows, s.num_asked, modes, depth})
      .add_((item_->forward(AskedItems(seen, s)) + state).unsqueeze(2))
      .add_(mode_);
  if (s.num_units > 0) {
    first.narrow(1, 0, s.num_units)
        .add_(unit_->forward(Units(seen, s)) + state)
        .add_(ordering_.select(0, 0));
    first.narrow(1, s.num_units, 1).add_(state).add_(ordering_.select(0, 1));
  }
  first.relu_();
  return policy_->forward(second_->forward(first).relu_()).view({rows, s.num_actions}) +
         BaselineLead(s) * actions.select(2, s.action_features + kTakenFirst);
}

std::tuple<torch::Tensor, torch::Tensor> PredictionImpl::forward(const torch::Tensor& hidden,
                                                                 const torch::Tensor& seen) {
  return {Policy(hidden, seen), value_->forward(torch::relu(trunk_->forward(hidden)))};
}

NetworksImpl::NetworksImpl(const ObservationShape& shape, const Config& config) {
  if (config.paper()) {
    paper_representation_ = register_module("representation", PaperRepresentation(shape, config));
    paper_dynamics_ = register_module("dynamics", PaperDynamics(shape, config));
    paper_prediction_ = register_module("prediction", PaperPrediction(shape, config));
  } else {
    representation_ = register_module("representation", Representation(shape, config));
    prediction_ = register_module("prediction", Prediction(shape, config));
  }
}

torch::Tensor NetworksImpl::Represent(const torch::Tensor& observations) {
  return paper_dynamics_ ? paper_representation_->forward(observations)
                         : representation_->forward(observations);
}

std::tuple<torch::Tensor, torch::Tensor> NetworksImpl::Predict(const torch::Tensor& hidden,
                                                               const torch::Tensor& observations) {
  return paper_dynamics_ ? paper_prediction_->forward(hidden)
                         : prediction_->forward(hidden, observations);
}

std::tuple<torch::Tensor, torch::Tensor> NetworksImpl::Step(const torch::Tensor& hidden,
                                                            const torch::Tensor& actions) {
  return paper_dynamics_->forward(hidden, actions);
}

int64_t NumWeights(const ObservationShape& shape, const Config& config) {
  if (config.paper()) return NumPaperWeights(shape, config);
  const int64_t width = config.width, depth = config.embedding();
  const int64_t tokens = shape.columns / kColumnsPerToken;
  const auto linear = [](int64_t in, int64_t out) { return (in + 1) * out; };
  const int64_t norm = 2 * width, square = linear(width, width), block = norm + 2 * square;
  int64_t count =
      linear(shape.item_features, depth) + (shape.num_units + shape.num_items + tokens) * depth +
      linear(2 * depth, Config::kHeads * depth) + linear(ActionFeaturesSeen(shape), depth) +
      linear(JoinedFeatures(shape, config), width) + Config::kBlocks * block + norm;
  count += linear(kColumnsPerToken * ColumnFeatures(shape), depth);
  count += linear(width, depth) + linear(shape.item_features, depth) +
           linear(ActionFeaturesSeen(shape), depth) + Modes(shape) * depth + linear(depth, depth) +
           linear(depth, 1) + square + linear(width, kBins);  // prediction
  // In the representation and in the prediction.
  if (shape.num_units > 0) count += 2 * linear(shape.unit_features, depth) + 2 * depth;
  return count;
}

void NetworksImpl::Initialise(uint64_t seed) {
  const torch::NoGradGuard no_gradient;
  auto generator = at::detail::createCPUGenerator(seed);
  for (auto& item : named_parameters()) {
    torch::Tensor& parameter = item.value();
    const bool end = item.key().find("_end.") != std::string::npos;
    const bool norm = item.key().find("norm.") != std::string::npos;
    if (norm) continue;  // 1 and 0 already
    if (parameter.dim() < 2 || end) {
      parameter.zero_();
    } else {
      // What a weight adds up: a convolution has a window of each channel.
      const int64_t inputs = parameter.numel() / parameter.size(0);
      parameter.normal_(0, 1 / std::sqrt(static_cast<double>(inputs)), generator);
    }
  }
}

torch::Tensor LogPolicy(const torch::Tensor& logits, const torch::Tensor& observations,
                        const ObservationShape& shape) {
  const auto legal = observations.narrow(1, shape.mask, shape.num_actions);
  return torch::log_softmax(logits.to(torch::kFloat32) - kNever * (1 - legal), -1);
}

torch::Tensor MeanOfBins(const torch::Tensor& logits) {
  const auto centres =
      torch::linspace(-kGreatest, kGreatest, kBins, logits.options().dtype(torch::kFloat32));
  const auto y = torch::mv(torch::softmax(logits.to(torch::kFloat32), -1), centres);
  return torch::copysign((y.abs() + 1).square() - 1, y);
}

torch::Device DeviceOf(const Config& config) {
  const bool cuda = config.device == "cuda" || (config.device == "auto" && training::HasCuda());
  return cuda ? torch::Device(torch::kCUDA) : torch::Device(torch::kCPU);
}

}  // namespace mallocgame::muzero
