// PreferenceSearch against whole games played from the start.
#include "mallocgame/solvers/playing/preference_search.h"

#include <vector>

#include "mallocgame/base/rng.h"
#include "mallocgame/solvers/game_variants.h"
#include "mallocgame/solvers/playing/players.h"
#include "tests/catch.h"
#include "tests/support/play.h"
#include "tests/support/programs.h"

namespace mallocgame {
namespace {

using testing::MakeGame;
using testing::ProgramBuilder;
using testing::RandomProgram;
using testing::TestHardware;

// Two instructions of 10 ps, then one that reads p, 4 bytes: Drop, Copy, NoCopy and CopyEarly are
// legal.
ProgramBuilder ReadAtTheEnd() {
  ProgramBuilder b;
  const BufferId p = b.Parameter("p", 4);
  b.Add({.name = "a", .cycles = {10}});
  b.Add({.name = "b", .cycles = {10}});
  b.Add({.name = "use", .reads = {p}, .cycles = {10, 3}});
  return b;
}

constexpr auto kDrop = static_cast<uint8_t>(Action::kDrop),
               kCopy = static_cast<uint8_t>(Action::kCopy),
               kNoCopy = static_cast<uint8_t>(Action::kNoCopy),
               kCopyEarly = static_cast<uint8_t>(Action::kCopyEarly);

TEST_CASE("a legal preference is played, an illegal one gives way in a fixed order") {
  const auto game = MakeGame(ReadAtTheEnd().Build(), TestHardware(8));
  State state = game->InitialState();
  for (const uint8_t wish : {kDrop, kCopy, kNoCopy, kCopyEarly})
    CHECK(PreferredAction(state, wish) == static_cast<Action>(wish));

  // A constant without time before it: Drop and Copy are all there is.
  ProgramBuilder b;
  b.Add({.name = "use", .reads = {b.Constant("c", 4)}, .cycles = {10, 3}});
  State narrow = MakeGame(b.Build(), TestHardware(8))->InitialState();
  CHECK(PreferredAction(narrow, kNoCopy) == Action::kCopy);
  CHECK(PreferredAction(narrow, kCopyEarly) == Action::kCopy);

  // Drop gives way only where it must.
  State required = MakeGame(ReadAtTheEnd().Build(), TestHardware(8), {.required = {AccessId(0)}})
                       ->InitialState();
  CHECK(PreferredAction(required, kDrop) == Action::kNoCopy);
  // No preference: what greedy plays.
  CHECK(PreferredAction(state, kUndecided) == GreedyAction(state));
  CHECK(state.num_decisions() == 0);
}

TEST_CASE("the preferences of a plan play a game like it") {
  Rng rng(1);
  int alike = 0;
  for (int i = 0; i < 100; ++i) {
    const auto game = MakeGame(RandomProgram(rng, {.plain_copies = false}), TestHardware(16));
    State greedy = game->InitialState();
    PlayGreedyFrom(greedy);
    const Preferences preferences = PreferencesOf(*game, greedy.ToPlan());
    REQUIRE(preferences.size() == game->program().accesses().size());
    alike += PreferenceSearch(*game, preferences).latency_ps() == greedy.latency_ps();
  }
  CHECK(alike > 60);  // CopyEarly instead of Copy makes others
  const auto game = MakeGame(ReadAtTheEnd().Build(), TestHardware(8));
  CHECK(PreferencesOf(*game, AllMainPlan(game->program(), game->hardware())) == Preferences{kDrop});
}

// The game that `preferences` stand for, played from the start.
State PlayedBy(const Game& game, const Preferences& preferences) {
  State state = game.InitialState();
  while (!state.IsTerminal()) {
    const Action action = PreferredAction(state, preferences[state.current_access().index()]);
    REQUIRE(state.Apply(action).ok());
  }
  return state;
}

TEST_CASE("trials are the games that their preferences stand for, kept or forgotten") {
  Rng rng(2);
  for (int round = 0; round < 30; ++round) {
    const auto game = MakeGame(RandomProgram(rng), TestHardware(16));
    Preferences expected(game->program().accesses().size(), kDrop);
    PreferenceSearch search(*game, expected);
    if (search.decisions() == 0) continue;
    for (int trial = 0; trial < 40; ++trial) {
      const auto from = static_cast<int32_t>(rng.Below(search.decisions()));
      const State& waiting = search.GoTo(from);
      REQUIRE(waiting.num_decisions() == from);
      REQUIRE(waiting.current_access() == search.decision(from));
      // What was chosen so far is what is preferred; the rest changes at two places at most.
      Preferences tried = search.preferences();
      for (int change = 0; change < 2; ++change) {
        const int32_t at = from + static_cast<int32_t>(rng.Below(search.decisions() - from));
        const auto action = static_cast<Action>(rng.Below(kActions));
        tried[search.decision(at).index()] = static_cast<uint8_t>(action);
        search.Prefer(search.decision(at), action);
      }
      const State& played = search.Play();
      const State again = PlayedBy(*game, tried);
      REQUIRE(played.latency_ps() == again.latency_ps());
      REQUIRE(played.actions() == again.actions());
      const int64_t before = search.latency_ps();
      if (rng.Below(2) == 0) {
        search.Accept();
        REQUIRE(search.latency_ps() == again.latency_ps());
      } else {
        search.Reject();
        REQUIRE(search.latency_ps() == before);
        REQUIRE(PlayedBy(*game, search.preferences()).latency_ps() == before);
      }
    }
  }
}

TEST_CASE("a good start is at least as good as greedy") {
  Rng rng(3);
  for (int i = 0; i < 20; ++i) {
    const auto game = MakeGame(RandomProgram(rng), TestHardware(16));
    State greedy = game->InitialState();
    PlayGreedyFrom(greedy);
    CHECK(PreferenceSearch(*game, GoodStart(*game, {})).latency_ps() <= greedy.latency_ps());
  }
}

TEST_CASE("the game of small buffers asks about buffers from 512 bytes on, and nothing less") {
  const auto program = ReadAtTheEnd().Build();
  const auto coarse = Game::Create(program, TestHardware(8));
  REQUIRE(coarse.ok());
  const auto fine = GameOfSmallBuffers(**coarse);
  REQUIRE(fine != nullptr);
  CHECK(fine->options().min_buffer_bytes == 512);
  CHECK(GameOfSmallBuffers(*fine) == nullptr);
}

}  // namespace
}  // namespace mallocgame
