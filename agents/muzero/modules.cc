#include "agents/muzero/modules.h"

#include <ATen/CPUGeneratorImpl.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "agents/muzero/task.h"

namespace mallocgame::muzero {
namespace {

namespace nn = torch::nn;

constexpr int kBins = 129;
constexpr int kMiddle = kBins / 2;  // the bin of 0
constexpr double kBinStep = 0.5;
// The greatest bin is 32 after h, which is 1,088 units.
constexpr double kGreatest = kBinStep * kMiddle;

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

// A part of `observations` [rows, size] that begins at `offset`: [rows, n, features].
torch::Tensor Part(const torch::Tensor& observations, int64_t offset, int64_t n, int64_t features) {
  return observations.narrow(1, offset, n * features).view({observations.size(0), n, features});
}
torch::Tensor AskedItems(const torch::Tensor& observations, const ObservationShape& s) {
  return Part(observations, s.items + s.first_asked * s.item_features, s.num_asked,
              s.item_features);
}
torch::Tensor Units(const torch::Tensor& observations, const ObservationShape& s) {
  return Part(observations, s.units, s.num_units, s.unit_features);
}
// What is seen of each action: what the observation says, and what the baseline does.
int64_t ActionFeaturesSeen(const ObservationShape& s) {
  return s.action_features + Baseline::kFeatures;
}
torch::Tensor SeenActions(const torch::Tensor& observations, const ObservationShape& s) {
  return torch::cat({Part(observations, s.actions, s.num_actions, s.action_features),
                     Part(observations, s.beside, s.num_actions, Baseline::kFeatures)},
                    2);
}

// The modes of an action that places.
int64_t Modes(const ObservationShape& s) { return (s.num_actions - s.ordering) / s.num_asked; }

// The mean over axis 1 of those of `x` [rows, n, depth] that `which` [rows, n] says; 0 of none.
torch::Tensor Mean(const torch::Tensor& x, const torch::Tensor& which) {
  return torch::bmm(which.unsqueeze(1), x).squeeze(1) / (which.sum(1, true) + 1e-6);
}

nn::LayerNorm Norm(int64_t width) { return nn::LayerNorm(nn::LayerNormOptions({width})); }

// A residual block.
class Block final : public nn::Module {
 public:
  explicit Block(int64_t width)
      : norm_(register_module("norm", Norm(width))),
        first_(register_module("first", nn::Linear(width, width))),
        second_(register_module("second", nn::Linear(width, width))) {}
  torch::Tensor forward(const torch::Tensor& x) {
    return x + second_->forward(torch::relu(first_->forward(norm_->forward(x))));
  }

 private:
  nn::LayerNorm norm_;
  nn::Linear first_, second_;
};

nn::Sequential Blocks(int64_t width) {
  nn::Sequential blocks;
  for (int i = 0; i < Config::kBlocks; ++i) blocks->push_back(std::make_shared<Block>(width));
  return blocks;
}

// A representation, whose end makes the hidden state of all that it has seen.
class Representing : public nn::Module {
 protected:
  // Checkpoints name the modules, and have them in the order in which they are registered.
  void RegisterEnd(int64_t features, int64_t width) {
    join_ = register_module("join", nn::Linear(features, width));
    blocks_ = register_module("blocks", Blocks(width));
    norm_ = register_module("norm", Norm(width));
  }
  torch::Tensor HiddenOf(const std::vector<torch::Tensor>& seen) {
    const auto joined = torch::relu(join_->forward(torch::cat(seen, 1)));
    return norm_->forward(blocks_->forward(joined));
  }

 private:
  nn::Linear join_{nullptr};
  nn::Sequential blocks_{nullptr};
  nn::LayerNorm norm_{nullptr};
};

class Representation final : public Representing {
 public:
  Representation(const ObservationShape& shape, const Config& config) : shape_(shape) {
    const int64_t embedding = config.embedding();
    const int64_t column_tokens = shape.columns / kColumnsPerToken;
    item_ = register_module("access", nn::Linear(shape.item_features, embedding));
    if (shape.num_units > 0)
      unit_ = register_module("unit", nn::Linear(shape.unit_features, embedding));
    column_ =
        register_module("column", nn::Linear(kColumnsPerToken * ColumnFeatures(shape), embedding));
    position_ = register_parameter(
        "position", torch::zeros({shape.num_units + shape.num_items + column_tokens, embedding}));
    query_ = register_module("query", nn::Linear(2 * embedding, Config::kHeads * embedding));
    action_ = register_module("action", nn::Linear(ActionFeaturesSeen(shape), embedding));
    RegisterEnd(JoinedFeatures(shape, config), config.width);
  }

  torch::Tensor forward(const torch::Tensor& observations) {
    const auto& s = shape_;
    const int64_t rows = observations.size(0);
    const auto items = Part(observations, s.items, s.num_items, s.item_features);
    auto tokens = item_->forward(items);
    auto absent = 1 - items.select(2, kPresent);
    if (s.num_units > 0) {
      const auto units = Units(observations, s);
      tokens = torch::cat({unit_->forward(units), tokens}, 1);
      absent = torch::cat({1 - units.select(2, kPresent), absent}, 1);
    }
    auto columns = torch::cat({Part(observations, s.occupancy, s.columns, s.cells),
                               Part(observations, s.idle, s.columns, 2)},
                              2);
    if (s.demand >= 0)
      columns = torch::cat({columns, Part(observations, s.demand, s.columns, 2)}, 2);
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
    const auto legal = observations.narrow(1, s.mask, s.num_actions);
    // In place, as in the policy: these are the largest tensors. An illegal action is all 0.
    auto actions = action_->forward(SeenActions(observations, s));
    actions.sub_(kNever * (1 - legal).unsqueeze(2)).relu_();
    return HiddenOf({asked, Attend(tokens, asked, absent), Mean(actions, legal), actions.amax(1),
                     observations.narrow(1, s.scalars, s.num_scalars),
                     observations.narrow(1, s.size - kLeadFeatures, kLeadFeatures)});
  }

 private:
  // What is asked about makes one query for each head, over all tokens. Keys and values are the
  // tokens themselves: the projections of the query and of the result do what projections of the
  // tokens would, at a tenth of the cost. Absent items are left out.
  torch::Tensor Attend(const torch::Tensor& tokens, const torch::Tensor& asked,
                       const torch::Tensor& absent) {
    const int64_t rows = tokens.size(0), depth = tokens.size(2);
    const auto query = query_->forward(asked).view({rows, Config::kHeads, depth});
    const auto scores =
        torch::bmm(query, tokens.transpose(1, 2)) / std::sqrt(static_cast<double>(depth));
    const auto weights = torch::softmax(scores - kNever * absent.unsqueeze(1), -1);
    return torch::bmm(weights, tokens).reshape({rows, Config::kHeads * depth});
  }

  ObservationShape shape_;
  nn::Linear item_{nullptr}, unit_{nullptr}, column_{nullptr}, query_{nullptr}, action_{nullptr};
  torch::Tensor position_;
};

class Prediction final : public nn::Module {
 public:
  Prediction(const ObservationShape& shape, const Config& config) : shape_(shape) {
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

  std::tuple<torch::Tensor, torch::Tensor> forward(const torch::Tensor& hidden,
                                                   const torch::Tensor& seen) {
    return {Policy(hidden, seen), value_->forward(torch::relu(trunk_->forward(hidden)))};
  }

 private:
  torch::Tensor Policy(const torch::Tensor& hidden, const torch::Tensor& seen) {
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

  ObservationShape shape_;
  nn::Linear state_{nullptr}, item_{nullptr}, unit_{nullptr}, action_{nullptr}, second_{nullptr},
      policy_{nullptr}, trunk_{nullptr}, value_{nullptr};
  torch::Tensor mode_, ordering_;
};

class StrongNetworks final : public Networks {
 public:
  StrongNetworks(const ObservationShape& shape, const Config& config)
      : representation_(
            register_module("representation", std::make_shared<Representation>(shape, config))),
        prediction_(register_module("prediction", std::make_shared<Prediction>(shape, config))) {}

  torch::Tensor Represent(const torch::Tensor& observations) override {
    return representation_->forward(observations);
  }
  std::tuple<torch::Tensor, torch::Tensor> Predict(const torch::Tensor& hidden,
                                                   const torch::Tensor& observations) override {
    return prediction_->forward(hidden, observations);
  }
  std::tuple<torch::Tensor, torch::Tensor> Step(const torch::Tensor&,
                                                const torch::Tensor&) override {
    TORCH_CHECK(false, "the strong agent has no dynamics");
  }

 private:
  std::shared_ptr<Representation> representation_;
  std::shared_ptr<Prediction> prediction_;
};

// MuZero as published.

constexpr int64_t kPictureChannels = 3;  // occupancy, idle time and what is left of it
constexpr int64_t kFineDepth = 16, kCoarseDepth = 32;  // of the picture's convolutions
constexpr int64_t kWindow = 3;                         // of all convolutions, on each axis

int64_t Half(int64_t n) { return (n + 1) / 2; }
int64_t PictureFeatures(const ObservationShape& s) {
  return kCoarseDepth * Half(Half(s.columns)) * Half(Half(s.cells));
}
// The current use, the mean and the greatest of all; the picture; actions, mask and scalars.
int64_t PaperFeatures(const ObservationShape& s, const Config& config) {
  return 3 * config.embedding() + PictureFeatures(s) + s.num_actions * (s.action_features + 1) +
         s.num_scalars;
}

nn::Conv2d HalvingConvolution(int64_t from, int64_t to) {
  return nn::Conv2d(nn::Conv2dOptions(from, to, kWindow).stride(2).padding(1));
}

class PaperRepresentation final : public Representing {
 public:
  PaperRepresentation(const ObservationShape& shape, const Config& config) : shape_(shape) {
    const int64_t depth = config.embedding();
    const auto over_uses = [](int64_t from, int64_t to) {
      return nn::Conv1d(nn::Conv1dOptions(from, to, kWindow).padding(1));
    };
    near_ = register_module("near", over_uses(shape.item_features, depth));
    far_ = register_module("far", over_uses(depth, depth));
    fine_ = register_module("fine", HalvingConvolution(kPictureChannels, kFineDepth));
    coarse_ = register_module("coarse", HalvingConvolution(kFineDepth, kCoarseDepth));
    RegisterEnd(PaperFeatures(shape, config), config.width);
  }

  torch::Tensor forward(const torch::Tensor& observations) {
    const auto& s = shape_;
    const int64_t rows = observations.size(0);
    auto uses = Part(observations, s.items, s.num_items, s.item_features).transpose(1, 2);
    uses = torch::relu(far_->forward(torch::relu(near_->forward(uses))));
    std::vector<torch::Tensor> seen = {
        uses.select(2, s.first_asked),
        uses.mean(2),
        uses.amax(2),
        observations.narrow(1, s.actions, s.num_actions * s.action_features),
        observations.narrow(1, s.mask, s.num_actions),
        observations.narrow(1, s.scalars, s.num_scalars)};
    const auto occupancy = Part(observations, s.occupancy, s.columns, s.cells).unsqueeze(1);
    const auto idle = Part(observations, s.idle, s.columns, 2)
                          .transpose(1, 2)
                          .unsqueeze(3)
                          .expand({rows, 2, s.columns, s.cells});
    const auto picture = torch::cat({occupancy, idle}, 1);
    seen.push_back(torch::relu(coarse_->forward(torch::relu(fine_->forward(picture)))).flatten(1));
    return HiddenOf(seen);
  }

 private:
  ObservationShape shape_;
  nn::Conv1d near_{nullptr}, far_{nullptr};     // over uses
  nn::Conv2d fine_{nullptr}, coarse_{nullptr};  // over the picture
};

class PaperDynamics final : public nn::Module {
 public:
  PaperDynamics(const ObservationShape& shape, const Config& config)
      : action_(register_module("action", nn::Embedding(shape.num_actions, config.width))),
        first_(register_module("first", std::make_shared<Block>(config.width))),
        second_(register_module("second", std::make_shared<Block>(config.width))),
        norm_(register_module("norm", Norm(config.width))),
        reward_(register_module("reward_end", nn::Linear(config.width, kBins))) {}

  std::tuple<torch::Tensor, torch::Tensor> forward(const torch::Tensor& hidden,
                                                   const torch::Tensor& actions) {
    const auto next =
        norm_->forward(second_->forward(first_->forward(hidden + action_->forward(actions))));
    return {next, reward_->forward(next)};
  }

 private:
  nn::Embedding action_;
  std::shared_ptr<Block> first_, second_;
  nn::LayerNorm norm_;
  nn::Linear reward_;
};

class PaperPrediction final : public nn::Module {
 public:
  PaperPrediction(const ObservationShape& shape, const Config& config)
      : choose_(register_module("choose", nn::Linear(config.width, config.width))),
        policy_(register_module("policy_end", nn::Linear(config.width, shape.num_actions))),
        trunk_(register_module("trunk", nn::Linear(config.width, config.width))),
        value_(register_module("value_end", nn::Linear(config.width, kBins))) {}

  std::tuple<torch::Tensor, torch::Tensor> forward(const torch::Tensor& hidden) {
    return {policy_->forward(torch::relu(choose_->forward(hidden))),
            value_->forward(torch::relu(trunk_->forward(hidden)))};
  }

 private:
  nn::Linear choose_, policy_, trunk_, value_;
};

class PaperNetworks final : public Networks {
 public:
  PaperNetworks(const ObservationShape& shape, const Config& config)
      : representation_(register_module("representation",
                                        std::make_shared<PaperRepresentation>(shape, config))),
        dynamics_(register_module("dynamics", std::make_shared<PaperDynamics>(shape, config))),
        prediction_(
            register_module("prediction", std::make_shared<PaperPrediction>(shape, config))) {}

  torch::Tensor Represent(const torch::Tensor& observations) override {
    return representation_->forward(observations);
  }
  std::tuple<torch::Tensor, torch::Tensor> Predict(const torch::Tensor& hidden,
                                                   const torch::Tensor&) override {
    return prediction_->forward(hidden);
  }
  std::tuple<torch::Tensor, torch::Tensor> Step(const torch::Tensor& hidden,
                                                const torch::Tensor& actions) override {
    return dynamics_->forward(hidden, actions);
  }

 private:
  std::shared_ptr<PaperRepresentation> representation_;
  std::shared_ptr<PaperDynamics> dynamics_;
  std::shared_ptr<PaperPrediction> prediction_;
};

}  // namespace

ObservationShape ShapeOf(const Config& config) {
  const std::unique_ptr<GameOptions> game = config.game_options();
  ObservationShape shape;
  for (const ObservationPart& part : game->Layout(config.observation_options())) {
    int64_t length = 1;
    for (int n : part.shape) length *= n;
    shape.size = part.offset + length;
    if (part.name == "accesses" || part.name == "candidates") {
      const bool candidates = part.name == "candidates";
      shape.items = part.offset;
      shape.num_items = part.shape[0];
      shape.item_features = part.shape[1];
      shape.first_asked = candidates ? 0 : shape.num_items / 2;
      shape.num_asked = candidates ? shape.num_items - config.observation_options().neighbours : 1;
    } else if (part.name == "units") {
      shape.units = part.offset;
      shape.num_units = part.shape[0];
      shape.unit_features = part.shape[1];
      shape.ordering = shape.num_units + 1;
    } else if (part.name == "actions") {
      shape.actions = part.offset;
      shape.num_actions = part.shape[0];
      shape.action_features = part.shape[1];
    } else if (part.name == "occupancy") {
      shape.occupancy = part.offset;
      shape.cells = part.shape[1];
    } else if (part.name == "idle") {
      shape.idle = part.offset;
      shape.columns = part.shape[0];
    } else if (part.name == "demand") {
      shape.demand = part.offset;
    } else if (part.name == "scalars") {
      shape.scalars = part.offset;
      shape.num_scalars = part.shape[0];
    } else if (part.name == "action_mask") {
      shape.mask = part.offset;
    }
  }
  shape.beside = shape.size;
  if (config.paper()) return shape;
  shape.num_beside = shape.num_actions * Baseline::kFeatures + kLeadFeatures;
  shape.size += shape.num_beside;
  return shape;
}

std::shared_ptr<Networks> MakeNetworks(const ObservationShape& shape, const Config& config) {
  if (config.paper()) return std::make_shared<PaperNetworks>(shape, config);
  return std::make_shared<StrongNetworks>(shape, config);
}

void Networks::Initialise(uint64_t seed) {
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

torch::Tensor BinLoss(const torch::Tensor& logits, const torch::Tensor& targets) {
  const auto squeezed =
      torch::copysign((targets.abs() + 1).sqrt() - 1, targets).clamp(-kGreatest, kGreatest);
  const auto at = squeezed / kBinStep + kMiddle;
  const auto low = at.floor().clamp(0, kBins - 2);
  const auto share = (at - low).unsqueeze(-1);
  const auto index = low.to(torch::kInt64).unsqueeze(-1);
  const auto log_p = torch::log_softmax(logits.to(torch::kFloat32), -1);
  return -(log_p.gather(-1, index) * (1 - share) + log_p.gather(-1, index + 1) * share).squeeze(-1);
}

}  // namespace mallocgame::muzero
