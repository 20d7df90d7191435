#include "agents/egrl/learner.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agents/egrl/modules.h"
#include "agents/egrl/noise.h"
#include "agents/training/bytes.h"
#include "agents/training/torch_state.h"
#include "agents/training/torch_status.h"
#include "mallocgame/base/error.h"

namespace mallocgame::egrl {
namespace {

using training::CatchTorch;

torch::optim::AdamW Optimizer(const torch::nn::Module& module, double learning_rate) {
  return torch::optim::AdamW(module.parameters(),
                             torch::optim::AdamWOptions(learning_rate).weight_decay(0));
}

struct Networks {
  Networks(const Config& config, const ProblemGraph& graph)
      : actor(config, graph.features, graph.levels),
        critics{CriticModule(config, graph.features, graph.levels),
                CriticModule(config, graph.features, graph.levels)},
        actor_optimizer(Optimizer(*actor, config.learning_rate)),
        critic_optimizers{Optimizer(*critics[0], config.critic_learning_rate),
                          Optimizer(*critics[1], config.critic_learning_rate)} {}

  PolicyModule actor;
  std::array<CriticModule, 2> critics;
  torch::optim::AdamW actor_optimizer;
  std::array<torch::optim::AdamW, 2> critic_optimizers;
};

class TorchLearner final : public Learner {
 public:
  TorchLearner(const Config& config, const ProblemGraph& graph, uint64_t seed)
      : config_(config), plain_graph_(graph), graph_(graph),
        networks_(std::make_unique<Networks>(config, graph)) {
    Rng rng(seed);
    Initialise(*networks_->actor, rng.Next());
    for (CriticModule& critic : networks_->critics) Initialise(*critic, rng.Next());
  }

  absl::StatusOr<Losses> Update(absl::Span<const uint8_t> maps, absl::Span<const double> rewards,
                                Rng& rng) override {
    return CatchTorch("egrl: an update", [&]() -> absl::StatusOr<Losses> {
      Losses losses;
      MG_RETURN_IF_ERROR(TeachCritics(maps, rewards, rng, losses));
      MG_RETURN_IF_ERROR(TeachActor(losses));
      ++updates_;
      return losses;
    });
  }
  int64_t updates() const override { return updates_; }

  std::vector<float> Actor() const override { return WeightsOf(*networks_->actor); }
  void SetActor(absl::Span<const float> weights) override {
    SetWeights(weights, *networks_->actor);
  }

  absl::StatusOr<std::vector<float>> Values(absl::Span<const uint8_t> maps) const override {
    return CatchTorch("egrl: asking the critics", [&]() -> absl::StatusOr<std::vector<float>> {
      const torch::NoGradGuard no_gradient;
      const auto read = OneHot(maps, nullptr);
      const auto values = Expect(read).contiguous();
      return std::vector<float>(values.data_ptr<float>(),
                                values.data_ptr<float>() + values.numel());
    });
  }

  absl::StatusOr<std::string> Save() const override {
    return CatchTorch("egrl: saving the networks", [&]() -> absl::StatusOr<std::string> {
      std::string out;
      training::WriteBytes(updates_, out);
      training::WriteModule(*networks_->actor, networks_->actor_optimizer, out);
      for (size_t i : {0, 1})
        training::WriteModule(*networks_->critics[i], networks_->critic_optimizers[i], out);
      return out;
    });
  }

  absl::Status Load(absl::string_view in) override {
    return CatchTorch("egrl: reading the networks", [&] {
      int64_t updates = 0;
      auto networks = std::make_unique<Networks>(config_, plain_graph_);
      MG_RETURN_IF_ERROR(training::ReadBytes(in, updates));
      MG_RETURN_IF_ERROR(
          training::ReadModule("egrl", in, *networks->actor, networks->actor_optimizer));
      for (size_t i : {0, 1}) {
        MG_RETURN_IF_ERROR(training::ReadModule("egrl", in, *networks->critics[i],
                                                networks->critic_optimizers[i]));
      }
      if (!in.empty()) {
        return absl::InvalidArgumentError(
            "egrl: the saved networks are of other settings: there is more than expected");
      }
      networks_ = std::move(networks);
      updates_ = updates;
      return absl::OkStatus();
    });
  }

 private:
  // Maps as the critics read them, [maps, 2 * nodes, levels]: one-hot, and 0 where there is nothing
  // to place. If `rng` is not null, noise is added, so that similar maps get similar rewards.
  torch::Tensor OneHot(absl::Span<const uint8_t> maps, Rng* rng) const {
    const size_t size = plain_graph_.map_size(), levels = plain_graph_.levels;
    auto read = torch::zeros(
        {static_cast<int64_t>(maps.size() / size), plain_graph_.map_size(), graph_.levels});
    float* at = read.data_ptr<float>();
    const auto deviation = static_cast<float>(config_.action_noise),
               most = static_cast<float>(config_.noise_clip);
    for (size_t i = 0; i < maps.size(); ++i, at += levels) {
      if (plain_graph_.real[i % size] == 0) continue;
      at[maps[i]] = 1;
      if (rng == nullptr) continue;
      for (size_t level = 0; level < levels; ++level)
        at[level] += std::clamp(deviation * Noise(*rng), -most, most);
    }
    return read;
  }

  torch::Tensor Expect(const torch::Tensor& maps) const {
    return torch::minimum(networks_->critics[0]->forward(graph_, maps),
                          networks_->critics[1]->forward(graph_, maps));
  }

  absl::Status CheckFinite(absl::string_view whose, double loss, double norm) const {
    if (std::isfinite(loss) && std::isfinite(norm)) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat(
        "egrl: update ", updates_, ": ", whose, ": found loss ", loss, " and gradient norm ", norm,
        ", allowed: finite numbers; a lower learning rate may help"));
  }

  absl::Status TeachCritics(absl::Span<const uint8_t> maps, absl::Span<const double> rewards,
                            Rng& rng, Losses& losses) {
    const auto read = OneHot(maps, &rng);
    auto targets = torch::empty({static_cast<int64_t>(rewards.size())});
    std::transform(
        rewards.begin(), rewards.end(), targets.data_ptr<float>(),
        [this](double reward) { return static_cast<float>(config_.reward_scale * reward); });
    for (size_t i : {0, 1}) {
      networks_->critic_optimizers[i].zero_grad();
      const auto loss = torch::mse_loss(networks_->critics[i]->forward(graph_, read), targets);
      loss.backward();
      const double norm = torch::nn::utils::clip_grad_norm_(networks_->critics[i]->parameters(),
                                                            config_.gradient_clip);
      MG_RETURN_IF_ERROR(CheckFinite("critic", loss.item<double>(), norm));
      networks_->critic_optimizers[i].step();
      losses.critic += loss.item<double>() / 2;
    }
    return absl::OkStatus();
  }

  // The critics read the actor's probabilities as if they were a map, and so the gradient reaches
  // the actor.
  absl::Status TeachActor(Losses& losses) {
    const auto log_p = torch::log_softmax(networks_->actor->forward(graph_), 1);
    const auto p = log_p.exp();
    const auto entropy =
        -((p * log_p).sum(1) * graph_.real).sum() / static_cast<double>(graph_.decisions);
    auto map = (p * graph_.real.unsqueeze(1)).detach().requires_grad_();
    const auto value = Expect(map.unsqueeze(0)).squeeze(0);
    const auto slope = torch::autograd::grad({value}, {map})[0];
    const double entropy_weight = config_.entropy;
    const auto loss = -(slope * p).sum() - entropy_weight * entropy;
    networks_->actor_optimizer.zero_grad();
    loss.backward();
    losses.actor_gradient =
        torch::nn::utils::clip_grad_norm_(networks_->actor->parameters(), config_.gradient_clip);
    losses.value = value.item<double>();
    losses.entropy = entropy.item<double>();
    MG_RETURN_IF_ERROR(CheckFinite("actor", loss.item<double>(), losses.actor_gradient));
    networks_->actor_optimizer.step();
    return absl::OkStatus();
  }

  Config config_;
  ProblemGraph plain_graph_;
  GraphTensors graph_;
  std::unique_ptr<Networks> networks_;
  int64_t updates_ = 0;
};

}  // namespace

absl::Status Learner::CheckSize(const Config& config, const ProblemGraph& graph,
                                absl::string_view saved) {
  const int64_t weights = NumPolicyWeights(config, graph.features, graph.levels) +
                          2 * NumCriticWeights(config, graph.features, graph.levels);
  if (static_cast<int64_t>(saved.size() / sizeof(float)) >= weights) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("egrl: the saved networks are of other settings, or damaged: found ",
                   saved.size(), " bytes, expected ", weights, " weights"));
}

absl::StatusOr<std::unique_ptr<Learner>> Learner::Create(const Config& config,
                                                         const ProblemGraph& graph, uint64_t seed) {
  return CatchTorch("egrl: making the networks", [&]() -> absl::StatusOr<std::unique_ptr<Learner>> {
    return std::make_unique<TorchLearner>(config, graph, seed);
  });
}

}  // namespace mallocgame::egrl
