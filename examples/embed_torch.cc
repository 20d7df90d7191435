// mallocGame with libtorch: trains a network on 64 environments that are stepped together, and then
// has the tree search play with it, which asks it about the positions of all its trees at a time.
//
//     embed_torch resnet50_b1.tpu_v4i.mgp [UPDATES]
//
// It prints rewards and returns. Beside mallocgame::io it links libtorch.
#include <torch/torch.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "mallocgame/game/observation.h"
#include "mallocgame/game/time/time_game.h"
#include "mallocgame/replay/files.h"
#include "mallocgame/replay/program_file.h"
#include "mallocgame/tree/game_model.h"
#include "mallocgame/tree/search.h"
#include "mallocgame/vector/vector_env.h"

namespace mg = mallocgame;

constexpr int kEnvironments = 64, kSteps = 32;

void Check(const absl::Status& status) {
  if (status.ok()) return;
  std::cerr << "embed_torch: " << status.ToString() << "\n";
  std::exit(2);
}

template <class T>
T Must(absl::StatusOr<T> found) {
  Check(found.status());
  return *std::move(found);
}

// A policy and a value of observations, which end with the mask of legal actions.
struct NetworkImpl : torch::nn::Module {
  NetworkImpl(int inputs, int num_actions)
      : body(register_module("body", torch::nn::Linear(inputs, 128))),
        policy(register_module("policy", torch::nn::Linear(128, num_actions))),
        value(register_module("value", torch::nn::Linear(128, 1))) {}

  // Log-probabilities [rows, actions] and values [rows].
  std::pair<torch::Tensor, torch::Tensor> forward(const torch::Tensor& rows) {
    const torch::Tensor hidden = torch::tanh(body(rows));
    const int64_t num_actions = policy->options.out_features();
    const torch::Tensor legal = rows.narrow(1, rows.size(1) - num_actions, num_actions) > 0;
    const torch::Tensor logits = policy(hidden).masked_fill(~legal, -1e9);
    return {torch::log_softmax(logits, 1), value(hidden).squeeze(1)};
  }

  torch::nn::Linear body, policy, value;
};
TORCH_MODULE(Network);

// Actor-critic: each update plays kSteps steps everywhere and learns from what followed.
void Train(const std::shared_ptr<const mg::Game>& game, Network& network, int updates) {
  const auto games = Must(mg::GameList::Create({game}, mg::ObservationOptions::Compact()));
  mg::VectorEnvOptions options;
  options.autoreset = mg::Autoreset::kSameStep;
  const auto envs = Must(mg::VectorEnv::Create(games, kEnvironments, options));
  const int64_t size = games->observation_size(), actions = games->num_actions();

  // The environments write where the network reads: row t of the tensors is step t.
  const torch::Tensor observations = torch::zeros({kSteps + 1, kEnvironments, size});
  const torch::Tensor rewards = torch::zeros({kSteps, kEnvironments}, torch::kDouble);
  const torch::Tensor ends = torch::zeros({kSteps, kEnvironments}, torch::kBool);
  const torch::Tensor chosen = torch::zeros({kSteps, kEnvironments}, torch::kLong);
  const torch::Tensor last = torch::zeros({kEnvironments, size});
  std::vector<int8_t> masks(kEnvironments * actions), last_masks(masks.size());
  std::vector<int64_t> latency_ps(kEnvironments);
  const auto buffers = [&](int64_t row, int64_t step) {
    mg::StepBuffers out;
    out.observations = observations[row].data_ptr<float>();
    out.masks = masks.data();
    out.rewards = rewards[step].data_ptr<double>();
    out.terminated = ends[step].data_ptr<bool>();
    out.latency_ps = latency_ps.data();
    out.final_observations = last.data_ptr<float>();
    out.final_masks = last_masks.data();
    return out;
  };

  torch::optim::Adam optimizer(network->parameters(), torch::optim::AdamOptions(3e-3));
  Check(envs->Reset({}, {}, buffers(kSteps, 0)));
  for (int update = 0; update < updates; ++update) {
    observations[0].copy_(observations[kSteps]);
    for (int64_t t = 0; t < kSteps; ++t) {
      const torch::NoGradGuard no_gradients;
      const torch::Tensor logs = network->forward(observations[t]).first;
      chosen[t].copy_(torch::multinomial(logs.exp(), 1).squeeze(1));
      Check(envs->Step({chosen[t].data_ptr<int64_t>(), kEnvironments}, buffers(t + 1, t)));
    }

    const auto [logs, values] = network->forward(observations.view({-1, size}));
    const torch::Tensor baseline = values.view({kSteps + 1, kEnvironments});
    torch::Tensor target = baseline[kSteps].detach();
    std::vector<torch::Tensor> targets(kSteps);
    for (int t = kSteps - 1; t >= 0; --t) {
      target = rewards[t].to(torch::kFloat) + target.masked_fill(ends[t], 0);
      targets[t] = target;
    }
    const torch::Tensor advantage = torch::stack(targets) - baseline.narrow(0, 0, kSteps);
    const torch::Tensor taken = logs.narrow(0, 0, kSteps * kEnvironments)
                                    .gather(1, chosen.view({-1, 1}))
                                    .view({kSteps, kEnvironments});
    const torch::Tensor entropy = -(logs.exp() * logs.clamp_min(-20)).sum(1).mean();
    const torch::Tensor loss =
        -(taken * advantage.detach()).mean() + advantage.square().mean() - 0.003 * entropy;
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    if (update % std::max(1, updates / 5) == 0)
      std::cout << "update " << update << ": rewards of " << rewards.sum().item<double>() << " in "
                << ends.sum().item<int64_t>() << " games\n";
  }
}

// Tells the search what the network says of a batch of positions.
class NetworkEvaluator final : public mg::mcts::Evaluator {
 public:
  NetworkEvaluator(const mg::Observer& observer, Network network)
      : observer_(observer), network_(std::move(network)) {}

  void Begin(int rows) override { rows_ = torch::zeros({rows, observer_.size()}); }
  void Look(int row, int /*root*/, mg::Position& position) override {
    observer_.Write(position, rows_[row].data_ptr<float>());
  }
  absl::Status Finish(absl::Span<float> logits, absl::Span<float> values) override {
    const torch::NoGradGuard no_gradients;
    const auto [logs, value] = network_->forward(rows_);
    std::copy_n(logs.contiguous().data_ptr<float>(), logits.size(), logits.begin());
    std::copy_n(value.contiguous().data_ptr<float>(), values.size(), values.begin());
    return absl::OkStatus();
  }

 private:
  const mg::Observer& observer_;
  Network network_;
  torch::Tensor rows_;
};

// The return of a game in which the search plays with so many simulations for each decision.
double PlayBySearch(const std::shared_ptr<const mg::Game>& game, mg::mcts::Evaluator& evaluator,
                    int simulations) {
  std::vector<std::unique_ptr<mg::Position>> starts;
  starts.push_back(game->NewInitialPosition());
  const auto model = Must(mg::mcts::GameModel::Create(std::move(starts), &evaluator));
  mg::mcts::SearchOptions options;
  options.simulations = simulations;
  options.leaves = 8;  // evaluated together
  const auto rule = Must(mg::mcts::MakeGumbel({.noise_scale = 0}));
  const auto search = Must(mg::mcts::Search::Create(options, rule, 1, game->num_actions()));
  while (!model->position(0).IsTerminal()) {
    Check(search->Run(*model, 0));
    std::unique_ptr<mg::Position> next = model->position(0).Clone();
    Check(next->Apply(search->action(0)).status());
    model->SetPosition(0, std::move(next));
    search->Forget(0);
  }
  return 1 - static_cast<double>(model->position(0).latency_ps()) /
                 static_cast<double>(game->all_main_ps());
}

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) return std::cerr << "usage: embed_torch PROGRAM.mgp [UPDATES]\n", 2;
  const auto file = Must(mg::ParseProgramFile(Must(mg::ReadFile(argv[1]))));
  const std::shared_ptr<const mg::Game> game =
      Must(mg::Game::Create(file.program, file.hardware, mg::TimeGameOptions()));
  const auto observer = Must(mg::Observer::Create(game, mg::ObservationOptions::Compact()));
  torch::manual_seed(0);
  torch::set_num_threads(1);
  Network network(observer.size(), game->num_actions());
  Train(game, network, argc == 3 ? std::stoi(argv[2]) : 100);
  NetworkEvaluator evaluator(observer, network);
  for (const int simulations : {0, 64}) {
    std::cout << simulations << " simulations: return "
              << PlayBySearch(game, evaluator, simulations) << "\n";
  }
  return 0;
}
