// The networks: their shapes, a loss that falls, finite gradients, the same bytes for the same
// calls.
#include "agents/muzero/learner.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "agents/muzero/replay.h"
#include "agents/training/torch_runtime.h"
#include "tests/agents/muzero/training_problem.h"
#include "tests/catch.h"

namespace mallocgame::muzero {
namespace {

// A batch of random games, drawn from a replay. What was played is the policy to learn.
Batch SomeBatch(const Config& config, uint64_t seed) {
  std::vector<Task> tasks;
  tasks.push_back(TaskFor(TinyProblem(5, 14), config));
  Replay replay(config, 1);
  Rng rng(seed);
  for (int i = 0; i < 6; ++i) {
    PlayedGame game = GameOf(tasks[0], 0, *RandomGame(tasks[0].game(), rng), 0, false);
    for (Step& step : game.steps) {
      step.policy.resize(tasks[0].game().num_actions());
      step.policy[game.actions[step.decision]] = 1;
    }
    replay.Add(std::move(game));
  }
  return MakeBatch(config, tasks, replay, replay.Draw(1, config.batch, rng)[0]);
}

// By how much the logit of what the baseline took first begins ahead: it has a probability of 0.9
// where all actions are legal.
double LeadOfBaseline(size_t actions) { return std::log(9.0 * static_cast<double>(actions - 1)); }

Config ConfigFor(const std::string& kind) {
  Config config = TinyConfig(kind);
  config.learning_rate = 3e-3;
  return config;
}

std::unique_ptr<Learner> MakeLearner(const Config& config, uint64_t seed) {
  training::UseOneTorchThread();
  auto learner = Learner::Create(config, seed);
  REQUIRE(learner.ok());
  return *std::move(learner);
}

TEST_CASE("bytes that cannot hold the weights of the settings are refused before any is made") {
  for (const char* kind : kKinds) {
    const Config config = ConfigFor(kind);
    const size_t bytes = sizeof(float) * MakeLearner(config, 7)->parameters();
    REQUIRE(Learner::CheckSize(config, std::string(bytes, '0')).ok());
    Config wide = config;
    wide.width = 8192;
    REQUIRE(absl::IsInvalidArgument(Learner::CheckSize(wide, std::string(bytes, '0'))));
  }
}

TEST_CASE("the loss falls on a fixed batch and gradients are finite") {
  for (const char* kind : kKinds) {
    INFO(kind);
    const Config config = ConfigFor(kind);
    const Batch batch = SomeBatch(config, 1);
    const auto learner = MakeLearner(config, 7);
    double first_policy = 0, first_value = 0, first_reward = 0;
    Losses losses;
    const auto has_fallen = [&] {
      return losses.policy < 0.6 * first_policy && losses.value < 0.6 * first_value &&
             (!config.paper() || losses.reward < 0.6 * first_reward);
    };
    int updates = 0;
    // How fast they fall depends on the rounding of the machine.
    for (; updates < 600 && !(updates > 0 && has_fallen()); ++updates) {
      const auto update = learner->Update(batch);
      REQUIRE(update.ok());
      losses = *update;
      REQUIRE(std::isfinite(losses.gradient_norm));
      REQUIRE(losses.value_errors.size() == static_cast<size_t>(batch.rows));
      REQUIRE(losses.surprises.size() == static_cast<size_t>(batch.rows));
      if (updates > 0) continue;
      REQUIRE(losses.gradient_norm > 0);
      first_policy = losses.policy, first_value = losses.value, first_reward = losses.reward;
    }
    INFO(losses.policy << " " << losses.value << " " << losses.reward);
    REQUIRE(has_fallen());
    REQUIRE(learner->updates() == updates);
  }
}

TEST_CASE("the policy counts legal actions only") {
  for (const char* game : kGames) {
    const Config config = ConfigFor(game);
    const Task task = TaskFor(TinyProblem(5, 14), config);
    const Batch batch = SomeBatch(config, 1);
    int mask = -1;
    for (const ObservationPart& part :
         config.game_options()->Layout(config.observation_options())) {
      if (part.name == "action_mask") mask = part.offset;
    }
    // New networks find all legal actions equally good, but for what the baseline took first.
    double entropy = 0;
    for (int row = 0; row < batch.rows; ++row) {
      const float* observation = batch.observations.data() + row * task.observation_size();
      const float* legal = observation + mask;
      const int actions = task.game().num_actions();
      const float* baseline =
          observation + task.observation_size() - kLeadFeatures - actions * Baseline::kFeatures;
      double sum = 0, weighted = 0;
      for (int a = 0; a < actions; ++a) {
        const double logit =
            LeadOfBaseline(actions) * static_cast<double>(baseline[a * Baseline::kFeatures + 1]);
        sum += legal[a] * std::exp(logit);
        weighted += legal[a] * std::exp(logit) * logit;
      }
      entropy += std::log(sum) - weighted / sum;
    }
    const auto losses = MakeLearner(config, 7)->Update(batch);
    REQUIRE(losses->policy_entropy == Approx(entropy / batch.rows));
    // Where one action is to be learned, the divergence is what the loss is.
    double surprise = 0;
    for (const float one : losses->surprises) surprise += static_cast<double>(one);
    REQUIRE(losses->policy == Approx(surprise / batch.rows));
  }
}

TEST_CASE("the learning rate warms up and decays") {
  Config config = ConfigFor("time");
  config.decay_updates = 20;
  const Batch batch = SomeBatch(config, 1);
  const auto learner = MakeLearner(config, 7);
  std::vector<double> rates;
  for (int i = 0; i < 80; ++i) rates.push_back(learner->Update(batch)->learning_rate);
  REQUIRE(rates[0] == Approx(3e-3 / 50));
  REQUIRE(rates[50] == Approx(3e-3));
  REQUIRE(std::is_sorted(rates.rbegin(), rates.rend() - 50));
  REQUIRE(rates[60] == Approx((3e-3 + 3e-4) / 2));
  REQUIRE(rates.back() == Approx(3e-4));
}

TEST_CASE("an untrained network prefers what the baseline took first, and sees no lead") {
  const Config config = ConfigFor(GENERATE(as<std::string>{}, "time", "priority", "schedule"));
  const Batch batch = SomeBatch(config, 2);
  const auto learner = MakeLearner(config, 1);
  const auto network = learner->Snapshot();
  REQUIRE(network.ok());
  constexpr size_t kRows = 3;
  const size_t size = (*network)->observation_size();
  const size_t actions = config.game_options()->num_actions();
  REQUIRE((*network)->num_actions() == static_cast<int>(actions));
  std::vector<float> logits(kRows * actions, 9), values(kRows, 9);
  REQUIRE((*network)
              ->Predict(absl::MakeConstSpan(batch.observations).subspan(0, kRows * size),
                        absl::MakeSpan(logits), absl::MakeSpan(values))
              .ok());
  for (size_t row = 0; row < kRows; ++row) {
    const float* baseline = batch.observations.data() + (row + 1) * size - kLeadFeatures -
                            actions * Baseline::kFeatures;
    for (size_t a = 0; a < actions; ++a) {
      const auto ahead = static_cast<double>(baseline[a * Baseline::kFeatures + 1]);
      REQUIRE(logits[row * actions + a] == Approx(LeadOfBaseline(actions) * ahead));
    }
  }
  for (float value : values) REQUIRE(std::abs(value) < 1e-3F);
}

TEST_CASE("an untrained dynamics network finds nothing out, under slots in any order") {
  const Config config = ConfigFor("paper");
  const Batch batch = SomeBatch(config, 2);
  const auto network = *MakeLearner(config, 1)->Snapshot();
  constexpr size_t kRows = 3;
  const size_t size = network->observation_size(), actions = network->num_actions();
  std::vector<float> logits(kRows * actions, 9), values(kRows, 9), rewards(kRows, 9);
  REQUIRE(network->Reserve(8).ok());
  const int32_t slots[] = {5, 0, 2}, next[] = {1, 7, 3}, chosen[] = {0, 2, 1};
  REQUIRE(network
              ->Start(absl::MakeConstSpan(batch.observations).subspan(0, kRows * size), slots,
                      absl::MakeSpan(logits), absl::MakeSpan(values))
              .ok());
  REQUIRE(network
              ->Step(slots, chosen, next, absl::MakeSpan(logits), absl::MakeSpan(values),
                     absl::MakeSpan(rewards))
              .ok());
  for (float logit : logits) REQUIRE(logit == 0);
  for (float value : values) REQUIRE(std::abs(value) < 1e-3F);
  for (float reward : rewards) REQUIRE(std::abs(reward) < 1e-3F);
}

TEST_CASE("the true model has no dynamics to ask") {
  const auto learner = MakeLearner(ConfigFor("time"), 1);
  const auto network = learner->Snapshot();
  REQUIRE(absl::IsFailedPrecondition((*network)->Reserve(8)));
}

TEST_CASE("saved and loaded it goes on with the same bytes; other networks are refused") {
  const Config config = ConfigFor("paper");
  const Batch batch = SomeBatch(config, 3);
  const auto one = MakeLearner(config, 11), other = MakeLearner(config, 12);
  REQUIRE((*one->Save() != *other->Save()));
  for (int i = 0; i < 3; ++i) REQUIRE(one->Update(batch).ok());
  const std::string saved = *one->Save();
  REQUIRE(other->Load(saved).ok());
  REQUIRE(other->updates() == 3);
  for (int i = 0; i < 3; ++i) {
    REQUIRE(one->Update(batch).ok());
    REQUIRE(other->Update(batch).ok());
  }
  REQUIRE((*one->Save() == *other->Save()));

  Config wider = config;
  wider.width = 32;
  const auto third = MakeLearner(wider, 1);
  const absl::Status refused = third->Load(saved);
  REQUIRE(absl::IsInvalidArgument(refused));
  REQUIRE(third->Update(batch).ok());  // still usable
  REQUIRE(!third->Load(saved.substr(0, saved.size() / 2)).ok());
  REQUIRE(!third->Load("nonsense").ok());
}

}  // namespace
}  // namespace mallocgame::muzero
