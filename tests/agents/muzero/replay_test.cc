// The replay: targets worked out by hand, which games are kept, and how often each is drawn.
#include "agents/muzero/replay.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "mallocgame/game/priority/priority_state.h"
#include "tests/agents/muzero/training_problem.h"
#include "tests/catch.h"

namespace mallocgame::muzero {
namespace {

// A game with the leads 0, 2, -1, 3 before its four steps and 5 at the end. Steps 1 and 3 were
// searched.
PlayedGame ByHand() {
  PlayedGame game;
  game.actions = {0, 1, 2, 1};
  const float leads[] = {0, 2, -1, 3}, values[] = {0, 4, 0, 1.5F};
  for (int i = 0; i < 4; ++i) {
    Step step;
    step.decision = i;
    step.lead = leads[i];
    step.value = values[i];
    step.searched = i == 1 || i == 3;
    game.steps.push_back(step);
  }
  game.final_lead = 5;
  return game;
}

TEST_CASE("value targets as worked out by hand") {
  PlayedGame game = ByHand();
  const auto check = [&game](size_t step, int n_step, float value, bool own) {
    const auto [found, is_own] = ValueTargetOf(game, step, n_step);
    REQUIRE(found == value);
    REQUIRE(is_own == own);
  };
  // The gain of one step, then what the search at step 1 expects.
  check(0, 1, 2 - 0 + 4.0F, true);
  // Step 2 was not searched, so the last before it counts.
  check(0, 2, 2 - 0 + 4.0F, true);
  check(0, 3, 3 - 0 + 1.5F, true);
  check(2, 1, 3 - -1 + 1.5F, true);
  // Beyond the end; but step 2 was not the agent's, so the search at step 3 counts.
  check(2, 2, 3 - -1 + 1.5F, true);
  check(3, 100, 5 - 3.0F, true);
  // Others have played on from there.
  game.to_end = 0;
  check(3, 100, 5 - 3.0F, false);
  for (Step& step : game.steps) step.searched = 0;
  game.to_end = 1;
  check(1, 100, 5 - 2.0F, false);
}

TEST_CASE("the agent sees what the baseline does, and that it is not ahead of itself") {
  for (const char* kind : kGames) {
    INFO(kind);
    const Task task = TaskFor(TinyProblem(5, 14), TinyConfig(kind));
    const auto actions = static_cast<size_t>(task.game().num_actions());
    std::vector<float> seen(task.observation_size());
    const auto position = task.game().NewInitialPosition();
    for (const uint8_t action : task.baseline()) {
      task.Observe(*position, seen.data());
      const float* baseline =
          seen.data() + seen.size() - kLeadFeatures - actions * Baseline::kFeatures;
      for (size_t a = 0; a < actions; ++a)
        REQUIRE(baseline[a * Baseline::kFeatures + 1] == static_cast<float>(a == action));
      REQUIRE(baseline[action * Baseline::kFeatures] == 1);
      REQUIRE(position->Apply(action).ok());
    }
    // Elsewhere it sees by how much the baseline is ahead.
    Rng rng(1);
    const auto end = RandomGame(task.game(), rng);
    task.Observe(*end, seen.data());
    const double lead = task.Lead(*end);
    REQUIRE(lead < 0);
    REQUIRE(seen[seen.size() - 2] == Approx(lead / (1 - lead)));
    REQUIRE(seen.back() == Approx(-(std::sqrt(1 - lead) - 1) / 32));
  }
}

TEST_CASE("leads telescope to how much better the end is than the baseline's") {
  for (const char* game : kGames) {
    INFO(game);
    const Config config = TinyConfig(game);
    Rng rng(3);
    for (uint64_t seed = 0; seed < 20; ++seed) {
      const Task task = TaskFor(TinyProblem(seed), config);
      const auto end = RandomGame(task.game(), rng);
      const double expected = 1e3 * static_cast<double>(task.baseline_ps() - end->latency_ps()) /
                              static_cast<double>(task.baseline_ps());
      REQUIRE(task.Lead(*end) == Approx(expected).margin(1e-6));
      REQUIRE(task.Lead(*end) == Approx(expected).margin(1e-6));
      // The baseline is never ahead of itself.
      const auto position = task.game().NewInitialPosition();
      for (const uint8_t action : task.baseline()) {
        REQUIRE(task.Lead(*position) == 0);
        REQUIRE(position->Apply(action).ok());
      }
      REQUIRE(task.Lead(*position) == 0);
    }
  }
}

TEST_CASE(
    "in the priority game a lead counts what the same accesses save, in any order of decisions") {
  const Config config = TinyConfig("priority");
  const Task task = TaskFor(TinyProblem(5, 14), config);
  // Whoever takes the baseline's second run first, and serves it alike, has no lead.
  const auto position = task.game().NewInitialPosition();
  const auto& state = static_cast<const PriorityState&>(*position);
  REQUIRE(task.baseline().size() > 2);
  const int32_t second = state.candidates()[1];
  const auto start = task.game().NewInitialPosition();
  auto& baseline = static_cast<PriorityState&>(*start);
  for (const uint8_t action : task.baseline()) REQUIRE(baseline.TryApply(action));
  for (const PriorityState::Decided& decided : baseline.decided()) {
    if (decided.run != second) continue;
    const int64_t before = position->latency_ps();
    REQUIRE(position->Apply(PriorityAction(1, decided.mode)).ok());
    const double saved = static_cast<double>(before - position->latency_ps());
    const auto next = static_cast<size_t>(&decided - baseline.decided().data()) + 1;
    REQUIRE(next < baseline.decided().size());
    const auto its = static_cast<double>(decided.latency_ps - baseline.decided()[next].latency_ps);
    REQUIRE(task.Lead(*position) == Approx((saved - its) / task.unit_ps()).margin(1e-6));
  }
}

TEST_CASE("a followed game begins as told and then does as the one it follows") {
  Rng rng(4);
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const Task task = TaskFor(TinyProblem(seed), TinyConfig(kGames[seed % 2]));
    const auto other = RandomGame(task.game(), rng);
    const auto actions = other->actions();
    const auto same = FollowGame(task.game(), {}, actions);
    REQUIRE(same->actions() == actions);
    const auto prefix = actions.subspan(0, actions.size() / 2);
    const auto mixed = FollowGame(task.game(), prefix, task.baseline());
    REQUIRE(mixed->IsTerminal());
    REQUIRE(mixed->actions().subspan(0, prefix.size()) == prefix);
  }
}

TEST_CASE("steps are drawn in proportion to their priorities") {
  Config config = TinyConfig();
  Replay replay(config, 1);
  PlayedGame game = ByHand();
  const float priorities[] = {1, 2, 4, 0.5F};
  for (size_t i = 0; i < 4; ++i) game.steps[i].priority = priorities[i];
  replay.Add(game);
  for (Step& step : game.steps) step.priority = 3;
  replay.Add(game);
  Rng rng(1);
  std::map<std::pair<int, int>, int> counts;
  constexpr int kDraws = 40000;
  std::vector<float> importance_of(8);
  for (int i = 0; i < 10; ++i) {
    const Replay::Sample sample = replay.Draw(1, kDraws / 10, rng)[0];
    REQUIRE(*std::max_element(sample.importance.begin(), sample.importance.end()) == 1);
    for (size_t row = 0; row < sample.steps.size(); ++row) {
      const auto& [id, step] = sample.steps[row];
      ++counts[{static_cast<int>(id), step}];
      if (id == 0) importance_of[step] = sample.importance[row];
    }
  }
  const double sum = 7.5 + 12;
  for (int i = 0; i < 4; ++i) {
    REQUIRE(counts[std::make_pair(0, i)] == Approx(kDraws * priorities[i] / sum).epsilon(0.12));
    REQUIRE(counts[std::make_pair(1, i)] == Approx(kDraws * 3 / sum).epsilon(0.12));
  }
  // The rarest position weighs most, and the exponent spreads the weights.
  REQUIRE(importance_of[3] == 1);
  REQUIRE(importance_of[2] == Approx(std::pow(0.5 / 4, kImportanceExponent)));
  // Every error counts a little, and a greater error counts more.
  REQUIRE(PriorityOf(0) > 0);
  REQUIRE(PriorityOf(-3) == PriorityOf(3));
  REQUIRE(PriorityOf(3) > PriorityOf(1));
}

TEST_CASE("the replay forgets the oldest games and keeps the best, all different") {
  Config config = TinyConfig();
  config.capacity = 100;
  Replay replay(config, 1);
  for (int i = 0; i < 60; ++i) {
    PlayedGame game = ByHand();
    game.latency_ps = 1000 - i % 20;
    const std::optional<size_t> place = replay.Offer(game);
    REQUIRE(place == (i < 20 ? std::optional<size_t>(0) : std::nullopt));
    replay.Add(std::move(game));
  }
  REQUIRE(replay.recent_steps() == 100);
  REQUIRE(replay.best(0).size() == Config::kBestGames);
  for (size_t i = 0; i < Config::kBestGames; ++i)
    REQUIRE(replay.best(0)[i].latency_ps == 981 + static_cast<int64_t>(i));
}

TEST_CASE("a batch holds what was played, and nothing behind the end") {
  Config config = TinyConfig("paper");
  std::vector<Task> tasks;
  tasks.push_back(TaskFor(TinyProblem(5, 14), config));
  Rng rng(2);
  const auto end = RandomGame(tasks[0].game(), rng);
  Replay replay(config, 1);
  const PlayedGame game = GameOf(tasks[0], 0, *end, 0, true);
  REQUIRE(game.steps.size() > 2);
  replay.Add(game);
  const auto last = static_cast<int32_t>(game.steps.size()) - 1;
  const Batch batch = MakeBatch(config, tasks, replay, {{{0, 0}, {0, last}}, {1, 1}});
  const size_t size = tasks[0].observation_size();
  REQUIRE(batch.rows == 2);
  REQUIRE(batch.observations.size() == 2 * size);
  constexpr size_t kUnroll = Config::kUnroll;
  double sum = 0;
  for (size_t k = 0; k <= kUnroll; ++k) {
    if (k >= game.steps.size()) continue;
    REQUIRE(batch.values[k] == game.final_lead - game.steps[k].lead);
    REQUIRE(batch.value_weights[k] == Approx(kOthersValueWeight));
    if (k < kUnroll) sum += batch.rewards[k];
  }
  for (const size_t row : {0, 1}) {
    // The observation is that of the position itself.
    const Step& step = row == 0 ? game.steps.front() : game.steps.back();
    const auto position =
        PositionAfter(tasks[0].game(), absl::MakeConstSpan(game.actions).subspan(0, step.decision));
    std::vector<float> expected(size);
    tasks[0].Observe(*position, expected.data());
    REQUIRE(std::equal(expected.begin(), expected.end(),
                       batch.observations.begin() + static_cast<ptrdiff_t>(row * size)));
  }
  if (game.steps.size() > kUnroll)
    REQUIRE(sum == Approx(game.steps[kUnroll].lead - game.steps[0].lead).margin(1e-3));
  // The second row is at the last decision, so one reward follows and then nothing.
  REQUIRE(batch.rewards[kUnroll] == Approx(game.final_lead - game.steps.back().lead));
  REQUIRE(batch.rewards[kUnroll + 1] == 0);
  REQUIRE(batch.values[kUnroll + 2] == 0);
  REQUIRE(batch.value_weights[kUnroll + 2] == 1);
  REQUIRE(batch.policy_weights[kUnroll + 2] == 0);
}

TEST_CASE("what was played is imitated unless it is slower than the baseline") {
  const Config config = TinyConfig("priority");
  const Task task = TaskFor(TinyProblem(5, 14), config);
  int imitated = 0, games = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Rng rng(seed);
    const auto end = RandomGame(task.game(), rng);
    const PlayedGame game = GameOf(task, 0, *end, 0, true);
    if (game.steps.empty()) continue;
    ++games;
    REQUIRE(game.MayBeImitated() == (game.latency_ps <= task.baseline_ps()));
    for (const Step& step : game.steps) REQUIRE(step.policy.empty() != game.MayBeImitated());
    imitated += game.MayBeImitated() ? 1 : 0;
  }
  REQUIRE(imitated < games);
  const PlayedGame baseline =
      GameOf(task, 0, *PositionAfter(task.game(), task.baseline()), 0, true);
  for (const Step& step : baseline.steps)
    REQUIRE(step.policy[baseline.actions[step.decision]] == 1);
}

TEST_CASE("nothing is learned of what follows the agent's own part of a game") {
  Config config = TinyConfig("paper");
  std::vector<Task> tasks;
  tasks.push_back(TaskFor(TinyProblem(5, 14), config));
  Rng rng(2);
  PlayedGame game = GameOf(tasks[0], 0, *RandomGame(tasks[0].game(), rng), 0, true);
  game.steps.resize(2);
  game.to_end = 0;
  Replay replay(config, 1);
  replay.Add(game);
  const Batch batch = MakeBatch(config, tasks, replay, {{{0, 0}}, {1}});
  REQUIRE(batch.reward_weights == std::vector<float>{1, 0, 0, 0, 0});
  for (size_t k = 2; k <= Config::kUnroll; ++k) REQUIRE(batch.value_weights[k] == 0);
}

}  // namespace
}  // namespace mallocgame::muzero
