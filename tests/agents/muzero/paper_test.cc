// MuZero as published: its tree knows no rules, and it learns from nothing. Each test has a control
// that fails it.
#include <vector>

#include "agents/muzero/agent.h"
#include "agents/muzero/search_models.h"
#include "mallocgame/plan/validate.h"
#include "tests/agents/muzero/training_problem.h"
#include "tests/catch.h"

namespace mallocgame::muzero {
namespace {

// Says the same of every position and step.
class ConstantNetwork final : public Network {
 public:
  explicit ConstantNetwork(const Task& task)
      : size_(task.observation_size()), actions_(task.game().num_actions()) {}
  int num_actions() const override { return actions_; }
  int observation_size() const override { return size_; }
  absl::Status Predict(absl::Span<const float>, absl::Span<float>, absl::Span<float>) override {
    return absl::OkStatus();
  }
  absl::Status Reserve(int) override { return absl::OkStatus(); }
  absl::Status Start(absl::Span<const float>, absl::Span<const int32_t>, absl::Span<float>,
                     absl::Span<float>) override {
    return absl::OkStatus();
  }
  absl::Status Step(absl::Span<const int32_t>, absl::Span<const int32_t>, absl::Span<const int32_t>,
                    absl::Span<float>, absl::Span<float>, absl::Span<float> rewards) override {
    std::fill(rewards.begin(), rewards.end(), 0.5F);
    return absl::OkStatus();
  }

 private:
  int size_, actions_;
};

// Whether a tree by `config` goes on behind the end of a game, on a way with illegal actions, and
// finds all actions legal there: nobody who asks the rules does.
bool KnowsNoRules(const Config& config) {
  const Task task = TaskFor(TinyProblem(5, 14), config);
  const size_t actions = task.game().num_actions();
  ConstantNetwork network(task);
  const auto model = MakeSearchModel(config, network);
  const std::unique_ptr<Position> start = task.game().NewInitialPosition();
  PlayForced(*start);
  const Root root = {&task, start.get(), task.baseline()};
  model->SetRoots({&root, 1});
  const int steps = 2 * static_cast<int>(task.baseline().size());
  REQUIRE(model->Reserve(steps + 1).ok());
  std::vector<float> logits(actions), value(1), reward(1), discount(1, 1);
  std::vector<uint8_t> legal(actions, 1), terminal(1);
  const mcts::Predictions out = {absl::MakeSpan(logits), absl::MakeSpan(value),
                                 absl::MakeSpan(reward), absl::MakeSpan(discount),
                                 absl::MakeSpan(legal),  absl::MakeSpan(terminal)};
  const mcts::RootRow at_root = {0, 0};
  REQUIRE(model->Start({&at_root, 1}, out).ok());
  for (size_t a = 0; a < actions; ++a)  // at the root the rules say it
    REQUIRE(legal[a] == (start->legal_actions().Has(static_cast<int>(a)) ? 1 : 0));
  const std::vector<uint8_t> all(actions, 1);
  for (int slot = 1; slot <= steps; ++slot) {
    legal = all;
    const mcts::StepRow row = {0, slot - 1, slot % static_cast<int>(actions), slot};
    if (!model->Step({&row, 1}, out).ok() || terminal[0] != 0 || legal != all || reward[0] != 0.5F)
      return false;
  }
  return true;
}

TEST_CASE("the tree asks the rules what is legal at the root, and nothing below") {
  REQUIRE(KnowsNoRules(TinyConfig("paper")));
  for (const char* game : kGames) REQUIRE(!KnowsNoRules(TinyConfig(game)));
}

// By how much more the last of 40 iterations save than the first, in shares of the all-main
// latency; the mean of two trainings.
double Learned(const Config& config) {
  double gain = 0;
  for (const uint64_t seed : {1, 2}) {
    const auto trainer = Make({TinyProblem(5, 30)}, config, seed);
    std::vector<double> returns;
    for (int i = 0; i < 40; ++i) {
      const Progress progress = *trainer->Step(nullptr);
      if (progress.games > 0) returns.push_back(progress.mean_return[0]);
    }
    REQUIRE(returns.size() > 20);
    for (size_t i = 0; i < 10; ++i) gain += returns[returns.size() - 1 - i] - returns[i];
  }
  return gain / 20;
}

TEST_CASE("it learns from nothing, and a learner that learns nothing doesn't") {
  Config config = TinyConfig("paper");
  config.games = config.moves = 8;
  config.updates = 8;
  config.batch = 32;
  config.learning_rate = 3e-3;
  const double learned = Learned(config);
  config.updates = 0;
  const double nothing = Learned(config);
  CAPTURE(learned, nothing);
  REQUIRE(learned > 0.006);
  REQUIRE(nothing < 0.003);
}

// What illegal actions cost in a game, as a share of the all-main latency.
double Paid(const Position& end) {
  return static_cast<double>(end.penalty_ps()) / static_cast<double>(end.game().all_main_ps());
}

TEST_CASE("where illegal actions cost a penalty, it learns to avoid them") {
  Config config = TinyConfig("constrained");
  config.games = config.moves = config.updates = 8;
  config.batch = 32;
  config.learning_rate = 3e-3;
  const TrainingProblem problem = TinyProblem(5, 30);
  const auto game = GameFor(problem, config);
  Rng rng(1);
  double random = 0, trained = 0;
  for (int i = 0; i < 20; ++i) random += Paid(*RandomGame(*game, rng)) / 20;
  for (const uint64_t seed : {1, 2}) {
    const auto trainer = Make({problem}, config, seed);
    Steps(*trainer, 40);
    const auto agent = *Agent::Load(*trainer->Save());
    const SolveResult played = *agent->Play(game, config, nullptr);
    REQUIRE(played.report.latency_ps < game->all_main_ps());
    REQUIRE(Validate(*problem.program, problem.hardware, played.plan).ok());
    trained += Paid(*PositionAfter(*game, played.play->actions)) / 2;
  }
  CAPTURE(random, trained);
  REQUIRE(random > 0.1);
  REQUIRE(trained < random / 4);
}

TEST_CASE("a trained agent plays, acts and solves without other players") {
  const TrainingProblem problem = TinyProblem(5, 14);
  const auto trainer = Make({problem}, TinyConfig("paper"));
  Steps(*trainer, 1);
  // It begins with the plan that leaves everything in main memory, and learns nothing of it.
  const SolveResult first = *trainer->Best(0);
  REQUIRE(first.found_by == "all-main");
  REQUIRE(first.report.latency_ps == first.report.all_main_ps);
  const Progress progress = *trainer->Step(nullptr);
  REQUIRE(progress.updates == 0);
  Steps(*trainer, 10);
  REQUIRE(trainer->Best(0)->found_by == "muzero");
  REQUIRE(trainer->Best(0)->report.latency_ps < first.report.latency_ps);

  const auto agent = *Agent::Load(*trainer->Save());
  const auto game = GameFor(problem, agent->config());
  REQUIRE(agent->Baseline(game, nullptr)->report.latency_ps == first.report.latency_ps);
  const SolveResult played = *agent->Play(game, agent->config(), nullptr);
  REQUIRE(Validate(*problem.program, problem.hardware, played.plan).ok());
  const std::unique_ptr<Position> start = game->NewInitialPosition();
  PlayForced(*start);
  const Advice advice = *agent->Act(*start, nullptr);
  REQUIRE(start->legal_actions().Has(advice.action));
  SolveLimits limits;
  limits.seconds = 0;
  limits.evaluations = 40;
  const SolveResult solved = *agent->Solve({game}, limits);
  REQUIRE(Validate(*problem.program, problem.hardware, solved.plan).ok());
  REQUIRE(solved.report.latency_ps < first.report.latency_ps);
}

}  // namespace
}  // namespace mallocgame::muzero
