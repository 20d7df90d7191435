// GameList and Environment: which game an episode plays, and what a caller may see of it.
#include "mallocgame/vector/environment.h"

#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "mallocgame/game/time/time_game.h"
#include "tests/catch.h"
#include "tests/support/play.h"
#include "tests/support/programs.h"

namespace mallocgame {
namespace {

using testing::ProgramBuilder;
using testing::TestHardware;

// A game of as many decisions as there are reads; of one decision or more in the priority game.
std::shared_ptr<const Game> GameWithReads(int reads, bool paper = false,
                                          const std::string& kind = "time") {
  ProgramBuilder b;
  const BufferId p = b.Constant("p", 4);
  b.Add({.name = "start", .cycles = {10}});
  for (int i = 0; i < reads; ++i)
    b.Add({.name = absl::StrCat("use", i), .reads = {p}, .cycles = {10, 3}});
  const auto options = testing::OptionsOf(kind, {{"paper_actions", paper}});
  const auto game = Game::Create(b.Build(), TestHardware(8), *options);
  REQUIRE(game.ok());
  return *game;
}

std::shared_ptr<const GameList> ThreeGames(const std::string& kind = "time") {
  std::vector<std::shared_ptr<const Game>> games;
  for (int reads = 1; reads <= 3; ++reads) games.push_back(GameWithReads(reads, false, kind));
  const auto list = GameList::Create(games, {});
  REQUIRE(list.ok());
  return *list;
}

std::vector<size_t> FirstGames(Environment& environment, int episodes) {
  std::vector<size_t> games = {environment.game_index()};
  for (int i = 1; i < episodes; ++i) {
    environment.Reset();
    games.push_back(environment.game_index());
  }
  return games;
}

TEST_CASE("episode k of seed s plays the same game everywhere") {
  Environment first(ThreeGames()), second(ThreeGames());
  const std::vector<size_t> games = FirstGames(first, 40);
  CHECK(std::set<size_t>(games.begin(), games.end()) == std::set<size_t>{0, 1, 2});
  CHECK(FirstGames(second, 40) == games);  // an environment begins as by Reset(0)
  first.Reset(0);
  CHECK(FirstGames(first, 40) == games);
  first.Reset(1);
  CHECK(FirstGames(first, 40) != games);
}

TEST_CASE("what was played does not change what is drawn next") {
  for (const std::string kind : {"time", "priority"}) {
    Environment played(ThreeGames(kind)), idle(ThreeGames(kind));
    CHECK(played.games().game_options().game() == kind);
    for (int episode = 0; episode < 10; ++episode) {
      CHECK(played.game_index() == idle.game_index());
      const int decisions = kind == "time" ? static_cast<int>(played.game_index()) + 1 : 1;
      // Action 0 is Drop, or Skip for the most important run.
      while (!played.position().IsTerminal()) REQUIRE(played.Step(0).ok());
      CHECK(played.position().num_decisions() == decisions);
      played.Reset();
      idle.Reset();
      CHECK(played.position().num_decisions() == 0);
    }
  }
}

TEST_CASE("another environment goes on from a point") {
  for (const std::string kind : {"time", "priority"}) {
    Environment first(ThreeGames(kind)), second(ThreeGames(kind));
    first.Reset(7);
    for (int i = 0; i < 5; ++i) first.Reset();
    while (first.game_index() == 0) first.Reset();
    REQUIRE(first.Step(0).ok());
    const EnvironmentPoint point = first.point();
    CHECK(point.seed == 7);
    CHECK(point.actions == std::vector<uint8_t>{0});
    REQUIRE(second.Resume(point).ok());
    CHECK(second.game_index() == first.game_index());
    CHECK(second.position().num_decisions() == 1);
    CHECK(FirstGames(second, 40) == FirstGames(first, 40));
  }
}

TEST_CASE("a point with an illegal action changes nothing") {
  Environment environment(ThreeGames(), 1);
  REQUIRE(environment.Step(0).ok());
  const EnvironmentPoint before = environment.point();
  CHECK_FALSE(environment.Resume({9, 9, {static_cast<uint8_t>(Action::kNoCopy)}}).ok());
  const EnvironmentPoint after = environment.point();
  CHECK(after.seed == before.seed);
  CHECK(after.episode == before.episode);
  CHECK(after.actions == before.actions);
}

TEST_CASE("an environment can be fixed to one game of the list") {
  Environment environment(ThreeGames(), 2);
  CHECK(FirstGames(environment, 10) == std::vector<size_t>(10, 2));
  environment.Reset(5);
  CHECK(environment.game_index() == 2);
}

TEST_CASE("the mask has a number for each action") {
  Environment environment(ThreeGames(), 0);
  std::vector<int8_t> mask(environment.games().num_actions(), -1);
  environment.WriteMask(mask.data());
  // The first read of a constant behind one instruction: Drop and Copy.
  CHECK(mask == std::vector<int8_t>{1, 1, 0, 0});
  CHECK_FALSE(environment.Step(static_cast<int>(Action::kNoCopy)).ok());
  REQUIRE(environment.Step(static_cast<int>(Action::kCopy)).ok());
  environment.WriteMask(mask.data());
  CHECK(mask == std::vector<int8_t>{0, 0, 0, 0});
}

TEST_CASE("an observation is the one of the game that is played") {
  for (const std::string kind : {"time", "priority"}) {
    const auto list = ThreeGames(kind);
    Environment environment(list);
    for (size_t game = 0; game < 3; ++game) {
      while (environment.game_index() != game) environment.Reset();
      Environment fixed(list, game);
      std::vector<float> found(list->observation_size()), expected(found.size());
      environment.Observe(found.data());
      fixed.Observe(expected.data());
      CHECK(found == expected);
    }
  }
}

TEST_CASE("a list of games has at least one game, one kind, and one number of actions") {
  CHECK(GameList::Create({}, {}).status().message() == "games: found none, allowed: one or more");
  const std::vector<std::shared_ptr<const Game>> mixed = {GameWithReads(1), GameWithReads(1, true)};
  CHECK_THAT(std::string(GameList::Create(mixed, {}).status().message()),
             Catch::Contains("game 1 has 3 actions, game 0 has 4"));
  const std::vector<std::shared_ptr<const Game>> kinds = {GameWithReads(1),
                                                          GameWithReads(1, false, "priority")};
  CHECK_THAT(std::string(GameList::Create(kinds, {}).status().message()),
             Catch::Contains("game 1 is a priority game, game 0 a time game"));
  const std::vector<std::shared_ptr<const Game>> empty = {GameWithReads(0)};
  CHECK_THAT(std::string(GameList::Create(empty, {}).status().message()),
             Catch::Contains("nothing to decide"));
}

}  // namespace
}  // namespace mallocgame
