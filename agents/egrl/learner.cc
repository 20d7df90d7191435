#include "agents/egrl/learner.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agents/egrl/modules.h"
#include "agents/training/bytes.h"
#include "agents/training/torch_state.h"
#include "agents/training/torch_status.h"
#include "mallocgame/base/error.h"
#include "mallocgame/base/noise.h"

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
        critics{CriticModule(config, graph.features, graph.levels, graph.wanted()),
                CriticModule(config, graph.features, graph.levels, graph.wanted())},
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
  TorchLearner(const Config& config, const std::vector<ProblemGraph>& graphs, uint64_t seed)
      : config_(config), networks_(std::make_unique<Networks>(config, graphs[0])) {
    for (const ProblemGraph& graph : graphs) problems_.emplace_back(graph);
    Rng rng(seed);
    Initialise(*networks_->actor, rng.Next());
    for (CriticModule& critic : networks_->critics) Initialise(*critic, rng.Next());
  }

  absl::StatusOr<Losses> Update(size_t problem, absl::Span<const uint8_t> maps,
                                absl::Span<const double> values, Rng& rng) override {
    return CatchTorch("egrl: an update", [&]() -> absl::StatusOr<Losses> {
      Losses losses;
      MG_RETURN_IF_ERROR(TeachCritics(problems_[problem], maps, values, rng, losses));
      MG_RETURN_IF_ERROR(TeachActor(problems_[problem], losses));
      ++updates_;
      return losses;
    });
  }
  int64_t updates() const override { return updates_; }

  std::vector<float> Actor() const override { return WeightsOf(*networks_->actor); }
  void SetActor(absl::Span<const float> weights) override {
    SetWeights(weights, *networks_->actor);
  }
  std::vector<float> Critics() const override {
    std::vector<float> weights = WeightsOf(*networks_->critics[0]);
    const std::vector<float> other = WeightsOf(*networks_->critics[1]);
    weights.insert(weights.end(), other.begin(), other.end());
    return weights;
  }
  void SetCritics(absl::Span<const float> weights) override {
    SetWeights(weights.first(weights.size() / 2), *networks_->critics[0]);
    SetWeights(weights.subspan(weights.size() / 2), *networks_->critics[1]);
  }

  absl::Status Prepare(size_t problem) override {
    return CatchTorch("egrl: asking the critics", [&] {
      const torch::NoGradGuard no_gradient;
      prepared_ = problem;
      contexts_ = Contexts(problems_[problem]);
      return absl::OkStatus();
    });
  }

  absl::StatusOr<std::vector<float>> Values(absl::Span<const uint8_t> maps) const override {
    return CatchTorch("egrl: asking the critics", [&]() -> absl::StatusOr<std::vector<float>> {
      const torch::NoGradGuard no_gradient;
      const Problem& problem = problems_[prepared_];
      const auto values = Expect(problem, contexts_, OneHot(problem, maps, nullptr)).contiguous();
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
      for (const Problem& problem : problems_) training::WriteBytes(PricesOf(problem), out);
      return out;
    });
  }

  absl::Status Load(absl::string_view in) override {
    return CatchTorch("egrl: reading the networks", [&] {
      int64_t updates = 0;
      auto networks = std::make_unique<Networks>(config_, problems_[0].plain);
      MG_RETURN_IF_ERROR(training::ReadBytes(in, updates));
      MG_RETURN_IF_ERROR(
          training::ReadModule("egrl", in, *networks->actor, networks->actor_optimizer));
      for (size_t i : {0, 1}) {
        MG_RETURN_IF_ERROR(training::ReadModule("egrl", in, *networks->critics[i],
                                                networks->critic_optimizers[i]));
      }
      for (Problem& problem : problems_) {
        std::vector<float> prices;
        MG_RETURN_IF_ERROR(training::ReadBytes(in, prices));
        if (prices.size() != static_cast<size_t>(problem.prices.numel()) ||
            !std::all_of(prices.begin(), prices.end(), [](float p) { return p >= 0; }))
          return training::CutShort();
        problem.prices.copy_(torch::tensor(prices).view(problem.prices.sizes()));
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
  struct Problem {
    explicit Problem(const ProblemGraph& given)
        : plain(given), graph(given),
          prices(torch::zeros({given.memories, ProblemGraph::kSlices})) {}
    ProblemGraph plain;
    GraphTensors graph;
    torch::Tensor prices;  // [memories, slices]
  };
  using ContextPair = std::array<torch::Tensor, 2>;

  static std::vector<float> PricesOf(const Problem& problem) {
    const float* const prices = problem.prices.data_ptr<float>();
    return {prices, prices + problem.prices.numel()};
  }

  // Maps as the critics read them, [maps, 2 * nodes, levels]: one-hot, and 0 where there is nothing
  // to place or the decision isn't open. If `rng` is not null, noise is added, so that similar maps
  // get similar rewards.
  torch::Tensor OneHot(const Problem& problem, absl::Span<const uint8_t> maps, Rng* rng) const {
    const ProblemGraph& graph = problem.plain;
    const size_t size = graph.map_size(), levels = graph.levels;
    auto read = torch::zeros(
        {static_cast<int64_t>(maps.size() / size), graph.map_size(), problem.graph.levels});
    float* at = read.data_ptr<float>();
    const auto deviation = static_cast<float>(config_.action_noise),
               most = static_cast<float>(config_.noise_clip);
    std::vector<uint8_t> open;
    for (size_t i = 0; i < maps.size(); ++i, at += levels) {
      if (i % size == 0) open = OpenDecisions(graph, maps.subspan(i, size));
      if (graph.real[i % size] == 0 || open[i % size] == 0) continue;
      at[maps[i]] = 1;
      if (rng == nullptr) continue;
      for (size_t level = 0; level < levels; ++level)
        at[level] += std::clamp(deviation * Noise(*rng), -most, most);
    }
    return read;
  }

  ContextPair Contexts(const Problem& problem) const {
    return {networks_->critics[0]->Context(problem.graph),
            networks_->critics[1]->Context(problem.graph)};
  }

  torch::Tensor Expect(const Problem& problem, const ContextPair& contexts,
                       const torch::Tensor& maps) const {
    const auto latency = [&](size_t i) {
      return networks_->critics[i]->forward(problem.graph, contexts[i], maps);
    };
    return -static_cast<double>(config_.reward_scale) * torch::maximum(latency(0), latency(1));
  }

  absl::Status CheckFinite(absl::string_view whose, double loss, double norm) const {
    if (std::isfinite(loss) && std::isfinite(norm)) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat(
        "egrl: update ", updates_, ": ", whose, ": found loss ", loss, " and gradient norm ", norm,
        ", allowed: finite numbers; a lower learning rate may help"));
  }

  absl::Status TeachCritics(const Problem& problem, absl::Span<const uint8_t> maps,
                            absl::Span<const double> values, Rng& rng, Losses& losses) {
    const auto read = OneHot(problem, maps, &rng);
    auto targets = torch::empty({static_cast<int64_t>(values.size())});
    std::transform(values.begin(), values.end(), targets.data_ptr<float>(), [this](double value) {
      return static_cast<float>(config_.reward_scale * value);
    });
    for (size_t i : {0, 1}) {
      networks_->critic_optimizers[i].zero_grad();
      const auto latencies = networks_->critics[i]->forward(
          problem.graph, networks_->critics[i]->Context(problem.graph), read);
      const auto loss =
          torch::mse_loss(-static_cast<double>(config_.reward_scale) * latencies, targets);
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
  absl::Status TeachActor(Problem& problem, Losses& losses) {
    const GraphTensors& graph = problem.graph;
    const auto log_p = torch::log_softmax(networks_->actor->forward(graph), 1);
    const auto p = log_p.exp();
    const auto entropy =
        -((p * log_p).sum(1) * graph.real).sum() / static_cast<double>(graph.decisions);
    // What is decided, and whether the decision is open.
    const auto decided =
        graph.ancestors.defined()
            ? p * torch::mv(graph.ancestors, log_p.select(1, PlacementProblem::kSplitLevel))
                      .exp()
                      .unsqueeze(1)
            : p;
    auto map = (decided * graph.real.unsqueeze(1)).detach().requires_grad_();
    const auto value = Expect(problem, Contexts(problem), map.unsqueeze(0)).squeeze(0);
    const auto slope = torch::autograd::grad({value}, {map})[0];
    const double entropy_weight = config_.entropy;
    auto loss = -(slope * decided).sum() - entropy_weight * entropy;
    torch::Tensor fill;  // [memories, slices]
    if (problem.prices.numel() > 0) {
      fill = torch::bmm(torch::mm(graph.memory, decided.t()).unsqueeze(1), graph.fill).squeeze(1);
      loss = loss + (problem.prices * fill).sum();
    }
    networks_->actor_optimizer.zero_grad();
    loss.backward();
    losses.actor_gradient =
        torch::nn::utils::clip_grad_norm_(networks_->actor->parameters(), config_.gradient_clip);
    losses.value = value.item<double>();
    losses.entropy = entropy.item<double>();
    MG_RETURN_IF_ERROR(CheckFinite("actor", loss.item<double>(), losses.actor_gradient));
    networks_->actor_optimizer.step();
    if (fill.defined()) {
      const double rate = config_.price_rate;
      problem.prices = (problem.prices + rate * (fill.detach() - 1)).clamp_min(0).contiguous();
    }
    return absl::OkStatus();
  }

  Config config_;
  std::vector<Problem> problems_;
  std::unique_ptr<Networks> networks_;
  int64_t updates_ = 0;
  size_t prepared_ = 0;
  ContextPair contexts_;  // of the prepared problem
};

}  // namespace

absl::Status Learner::CheckSize(const Config& config, const ProblemGraph& graph,
                                absl::string_view saved) {
  const int64_t weights =
      NumPolicyWeights(config, graph.features, graph.levels) +
      2 * NumCriticWeights(config, graph.features, graph.levels, graph.wanted());
  if (static_cast<int64_t>(saved.size() / sizeof(float)) >= weights) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("egrl: the saved networks are of other settings, or damaged: found ",
                   saved.size(), " bytes, expected ", weights, " weights"));
}

size_t Learner::NumCritics(const Config& config, const ProblemGraph& graph) {
  return 2 * NumCriticWeights(config, graph.features, graph.levels, graph.wanted());
}

absl::StatusOr<std::unique_ptr<Learner>> Learner::Create(const Config& config,
                                                         const std::vector<ProblemGraph>& graphs,
                                                         uint64_t seed) {
  return CatchTorch("egrl: making the networks", [&]() -> absl::StatusOr<std::unique_ptr<Learner>> {
    return std::make_unique<TorchLearner>(config, graphs, seed);
  });
}

}  // namespace mallocgame::egrl
