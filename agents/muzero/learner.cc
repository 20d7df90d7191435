#include "agents/muzero/learner.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agents/muzero/modules.h"
#include "agents/training/bytes.h"
#include "agents/training/torch_runtime.h"
#include "agents/training/torch_state.h"
#include "agents/training/torch_status.h"
#include "mallocgame/base/error.h"

namespace mallocgame::muzero {
namespace {

constexpr double kValueWeight = 0.5;   // of the value loss; the other losses count in full
constexpr double kGradientNorm = 5;    // to which a longer gradient is clipped
constexpr double kWeightDecay = 1e-4;  // of AdamW

using training::CatchTorch;

torch::Device DeviceOf(const Config& config) {
  const bool cuda = config.device == "cuda" || (config.device == "auto" && training::HasCuda());
  return cuda ? torch::Device(torch::kCUDA) : torch::Device(torch::kCPU);
}

std::vector<float> OfRows(const torch::Tensor& numbers) {
  const torch::Tensor on_cpu = numbers.to(torch::kCPU).contiguous();
  return {on_cpu.data_ptr<float>(), on_cpu.data_ptr<float>() + on_cpu.size(0)};
}

// Networks to ask.
class TorchNetwork final : public Network {
 public:
  TorchNetwork(std::shared_ptr<Networks> networks, const ObservationShape& shape,
               const Config& config)
      : networks_(std::move(networks)), shape_(shape), width_(config.width),
        learned_(config.paper()), device_(DeviceOf(config)) {}

  int num_actions() const override { return static_cast<int>(shape_.num_actions); }
  int observation_size() const override { return static_cast<int>(shape_.size); }

  absl::Status Predict(absl::Span<const float> observations, absl::Span<float> logits,
                       absl::Span<float> values) override {
    return CatchTorch("muzero: evaluating positions", [&] {
      const c10::InferenceMode inference;
      const torch::Tensor seen = OnDevice(observations, values.size());
      return Write(networks_->Represent(seen), seen, logits, values);
    });
  }

  absl::Status Reserve(int slots) override {
    return CatchTorch("muzero: reserving hidden states", [&] {
      MG_RETURN_IF_ERROR(CheckLearned());
      const c10::InferenceMode inference;
      if (hidden_.defined() && hidden_.size(0) >= slots) return absl::OkStatus();
      const torch::Tensor before = hidden_;
      hidden_ = torch::zeros({slots, width_}, Options());
      if (before.defined()) hidden_.narrow(0, 0, before.size(0)).copy_(before);
      return absl::OkStatus();
    });
  }

  absl::Status Start(absl::Span<const float> observations, absl::Span<const int32_t> slots,
                     absl::Span<float> logits, absl::Span<float> values) override {
    return CatchTorch("muzero: evaluating roots", [&] {
      MG_RETURN_IF_ERROR(CheckLearned());
      const c10::InferenceMode inference;
      const torch::Tensor seen = OnDevice(observations, values.size());
      const torch::Tensor hidden = networks_->Represent(seen);
      hidden_.index_copy_(0, Indices(slots), hidden);
      return Write(hidden, seen, logits, values);
    });
  }

  absl::Status Step(absl::Span<const int32_t> parents, absl::Span<const int32_t> actions,
                    absl::Span<const int32_t> slots, absl::Span<float> logits,
                    absl::Span<float> values, absl::Span<float> rewards) override {
    return CatchTorch("muzero: evaluating steps", [&] {
      MG_RETURN_IF_ERROR(CheckLearned());
      const c10::InferenceMode inference;
      const auto [hidden, reward] =
          networks_->Step(hidden_.index_select(0, Indices(parents)), Indices(actions));
      hidden_.index_copy_(0, Indices(slots), hidden);
      Copy(MeanOfBins(reward), rewards);
      return Write(hidden, {}, logits, values);
    });
  }

 private:
  torch::TensorOptions Options() const {
    return torch::TensorOptions().dtype(torch::kFloat32).device(device_);
  }

  absl::Status CheckLearned() const {
    if (learned_) return absl::OkStatus();
    return absl::FailedPreconditionError(
        "muzero: this agent searches the true game (preset=strong), it has no dynamics");
  }

  torch::Tensor OnDevice(absl::Span<const float> observations, size_t rows) const {
    return torch::from_blob(const_cast<float*>(observations.data()),
                            {static_cast<int64_t>(rows), shape_.size})
        .to(Options());
  }

  torch::Tensor Indices(absl::Span<const int32_t> indices) const {
    return torch::from_blob(const_cast<int32_t*>(indices.data()),
                            {static_cast<int64_t>(indices.size())}, torch::kInt32)
        .to(torch::TensorOptions().dtype(torch::kInt64).device(device_));
  }

  static void Copy(const torch::Tensor& from, absl::Span<float> to) {
    torch::from_blob(to.data(), from.sizes(), torch::kFloat32).copy_(from);
  }

  absl::Status Write(const torch::Tensor& hidden, const torch::Tensor& seen,
                     absl::Span<float> logits, absl::Span<float> values) {
    const auto [policy, value] = networks_->Predict(hidden, seen);
    Copy(policy, logits);
    Copy(MeanOfBins(value), values);
    return absl::OkStatus();
  }

  std::shared_ptr<Networks> networks_;
  ObservationShape shape_;
  int64_t width_;
  bool learned_;
  torch::Device device_;
  torch::Tensor hidden_;  // [slots, width]
};

// A copy of `networks` as they are now.
std::unique_ptr<Network> CopyForInference(const Networks& networks, const ObservationShape& shape,
                                          const Config& config) {
  const torch::NoGradGuard no_gradient;
  auto copy = MakeNetworks(shape, config);
  const auto from = networks.named_parameters();
  for (auto& item : copy->named_parameters()) item.value().copy_(from[item.key()]);
  copy->eval();
  copy->to(DeviceOf(config));
  return std::make_unique<TorchNetwork>(std::move(copy), shape, config);
}

class TorchLearner final : public Learner {
 public:
  TorchLearner(const Config& config, uint64_t seed)
      : config_(config), shape_(ShapeOf(config)), device_(DeviceOf(config)),
        networks_(MakeNetworks(shape_, config)) {
    networks_->Initialise(seed);
    networks_->to(device_);
    optimizer_ = MakeOptimizer(*networks_);
  }

  absl::StatusOr<Losses> Update(const Batch& batch) override {
    return CatchTorch("muzero: an update", [&] { return Descend(batch); });
  }
  int64_t updates() const override { return updates_; }

  absl::StatusOr<std::unique_ptr<Network>> Snapshot() const override {
    return CatchTorch("muzero: copying the networks",
                      [&]() -> absl::StatusOr<std::unique_ptr<Network>> {
                        return CopyForInference(*networks_, shape_, config_);
                      });
  }

  absl::StatusOr<std::string> Weights() const override {
    return CatchTorch("muzero: copying the networks", [&]() -> absl::StatusOr<std::string> {
      std::string out;
      training::WriteWeights(*networks_, out);
      return out;
    });
  }

  absl::StatusOr<std::string> Save() const override {
    return CatchTorch("muzero: saving the networks", [&]() -> absl::StatusOr<std::string> {
      std::string out;
      training::WriteBytes(updates_, out);
      training::WriteModule(*networks_, *optimizer_, out);
      return out;
    });
  }

  absl::Status Load(absl::string_view in) override {
    return CatchTorch("muzero: reading the networks", [&] {
      int64_t updates = 0;
      MG_RETURN_IF_ERROR(training::ReadBytes(in, updates));
      auto networks = MakeNetworks(shape_, config_);
      networks->to(device_);
      auto optimizer = MakeOptimizer(*networks);
      MG_RETURN_IF_ERROR(training::ReadModule("muzero", in, *networks, *optimizer));
      if (!in.empty())
        return absl::InvalidArgumentError(
            "muzero: the saved networks are of other settings: there is more than expected");
      networks_ = std::move(networks);
      optimizer_ = std::move(optimizer);
      updates_ = updates;
      return absl::OkStatus();
    });
  }

  absl::Status LoadNetworks(absl::string_view in) override {
    MG_RETURN_IF_ERROR(Load(in));
    optimizer_ = MakeOptimizer(*networks_);
    updates_ = 0;
    return absl::OkStatus();
  }

  int64_t parameters() const override {
    int64_t count = 0;
    for (const auto& parameter : networks_->parameters()) count += parameter.numel();
    return count;
  }

 private:
  std::unique_ptr<torch::optim::AdamW> MakeOptimizer(const Networks& networks) const {
    return std::make_unique<torch::optim::AdamW>(
        networks.parameters(),
        torch::optim::AdamWOptions(config_.learning_rate).weight_decay(kWeightDecay));
  }

  double LearningRate() const {
    if (updates_ < Config::kWarmupUpdates) {
      return config_.learning_rate * static_cast<double>(updates_ + 1) / Config::kWarmupUpdates;
    }
    const double progress = std::min(
        1.0, static_cast<double>(updates_ - Config::kWarmupUpdates) / config_.decay_updates);
    const double above =
        (1 - Config::kFinalShare) * 0.5 * (1 + std::cos(std::numbers::pi * progress));
    return config_.learning_rate * (Config::kFinalShare + above);
  }

  torch::Tensor OnDevice(const std::vector<float>& data, c10::IntArrayRef shape) const {
    return torch::from_blob(const_cast<float*>(data.data()), shape, torch::kFloat32).to(device_);
  }

  // The terms of the loss, summed over the steps of each row: [rows]. Importance weights and the
  // mean over rows come later.
  struct Terms {
    torch::Tensor policy, value, reward, entropy, value_error, surprise;
  };

  Terms Forward(const Batch& batch) {
    const int64_t rows = batch.rows, unroll = batch.unroll;
    const auto observations = OnDevice(batch.observations, {rows, shape_.size});
    const auto rewards = OnDevice(batch.rewards, {rows, unroll});
    const auto reward_weights = OnDevice(batch.reward_weights, {rows, unroll});
    const auto values = OnDevice(batch.values, {rows, unroll + 1});
    const auto value_weights = OnDevice(batch.value_weights, {rows, unroll + 1});
    const auto policies = OnDevice(batch.policies, {rows, unroll + 1, shape_.num_actions});
    const auto policy_weights = OnDevice(batch.policy_weights, {rows, unroll + 1});
    const auto actions =
        torch::from_blob(const_cast<int64_t*>(batch.actions.data()), {rows, unroll}, torch::kInt64)
            .to(device_);

    Terms terms;
    terms.policy = terms.value = terms.reward = torch::zeros({rows}, observations.options());
    auto hidden = networks_->Represent(observations);
    for (int64_t k = 0; k <= unroll; ++k) {
      const double share = k == 0 ? 1.0 : 1.0 / static_cast<double>(unroll);
      if (k > 0) {
        // Half of the gradient reaches the input of the dynamics, as in MuZero, so that a long
        // unroll weighs no more than a short one.
        hidden = (hidden + hidden.detach()) / 2;
        auto [next, reward_logits] = networks_->Step(hidden, actions.select(1, k - 1));
        hidden = next;
        terms.reward = terms.reward + share * BinLoss(reward_logits, rewards.select(1, k - 1)) *
                                          reward_weights.select(1, k - 1);
      }
      const auto [policy_logits, value_logits] = networks_->Predict(hidden, observations);
      // Nobody says below the root what is legal, so the policy has to know it.
      const auto log_policy = k == 0 ? LogPolicy(policy_logits, observations, shape_)
                                     : torch::log_softmax(policy_logits.to(torch::kFloat32), -1);
      terms.policy = terms.policy - share * (policies.select(1, k) * log_policy).sum(-1) *
                                        policy_weights.select(1, k);
      terms.value = terms.value +
                    share * BinLoss(value_logits, values.select(1, k)) * value_weights.select(1, k);
      if (k > 0) continue;
      terms.entropy = -(log_policy.exp() * log_policy).sum(-1).detach();
      terms.value_error = MeanOfBins(value_logits.detach()) - values.select(1, 0);
      const auto target = policies.select(1, 0);
      terms.surprise = (torch::xlogy(target, target) - target * log_policy.detach()).sum(-1) *
                       policy_weights.select(1, 0);
    }
    return terms;
  }

  absl::StatusOr<Losses> Descend(const Batch& batch) {
    const Terms terms = Forward(batch);
    const auto importance = OnDevice(batch.importance, {batch.rows});
    const auto total =
        (importance * (terms.policy + kValueWeight * terms.value + terms.reward)).mean();
    optimizer_->zero_grad();
    total.backward();
    const double norm = torch::nn::utils::clip_grad_norm_(networks_->parameters(), kGradientNorm);
    if (!std::isfinite(total.item<double>()) || !std::isfinite(norm)) {
      return absl::FailedPreconditionError(absl::StrCat(
          "muzero: update ", updates_, ": found loss ", total.item<double>(), " and gradient norm ",
          norm, ", allowed: finite numbers; a lower learning_rate may help"));
    }
    Losses losses;
    losses.learning_rate = LearningRate();
    for (auto& group : optimizer_->param_groups()) group.options().set_lr(losses.learning_rate);
    optimizer_->step();
    ++updates_;
    losses.policy = terms.policy.mean().item<double>();
    losses.value = terms.value.mean().item<double>();
    losses.reward = terms.reward.mean().item<double>();
    losses.policy_entropy = terms.entropy.mean().item<double>();
    losses.gradient_norm = norm;
    losses.value_errors = OfRows(terms.value_error);
    losses.surprises = OfRows(terms.surprise);
    return losses;
  }

  Config config_;
  ObservationShape shape_;
  torch::Device device_;
  std::shared_ptr<Networks> networks_;
  std::unique_ptr<torch::optim::AdamW> optimizer_;
  int64_t updates_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Network>> Learner::NetworkOf(const Config& config,
                                                            absl::string_view weights) {
  MG_RETURN_IF_ERROR(CheckSize(config, weights));
  return CatchTorch("muzero: reading the networks",
                    [&]() -> absl::StatusOr<std::unique_ptr<Network>> {
                      const ObservationShape shape = ShapeOf(config);
                      const auto networks = MakeNetworks(shape, config);
                      MG_RETURN_IF_ERROR(training::ReadWeights("muzero", weights, *networks));
                      if (!weights.empty()) return training::CutShort();
                      return CopyForInference(*networks, shape, config);
                    });
}

absl::Status Learner::CheckSize(const Config& config, absl::string_view saved) {
  // Both networks have at least so many square layers of that width.
  const size_t least = (2 * Config::kBlocks + 1) * config.width * config.width;
  if (saved.size() / sizeof(float) >= least) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("muzero: the saved networks are of other settings, or damaged: found ",
                   saved.size(), " bytes, expected more than ", least, " weights"));
}

absl::StatusOr<std::unique_ptr<Learner>> Learner::Create(const Config& config, uint64_t seed) {
  if (config.device == "cuda" && !training::HasCuda()) {
    return absl::InvalidArgumentError(
        "muzero: found device=cuda, but Torch finds no GPU here, allowed: auto, cpu");
  }
  return CatchTorch("muzero: making the networks",
                    [&]() -> absl::StatusOr<std::unique_ptr<Learner>> {
                      return std::make_unique<TorchLearner>(config, seed);
                    });
}

}  // namespace mallocgame::muzero
