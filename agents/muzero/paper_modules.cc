#include "agents/muzero/paper_modules.h"

#include <vector>

#include "agents/muzero/value_scale.h"

namespace mallocgame::muzero {
namespace {

namespace nn = torch::nn;

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

}  // namespace

BlockImpl::BlockImpl(int64_t width) {
  norm_ = register_module("norm", nn::LayerNorm(nn::LayerNormOptions({width})));
  first_ = register_module("first", nn::Linear(width, width));
  second_ = register_module("second", nn::Linear(width, width));
}

torch::Tensor BlockImpl::forward(const torch::Tensor& x) {
  return x + second_->forward(torch::relu(first_->forward(norm_->forward(x))));
}

PaperRepresentationImpl::PaperRepresentationImpl(const ObservationShape& shape,
                                                 const Config& config)
    : shape_(shape) {
  const int64_t depth = config.embedding();
  const auto over_uses = [](int64_t from, int64_t to) {
    return nn::Conv1d(nn::Conv1dOptions(from, to, kWindow).padding(1));
  };
  near_ = register_module("near", over_uses(shape.item_features, depth));
  far_ = register_module("far", over_uses(depth, depth));
  fine_ = register_module("fine", HalvingConvolution(kPictureChannels, kFineDepth));
  coarse_ = register_module("coarse", HalvingConvolution(kFineDepth, kCoarseDepth));
  join_ = register_module("join", nn::Linear(PaperFeatures(shape, config), config.width));
  blocks_ = register_module("blocks", nn::Sequential());
  for (int i = 0; i < Config::kBlocks; ++i) blocks_->push_back(Block(config.width));
  norm_ = register_module("norm", nn::LayerNorm(nn::LayerNormOptions({config.width})));
}

torch::Tensor PaperRepresentationImpl::forward(const torch::Tensor& observations) {
  const auto& s = shape_;
  const int64_t rows = observations.size(0);
  const auto part = [&](int64_t offset, int64_t length) {
    return observations.narrow(1, offset, length);
  };
  auto uses = part(s.items, s.num_items * s.item_features)
                  .reshape({rows, s.num_items, s.item_features})
                  .transpose(1, 2);
  uses = torch::relu(far_->forward(torch::relu(near_->forward(uses))));
  std::vector<torch::Tensor> joined = {uses.select(2, s.first_asked),
                                       uses.mean(2),
                                       uses.amax(2),
                                       part(s.actions, s.num_actions * s.action_features),
                                       part(s.mask, s.num_actions),
                                       part(s.scalars, s.num_scalars)};
  const auto occupancy =
      part(s.occupancy, s.columns * s.cells).reshape({rows, 1, s.columns, s.cells});
  const auto idle = part(s.idle, s.columns * 2)
                        .reshape({rows, s.columns, 2})
                        .transpose(1, 2)
                        .unsqueeze(3)
                        .expand({rows, 2, s.columns, s.cells});
  const auto picture = torch::cat({occupancy, idle}, 1);
  joined.push_back(torch::relu(coarse_->forward(torch::relu(fine_->forward(picture)))).flatten(1));
  return norm_->forward(blocks_->forward(torch::relu(join_->forward(torch::cat(joined, 1)))));
}

PaperDynamicsImpl::PaperDynamicsImpl(const ObservationShape& shape, const Config& config) {
  action_ = register_module("action", nn::Embedding(shape.num_actions, config.width));
  first_ = register_module("first", Block(config.width));
  second_ = register_module("second", Block(config.width));
  norm_ = register_module("norm", nn::LayerNorm(nn::LayerNormOptions({config.width})));
  reward_ = register_module("reward_end", nn::Linear(config.width, kBins));
}

std::tuple<torch::Tensor, torch::Tensor> PaperDynamicsImpl::forward(const torch::Tensor& hidden,
                                                                    const torch::Tensor& actions) {
  const auto next =
      norm_->forward(second_->forward(first_->forward(hidden + action_->forward(actions))));
  return {next, reward_->forward(next)};
}

PaperPredictionImpl::PaperPredictionImpl(const ObservationShape& shape, const Config& config) {
  choose_ = register_module("choose", nn::Linear(config.width, config.width));
  policy_ = register_module("policy_end", nn::Linear(config.width, shape.num_actions));
  trunk_ = register_module("trunk", nn::Linear(config.width, config.width));
  value_ = register_module("value_end", nn::Linear(config.width, kBins));
}

std::tuple<torch::Tensor, torch::Tensor> PaperPredictionImpl::forward(const torch::Tensor& hidden) {
  return {policy_->forward(torch::relu(choose_->forward(hidden))),
          value_->forward(torch::relu(trunk_->forward(hidden)))};
}

int64_t NumPaperWeights(const ObservationShape& shape, const Config& config) {
  const int64_t width = config.width, depth = config.embedding(), actions = shape.num_actions;
  const auto linear = [](int64_t in, int64_t out) { return (in + 1) * out; };
  const auto picture = [](int64_t in, int64_t out) { return (in * kWindow * kWindow + 1) * out; };
  const int64_t norm = 2 * width, square = linear(width, width), block = norm + 2 * square;
  const int64_t head = linear(width, kBins);
  const int64_t representation =
      linear(kWindow * shape.item_features, depth) + linear(kWindow * depth, depth) +
      linear(PaperFeatures(shape, config), width) + Config::kBlocks * block + norm;
  const int64_t pictures =
      picture(kPictureChannels, kFineDepth) + picture(kFineDepth, kCoarseDepth);
  const int64_t dynamics = actions * width + 2 * block + norm + head;
  const int64_t prediction = 2 * square + linear(width, actions) + head;
  return representation + pictures + dynamics + prediction;
}

}  // namespace mallocgame::muzero
