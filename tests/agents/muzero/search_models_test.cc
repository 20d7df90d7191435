// What self-play stands on: the models that the search asks, demonstrations, and variations of a
// game.
#include "agents/muzero/search_models.h"

#include <algorithm>
#include <limits>
#include <set>
#include <vector>

#include "agents/muzero/demonstrations.h"
#include "agents/muzero/self_play.h"
#include "agents/muzero/variation.h"
#include "mallocgame/game/priority/priority_game.h"
#include "mallocgame/search/game_variants.h"
#include "mallocgame/search/starts.h"
#include "tests/agents/muzero/training_problem.h"
#include "tests/catch.h"

namespace mallocgame::muzero {
namespace {

// Says the same of every position: even logits and a value of 0. Counts what it is asked.
class EvenNetwork final : public Network {
 public:
  explicit EvenNetwork(const Task& task)
      : size_(task.observation_size()), actions_(task.game().num_actions()) {}
  int num_actions() const override { return actions_; }
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
                    absl::Span<float>, absl::Span<float>, absl::Span<float>) override {
    return absl::OkStatus();
  }
  int64_t rows = 0;

 private:
  int size_, actions_;
};

// Room for what a model says of `rows` positions.
struct Answers {
  Answers(size_t rows, size_t actions)
      : logits(rows * actions), values(rows), rewards(rows), discounts(rows, 1),
        legal(rows * actions, 1), terminal(rows) {}
  mcts::Predictions out() {
    return {absl::MakeSpan(logits),    absl::MakeSpan(values), absl::MakeSpan(rewards),
            absl::MakeSpan(discounts), absl::MakeSpan(legal),  absl::MakeSpan(terminal)};
  }
  std::vector<float> logits, values, rewards, discounts;
  std::vector<uint8_t> legal, terminal;
};

TEST_CASE("with the true rules rewards are leads gained, from any position to any other") {
  Config config = TinyConfig(GENERATE(as<std::string>{}, "time", "priority", "schedule"));
  config.rollout_share = GENERATE(0.5, 1.0);
  config.simulations = 100;  // so that a search goes further than one step
  const Task task = TaskFor(TinyProblem(5, 14), config);
  const int actions = task.game().num_actions();
  EvenNetwork network(task);
  const auto model = MakeSearchModel(config, network);
  std::vector<std::unique_ptr<Position>> positions;
  positions.push_back(task.game().NewInitialPosition());
  PlayForced(*positions[0]);
  REQUIRE(!positions[0]->IsTerminal());
  const Root root = {&task, positions[0].get(), task.baseline()};
  model->SetRoots({&root, 1});
  constexpr int kPositions = 60;
  REQUIRE(model->Reserve(kPositions).ok());
  Answers first(1, actions);
  const mcts::RootRow at_root = {0, 0};
  REQUIRE(model->Start({&at_root, 1}, first.out()).ok());
  REQUIRE(first.terminal[0] == 0);
  int64_t fastest_ps = task.baseline_ps();
  // What the rollout from a position gains, where the network says 0.
  const auto rollout = [&](const Position& position) {
    const auto end = FollowGame(task.game(), position.actions(), task.baseline());
    fastest_ps = std::min(fastest_ps, end->latency_ps());
    return config.rollout_share * (task.Lead(*end) - task.Lead(position));
  };
  REQUIRE(first.values[0] == Approx(rollout(*positions[0])).margin(1e-3));
  REQUIRE(model->fastest(0) == absl::MakeConstSpan(task.baseline()));
  Rng rng(3);
  for (int slot = 1; slot < kPositions; ++slot) {
    int parent = 0;
    do parent = static_cast<int>(rng.Below(positions.size()));
    while (positions[parent]->IsTerminal());
    std::unique_ptr<Position> next = positions[parent]->Clone();
    int action = 0;
    do action = static_cast<int>(rng.Below(actions));
    while (!next->legal_actions().Has(action));
    REQUIRE(next->Apply(action).ok());
    PlayForced(*next);
    const mcts::StepRow row = {0, parent, action, slot};
    Answers answers(1, actions);
    REQUIRE(model->Step({&row, 1}, answers.out()).ok());
    REQUIRE(answers.rewards[0] ==
            Approx(task.Lead(*next) - task.Lead(*positions[parent])).margin(1e-3));
    REQUIRE((answers.terminal[0] != 0) == next->IsTerminal());
    if (!next->IsTerminal()) REQUIRE(answers.values[0] == Approx(rollout(*next)).margin(1e-3));
    for (int a = 0; a < actions; ++a)
      REQUIRE(answers.legal[a] == (next->legal_actions().Has(a) ? 1 : 0));
    positions.push_back(std::move(next));
  }
  REQUIRE(network.rows == model->evaluations());
  const auto fastest = PositionAfter(task.game(), model->fastest(0));
  REQUIRE(fastest->IsTerminal());
  REQUIRE(fastest->latency_ps() == fastest_ps);
}

TEST_CASE("a search asks the network where something that it says counts") {
  Config config = TinyConfig("priority");
  config.prior = GENERATE(as<std::string>{}, "network", "uniform");
  config.rollout_share = GENERATE(0.5, 1.0);
  config.simulations = 4;
  const Task task = TaskFor(TinyProblem(5, 14), config);
  const std::unique_ptr<Position> position = task.game().NewInitialPosition();
  PlayForced(*position);
  REQUIRE(position->legal_actions().size() >= 4);
  EvenNetwork network(task);
  const auto model = MakeSearchModel(config, network);
  const Root root = {&task, position.get(), task.baseline()};
  model->SetRoots({&root, 1});
  const auto search = *MakeSearch(config, 1, task.game().num_actions(), false);
  REQUIRE(search->Run(*model, 7).ok());
  if (config.rollout_share < 1)
    REQUIRE(network.rows > 1);
  else if (config.prior == "uniform")
    REQUIRE(network.rows == 0);
  else
    REQUIRE(network.rows == 1);
  REQUIRE(search->depth(0).mean >= 1);
  if (config.rollout_share < 1) return;
  int tried = 0;
  for (int a = 0; a < task.game().num_actions(); ++a) {
    if (search->visits(0)[a] == 0) continue;
    ++tried;
    const std::unique_ptr<Position> next = position->Clone();
    REQUIRE(next->Apply(a).ok());
    const auto end = FollowGame(task.game(), next->actions(), task.baseline());
    REQUIRE(search->q(0)[a] == Approx(task.Lead(*end) - task.Lead(*position)).margin(1e-3));
  }
  REQUIRE(tried == config.simulations);
}

TEST_CASE("in play the policy says what is tried, and without it that is drawn") {
  Config config = TinyConfig("priority");
  config.prior = GENERATE(as<std::string>{}, "network", "uniform");
  config.simulations = 4;
  const Task task = TaskFor(TinyProblem(5, 14), config);
  const int actions = task.game().num_actions();
  const std::unique_ptr<Position> position = task.game().NewInitialPosition();
  PlayForced(*position);
  REQUIRE(position->legal_actions().size() > 4);
  EvenNetwork network(task);
  const auto model = MakeSearchModel(config, network);
  const Root root = {&task, position.get(), task.baseline()};
  const auto search = *MakeSearch(config, 1, actions, false);
  std::set<std::vector<int32_t>> tried;
  for (int seed = 0; seed < 10; ++seed) {
    model->SetRoots({&root, 1});
    REQUIRE(search->Run(*model, seed).ok());
    tried.emplace(search->visits(0).begin(), search->visits(0).end());
  }
  REQUIRE((tried.size() > 1) == (config.prior == "uniform"));
}

TEST_CASE("demonstrations are whole games of the problem, one of each player") {
  const std::string kind = GENERATE(as<std::string>{}, "time", "priority", "schedule");
  const Config config = TinyConfig(kind);
  const TrainingProblem problem = TinyProblem(5, 14);
  const auto game = GameFor(problem, config);
  const auto few = *Demonstrate(*game, *AskDemonstrators({game}, config, 0, 1, nullptr));
  const auto more = *Demonstrate(*game, *AskDemonstrators({game}, config, 500, 1, nullptr));
  REQUIRE(few.size() == 4);
  REQUIRE(more.size() == 5);
  REQUIRE(few[1].result.found_by == "rent");
  REQUIRE(few[2].result.found_by == "styles");
  for (const Demonstration& demonstration : more) {
    const auto end = PositionAfter(*game, demonstration.actions);
    REQUIRE(end->IsTerminal());
    REQUIRE(end->latency_ps() == demonstration.latency_ps);
  }
  REQUIRE(more[4].result.found_by == "anneal");
}

TEST_CASE(
    "of the priority games the most promising is chosen, and its plays are its demonstrations") {
  const Config config = TinyConfig("priority");
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const auto game = GameFor(TinyProblem(seed, 14), config);
    auto results = *AskDemonstrators({game}, config, 500, 1, nullptr);
    const size_t asked = results.size();
    REQUIRE(AddPriorityStarts(*game, Deadline(), results).ok());
    REQUIRE(results.size() > asked);
    const auto chosen = MostPromising(game, results);
    REQUIRE(chosen->options().game() == std::string("priority"));
    REQUIRE(chosen->options().min_buffer_bytes == game->options().min_buffer_bytes);
    REQUIRE(chosen->num_actions() == game->num_actions());
    int64_t fastest = std::numeric_limits<int64_t>::max();
    for (const SolveResult& result : results) {
      const std::optional<Play>& play = result.play;
      if (play &&
          (play->game == nullptr || play->game->options().game() == std::string("priority")))
        fastest = std::min(fastest, result.report.latency_ps);
    }
    // The fastest was played in the chosen game, so it is demonstrated as it was played.
    const auto demonstrations = *Demonstrate(*chosen, std::move(results));
    int64_t demonstrated = std::numeric_limits<int64_t>::max();
    for (const Demonstration& demonstration : demonstrations) {
      REQUIRE(PositionAfter(*chosen, demonstration.actions)->IsTerminal());
      demonstrated = std::min(demonstrated, demonstration.latency_ps);
    }
    REQUIRE(demonstrated <= fastest);
  }
  // A time game is itself.
  const auto time_game = GameFor(TinyProblem(5), TinyConfig());
  auto results = *AskDemonstrators({time_game}, TinyConfig(), 0, 1, nullptr);
  const size_t asked = results.size();
  REQUIRE(AddPriorityStarts(*time_game, Deadline(), results).ok());
  REQUIRE(results.size() == asked);
  REQUIRE(MostPromising(time_game, results) == time_game);
}

TEST_CASE(
    "the best game that follows that of styles is among the results, in whichever game that is") {
  int in_its_own = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const auto game = GameFor(TinyProblem(seed, 14), TinyConfig("priority"));
    auto results = *AskDemonstrators({game}, TinyConfig("priority"), 0, 1, nullptr);
    const auto styled = std::find_if(results.begin(), results.end(), [](const SolveResult& found) {
      return found.found_by == "styles";
    });
    REQUIRE(styled != results.end());
    const FoundPlan followed = {.plan = styled->plan, .decided = styled->play->decided};
    const auto starts = PriorityStarts(*PriorityGame::From(*game), &followed, Deadline());
    const auto best = std::find_if(starts.begin(), starts.end(),
                                   [](const GameStart& start) { return start.follows; });
    REQUIRE(AddPriorityStarts(*game, Deadline(), results).ok());
    const auto added = std::count_if(results.begin(), results.end(), [&](const SolveResult& found) {
      return found.found_by == "styles" && found.play && found.play->game != nullptr &&
             found.play->game->options() == best->game->options() &&
             found.report.latency_ps == best->latency_ps;
    });
    REQUIRE(added == 1);
    in_its_own += best->game->options() == game->options() ? 1 : 0;
  }
  CHECK(in_its_own > 5);
}

TEST_CASE("a priority game of other options is followed run by run, in its order") {
  Rng rng(7);
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const auto game = GameFor(TinyProblem(seed, 14), TinyConfig("priority"));
    const std::shared_ptr<const Game> other = GameShowing(*game, 1);
    const auto end = RandomGame(*other, rng);
    SolveResult result = *JudgePlan(*other, end->ToPlan());
    result.play = Play{{end->actions().begin(), end->actions().end()}, other, {}, {}};
    // The game shows what the other one took, and three runs besides.
    const auto played = *Demonstrate(*game, {result});
    REQUIRE(played[0].latency_ps == end->latency_ps());
    REQUIRE(PositionAfter(*game, played[0].actions)->ToPlan() == result.plan);
  }
}

TEST_CASE("variations of a bad game find a better one, whole and as good as it says") {
  const Config config = TinyConfig(GENERATE(as<std::string>{}, "priority", "schedule"));
  const TrainingProblem problem = TinyProblem(5, 14);
  const Task task = TaskFor(problem, config);
  EvenNetwork network(task);
  Rng rng(2);
  PlayedGame bad = GameOf(task, 0, *RandomGame(task.game(), rng), 0, true);
  for (int i = 0; i < 20; ++i) {
    PlayedGame other = GameOf(task, 0, *RandomGame(task.game(), rng), 0, true);
    if (other.latency_ps > bad.latency_ps) bad = std::move(other);
  }
  Start start = {7, 0, bad.actions, {}};
  for (const Step& step : bad.steps) start.decisions.push_back(step.decision);
  const bool anywhere = GENERATE(false, true);
  Harvest harvest;
  REQUIRE(VaryGame(task, start, 2000 * task.game().options().decision_cost(),
                   anywhere ? nullptr : &network, rng, harvest)
              .ok());
  REQUIRE(harvest.varied > 10);
  REQUIRE(harvest.variations.size() == 1);
  const PlayedGame& better = harvest.variations[0];
  REQUIRE(better.latency_ps < bad.latency_ps);
  const auto end = PositionAfter(task.game(), better.actions);
  REQUIRE(end->IsTerminal());
  REQUIRE(end->latency_ps() == better.latency_ps);
  for (const Step& step : better.steps) REQUIRE(step.policy.empty() != better.MayBeImitated());
  // What was tried teaches a policy of legal actions, in which what was played has a share.
  REQUIRE(harvest.revisions.size() > 1);
  for (const auto& [id, policy, value] : harvest.revisions) {
    REQUIRE(id.game == start.id);
    REQUIRE_FALSE(value.has_value());
    const int32_t decision = start.decisions[id.step];
    const auto position =
        PositionAfter(task.game(), absl::MakeConstSpan(start.actions).subspan(0, decision));
    double sum = 0;
    for (size_t a = 0; a < policy.size(); ++a) {
      if (policy[a] > 0) REQUIRE(position->legal_actions().Has(static_cast<int>(a)));
      sum += policy[a];
    }
    REQUIRE(sum == Approx(1));
    REQUIRE(policy[start.actions[decision]] > 0);
  }
}

}  // namespace
}  // namespace mallocgame::muzero
