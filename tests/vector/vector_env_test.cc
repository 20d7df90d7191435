// VectorEnv is compared with environments that are stepped one by one, with and without threads;
// and what it refuses. tests/python/vector_env_test.py compares it with Gymnasium's own
// SyncVectorEnv.
#include "mallocgame/vector/vector_env.h"

#include "mallocgame/base/rng.h"
#include "tests/catch.h"
#include "tests/support/dependences.h"
#include "tests/support/forked.h"
#include "tests/support/play.h"
#include "tests/support/programs.h"

namespace mallocgame {
namespace {

using testing::ProgramBuilder;
using testing::RandomProgram;
using testing::TestHardware;

std::shared_ptr<const Game> MakeGame(std::shared_ptr<const Program> program, bool paper = false,
                                     const std::string& kind = "time") {
  const auto options = testing::OptionsOf(kind, {{"paper_actions", paper}});
  auto game = Game::Create(std::move(program), TestHardware(24), *options);
  REQUIRE(game.ok());
  return *game;
}

std::shared_ptr<const GameList> RandomGames(Rng& rng, size_t count,
                                            const std::string& kind = "time") {
  std::vector<std::shared_ptr<const Game>> games;
  while (games.size() < count) {
    auto game = MakeGame(testing::WithDependences(*RandomProgram(rng)), /*paper=*/false, kind);
    if (!game->NewInitialPosition()->IsTerminal()) games.push_back(std::move(game));
  }
  auto list = GameList::Create(games, ObservationOptions{});
  REQUIRE(list.ok());
  return *list;
}

struct Rows {
  Rows(const GameList& games, int count)
      : observations(count * games.observation_size()), final_observations(observations.size()),
        masks(count * games.num_actions()), final_masks(masks.size()), rewards(count),
        terminated(new bool[count]()), latency_ps(count) {}
  StepBuffers Buffers() {
    return {observations.data(), masks.data(),      rewards.data(),
            terminated.get(),    latency_ps.data(), final_observations.data(),
            final_masks.data()};
  }
  std::vector<float> observations, final_observations;
  std::vector<int8_t> masks, final_masks;
  std::vector<double> rewards;
  std::unique_ptr<bool[]> terminated;
  std::vector<int64_t> latency_ps;
};

int64_t RandomLegal(const Position& position, Rng& rng) {
  return position.IsTerminal() ? 0 : testing::RandomAction(position, rng);
}

TEST_CASE("a batch does what its environments do one by one, with any number of threads") {
  Rng rng(3);
  for (const std::string kind : {"time", "priority", "schedule"}) {
    for (const auto& [threads, autoreset] :
         {std::pair(1, Autoreset::kNextStep), std::pair(1, Autoreset::kSameStep),
          std::pair(3, Autoreset::kNextStep), std::pair(3, Autoreset::kSameStep)}) {
      const auto games = RandomGames(rng, 4, kind);
      const int count = 40;
      auto batch = VectorEnv::Create(games, count, {autoreset, GameOrder::kDrawn, threads});
      REQUIRE(batch.ok());
      REQUIRE((*batch)->threads() == threads);
      std::vector<Environment> single;
      for (int i = 0; i < count; ++i) single.emplace_back(games);
      Rows rows(*games, count), expected(*games, count);
      std::vector<std::optional<uint64_t>> seeds;
      for (int i = 0; i < count; ++i) {
        seeds.emplace_back(100 + i);
        single[i].Reset(100 + i);
      }
      REQUIRE((*batch)->Reset(seeds, {}, rows.Buffers()).ok());
      int ends = 0;
      for (int step = 0; step < 60; ++step) {
        std::vector<int64_t> actions;
        for (const Environment& e : single) actions.push_back(RandomLegal(e.position(), rng));
        REQUIRE((*batch)->Step(actions, rows.Buffers()).ok());
        for (int i = 0; i < count; ++i) {
          const size_t at = i;
          Environment& e = single[at];
          double reward = 0;
          if (e.position().IsTerminal()) {
            e.Reset();
          } else {
            const auto saved = e.Step(static_cast<int>(actions[at]));
            REQUIRE(saved.ok());
            const int64_t all_main_ps = e.position().game().all_main_ps();
            reward = all_main_ps == 0
                         ? 0.0
                         : static_cast<double>(*saved) / static_cast<double>(all_main_ps);
          }
          REQUIRE(rows.terminated[at] == e.position().IsTerminal());
          REQUIRE(rows.rewards[at] == reward);
          REQUIRE(rows.latency_ps[at] == e.position().latency_ps());
          ends += rows.terminated[at];
          if (rows.terminated[at] && autoreset == Autoreset::kSameStep) e.Reset();
          e.Observe(expected.observations.data() + i * games->observation_size());
          int8_t* const mask = expected.masks.data() + i * games->num_actions();
          e.WriteMask(mask);
          // What ends says what to do next: anything.
          if (rows.terminated[at] && autoreset == Autoreset::kNextStep) mask[0] = 1;
        }
        REQUIRE(rows.observations == expected.observations);
        REQUIRE(rows.masks == expected.masks);
      }
      REQUIRE(ends > 0);
    }
  }
}

TEST_CASE("a step that is refused changes no environment") {
  Rng rng(4);
  const auto games = RandomGames(rng, 2);
  auto batch = VectorEnv::Create(games, 9, {Autoreset::kDisabled, GameOrder::kFixed, 2});
  REQUIRE(batch.ok());
  Rows rows(*games, 9);
  REQUIRE((*batch)->Reset({}, {}, rows.Buffers()).ok());
  std::vector<int64_t> actions(9, 0);
  for (int64_t wrong : {int64_t{-1}, int64_t{4}, int64_t{1} << 40}) {
    actions[6] = wrong;
    const absl::Status status = (*batch)->Step(actions, rows.Buffers());
    REQUIRE(status.code() == absl::StatusCode::kInvalidArgument);
    REQUIRE(std::string(status.message()).rfind("environment 6: ", 0) == 0);
    for (int i = 0; i < 9; ++i) REQUIRE((*batch)->environment(i).position().num_decisions() == 0);
  }
  actions[6] = 0;
  while (!(*batch)->ended(0)) REQUIRE((*batch)->Step(actions, rows.Buffers()).ok());
  const absl::Status status = (*batch)->Step(actions, rows.Buffers());
  REQUIRE(status.code() == absl::StatusCode::kFailedPrecondition);
  const bool which[9] = {true, true, true, true, true, true, true, true, true};
  REQUIRE((*batch)->Reset({}, which, rows.Buffers()).ok());
  REQUIRE((*batch)->Step(actions, rows.Buffers()).ok());
  REQUIRE((*batch)->Step({}, rows.Buffers()).code() == absl::StatusCode::kInvalidArgument);
  REQUIRE((*batch)->Reset({}, absl::MakeConstSpan(which, 3), rows.Buffers()).code() ==
          absl::StatusCode::kInvalidArgument);
}

TEST_CASE("a batch goes on from the points of another") {
  Rng rng(5);
  const auto games = RandomGames(rng, 3);
  auto first = VectorEnv::Create(games, 5, {}), second = VectorEnv::Create(games, 5, {});
  REQUIRE((first.ok() && second.ok()));
  Rows rows(*games, 5), others(*games, 5);
  REQUIRE((*first)->Reset({}, {}, rows.Buffers()).ok());
  std::vector<int64_t> actions(5);
  const auto step = [&] {
    for (int i = 0; i < 5; ++i) actions[i] = RandomLegal((*first)->environment(i).position(), rng);
    REQUIRE((*first)->Step(actions, rows.Buffers()).ok());
  };
  for (int i = 0; i < 12; ++i) step();
  std::vector<EnvironmentPoint> points;
  for (int i = 0; i < 5; ++i) points.push_back((*first)->environment(i).point());
  REQUIRE((*second)->Resume(points, others.Buffers()).ok());
  CHECK(others.observations == rows.observations);
  CHECK(others.masks == rows.masks);
  CHECK(others.latency_ps == rows.latency_ps);
  for (int i = 0; i < 200; ++i) {
    step();
    REQUIRE((*second)->Step(actions, others.Buffers()).ok());
    REQUIRE(others.observations == rows.observations);
  }
  points[3].actions.assign(1, 200);
  const absl::Status status = (*second)->Resume(points, others.Buffers());
  CHECK(std::string(status.message()).rfind("environment 3: ", 0) == 0);
  points.pop_back();
  CHECK((*second)->Resume(points, others.Buffers()).code() == absl::StatusCode::kInvalidArgument);
}

TEST_CASE("a batch that has stepped steps on in a forked child") {
  Rng rng(6);
  const auto games = RandomGames(rng, 3);
  auto batch = VectorEnv::Create(games, 40, {Autoreset::kNextStep, GameOrder::kDrawn, 3});
  REQUIRE(batch.ok());
  Rows rows(*games, 40);
  REQUIRE((*batch)->Reset({}, {}, rows.Buffers()).ok());
  std::vector<int64_t> actions(40);
  // What is observed after 20 steps; nothing if one is refused.
  const auto observed = [&](uint64_t seed) -> std::vector<float> {
    Rng choice(seed);
    for (int step = 0; step < 20; ++step) {
      for (int i = 0; i < 40; ++i)
        actions[i] = RandomLegal((*batch)->environment(i).position(), choice);
      if (!(*batch)->Step(actions, rows.Buffers()).ok()) return {};
    }
    return rows.observations;
  };
  REQUIRE(!observed(1).empty());
  std::vector<EnvironmentPoint> points;
  for (int i = 0; i < 40; ++i) points.push_back((*batch)->environment(i).point());
  const std::vector<float> next = observed(2);
  REQUIRE((*batch)->Resume(points, rows.Buffers()).ok());
  REQUIRE(HoldsInChild([&] { return observed(2) == next && (*batch)->threads() == 3; }));
  REQUIRE(HoldsInChild([&] {
    batch->reset();
    return true;
  }));
  REQUIRE(observed(2) == next);
}

TEST_CASE("what can't be a list of games is refused") {
  ProgramBuilder nothing;
  nothing.Add({.name = "a", .cycles = {10}});
  ProgramBuilder reads;
  reads.Add({.name = "use", .reads = {reads.Parameter("p", 4)}, .cycles = {10}});
  REQUIRE(!GameList::Create({}, {}).ok());
  REQUIRE(!GameList::Create({MakeGame(nothing.Build())}, {}).ok());
  REQUIRE(!GameList::Create({MakeGame(reads.Build()), MakeGame(reads.Build(), /*paper=*/true)}, {})
               .ok());
  auto list = GameList::Create({MakeGame(reads.Build())}, {});
  REQUIRE(list.ok());
  for (int count : {0, -1, 1 << 30}) REQUIRE(!VectorEnv::Create(*list, count, {}).ok());
  for (int threads : {-1, 5000})
    REQUIRE(!VectorEnv::Create(*list, 4, {Autoreset::kNextStep, GameOrder::kDrawn, threads}).ok());
}

}  // namespace
}  // namespace mallocgame
