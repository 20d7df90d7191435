// What self-play stands on: the models that the search asks, demonstrations, and variations of a
// game.
#include "agents/muzero/search_models.h"

#include <bit>

#include "agents/muzero/demonstrations.h"
#include "agents/muzero/self_play.h"
#include "agents/muzero/variation.h"
#include "tests/agents/muzero/training_problem.h"
#include "tests/catch.h"
#include "tests/support/play.h"

namespace mallocgame::muzero {
namespace {

// Says the same of every position: even logits and a value of 0. Counts what it is asked.
class EvenNetwork final : public Network {
 public:
  explicit EvenNetwork(const Task& task) : size_(task.observer().size()) {}
  int num_actions() const override { return kActions; }
  int observation_size() const override { return size_; }
  absl::Status Predict(absl::Span<const float> observations, absl::Span<float> logits,
                       absl::Span<float> values) override {
    REQUIRE(observations.size() == values.size() * size_);
    rows += static_cast<int64_t>(values.size());
    std::fill(logits.begin(), logits.end(), 0.0F);
    std::fill(values.begin(), values.end(), 0.0F);
    return absl::OkStatus();
  }
  absl::Status Reserve(int) override { return absl::OkStatus(); }
  absl::Status Start(absl::Span<const float> observations, absl::Span<const int32_t>,
                     absl::Span<float> logits, absl::Span<float> values) override {
    return Predict(observations, logits, values);
  }
  absl::Status Step(absl::Span<const int32_t>, absl::Span<const int32_t>, absl::Span<const int32_t>,
                    absl::Span<float>, absl::Span<float>, absl::Span<float> rewards) override {
    std::fill(rewards.begin(), rewards.end(), 0.5F);
    return absl::OkStatus();
  }
  int64_t rows = 0;

 private:
  int size_;
};

// Room for what a model says of `rows` positions.
struct Answers {
  explicit Answers(size_t rows)
      : logits(rows * kActions), values(rows), rewards(rows), discounts(rows, 1),
        legal(rows * kActions, 1), terminal(rows) {}
  mcts::Predictions out() {
    return {absl::MakeSpan(logits),    absl::MakeSpan(values), absl::MakeSpan(rewards),
            absl::MakeSpan(discounts), absl::MakeSpan(legal),  absl::MakeSpan(terminal)};
  }
  std::vector<float> logits, values, rewards, discounts;
  std::vector<uint8_t> legal, terminal;
};

TEST_CASE("with the true rules rewards are leads gained, from any position to any other") {
  const Config config = TinyConfig();
  const Task task = TaskFor(TinyProblem(5, 14), config);
  EvenNetwork network(task);
  const auto model = MakeSearchModel(config, network);
  State start = task.game().InitialState();
  PlayForced(start);
  REQUIRE(!start.IsTerminal());
  const Root root = {&task, &start};
  model->SetRoots({&root, 1});
  constexpr int kPositions = 60;
  REQUIRE(model->Reserve(kPositions).ok());
  std::vector<State> states = {start};
  Answers first(1);
  const mcts::RootRow at_root = {0, 0};
  REQUIRE(model->Start({&at_root, 1}, first.out()).ok());
  REQUIRE(first.terminal[0] == 0);
  Rng rng(3);
  for (int slot = 1; slot < kPositions; ++slot) {
    int parent = 0;
    do parent = static_cast<int>(rng.Below(states.size()));
    while (states[parent].IsTerminal());
    State next = states[parent];
    const std::vector<Action> legal = next.LegalActions();
    const Action action = rng.Pick(legal);
    REQUIRE(next.Apply(action).ok());
    PlayForced(next);
    const mcts::StepRow row = {0, parent, static_cast<int32_t>(action), slot};
    Answers answers(1);
    REQUIRE(model->Step({&row, 1}, answers.out()).ok());
    REQUIRE(answers.rewards[0] == Approx(task.Lead(next) - task.Lead(states[parent])).margin(1e-3));
    REQUIRE((answers.terminal[0] != 0) == next.IsTerminal());
    for (int a = 0; a < kActions; ++a) REQUIRE(answers.legal[a] == (next.legal_mask() >> a & 1));
    states.push_back(next);
  }
  REQUIRE(network.rows == model->evaluations());
}

TEST_CASE("with learned dynamics only the root knows what is legal") {
  Config config = TinyConfig();
  config.search_model = "learned";
  const Task task = TaskFor(TinyProblem(5, 14), config);
  EvenNetwork network(task);
  const auto model = MakeSearchModel(config, network);
  State start = task.game().InitialState();
  PlayForced(start);
  const Root root = {&task, &start};
  model->SetRoots({&root, 1});
  REQUIRE(model->Reserve(4).ok());
  Answers first(1), second(1);
  const mcts::RootRow at_root = {0, 0};
  REQUIRE(model->Start({&at_root, 1}, first.out()).ok());
  for (int a = 0; a < kActions; ++a) REQUIRE(first.legal[a] == (start.legal_mask() >> a & 1));
  const mcts::StepRow row = {0, 0, 1, 1};
  REQUIRE(model->Step({&row, 1}, second.out()).ok());
  REQUIRE(second.rewards[0] == 0.5F);
  REQUIRE(second.legal == std::vector<uint8_t>(kActions, 1));
  REQUIRE(second.terminal[0] == 0);
}

TEST_CASE("demonstrations are whole games of the problem, one of each player") {
  const Config config = TinyConfig();
  const TrainingProblem problem = TinyProblem(5, 14);
  const auto game = GameFor(problem, config);
  const auto few = *Demonstrate({game}, 0, 1, nullptr);
  const auto more = *Demonstrate({game}, 500, 1, nullptr);
  REQUIRE(few.size() == 3);
  REQUIRE(more.size() == 5);
  REQUIRE(few[1].result.found_by == "rent");
  for (const Demonstration& demonstration : more) {
    State state = game->InitialState();
    for (const uint8_t action : demonstration.actions)
      REQUIRE(state.Apply(static_cast<Action>(action)).ok());
    REQUIRE(state.IsTerminal());
    REQUIRE(state.latency_ps() == demonstration.latency_ps);
  }
  REQUIRE(more[4].latency_ps <= more[1].latency_ps);  // annealing begins with rent's game
}

TEST_CASE("variations of a bad game find a better one, whole and as good as it says") {
  const Config config = TinyConfig();
  const TrainingProblem problem = TinyProblem(5, 14);
  const Task task = TaskFor(problem, config);
  EvenNetwork network(task);
  Rng rng(2);
  PlayedGame start = GameOf(task, 0, testing::PlayAtRandom(task.game(), rng), 0, true);
  for (int i = 0; i < 20; ++i) {
    const PlayedGame other = GameOf(task, 0, testing::PlayAtRandom(task.game(), rng), 0, true);
    if (other.latency_ps > start.latency_ps) start = other;
  }
  const auto varied = VaryGame(task, start, 5000, network, rng);
  REQUIRE(varied.ok());
  REQUIRE(varied->games > 10);
  REQUIRE(varied->better.has_value());
  REQUIRE(varied->better->latency_ps < start.latency_ps);
  State end = task.game().InitialState();
  for (const uint8_t action : varied->better->actions)
    REQUIRE(end.Apply(static_cast<Action>(action)).ok());
  REQUIRE(end.IsTerminal());
  REQUIRE(end.latency_ps() == varied->better->latency_ps);
  for (const Step& step : varied->better->steps) REQUIRE(step.has_policy == 1);
}

}  // namespace
}  // namespace mallocgame::muzero
