// Rent is what the prices of the ticks say, worked out on paper; free space makes greedy of it.
#include "mallocgame/solvers/playing/rent.h"
#include "mallocgame/game/time/time_decoder.h"
#include "mallocgame/game/time/time_game.h"

#include <limits>

#include "mallocgame/search/game_variants.h"
#include "mallocgame/solvers/playing/players.h"
#include "mallocgame/solvers/registry.h"
#include "tests/catch.h"
#include "tests/support/play.h"
#include "tests/support/programs.h"

namespace mallocgame {
namespace {

using testing::MakeGame;
using testing::ProgramBuilder;
using testing::RandomProgram;
using testing::TestHardware;

constexpr auto kWithCopy = static_cast<size_t>(Action::kCopy),
               kWithoutCopy = static_cast<size_t>(Action::kNoCopy),
               kWithEarlyCopy = static_cast<size_t>(Action::kCopyEarly);

TEST_CASE("a residence pays for its ticks, a kept one for those it gets, a copy for its window") {
  ProgramBuilder b;
  const BufferId x = b.Constant("x", 4);
  b.Add({.name = "a", .cycles = {10}});
  b.Add({.name = "use x", .reads = {x}, .cycles = {4, 0}});
  b.Add({.name = "b", .cycles = {10}});
  b.Add({.name = "use x again", .reads = {x}, .cycles = {4, 0}});
  const auto game = MakeGame(b.Build(), TestHardware(8));
  const Rent space({.space_ps_per_byte = {1, 2, 4, 8}, .channel_ps_per_ps = {}});
  const Rent both({.space_ps_per_byte = {1, 2, 4, 8}, .channel_ps_per_ps = {0.5, 1, 2, 1}});
  State state(game);
  CHECK(space.Of(state)[kWithCopy] == 4 * (1 + 2));
  CHECK(both.Of(state)[kWithCopy] == 4 * (1 + 2) + 4 * 0.5);
  REQUIRE(state.Apply(Action::kCopy).ok());
  CHECK(space.Of(state)[kWithoutCopy] == 4 * (4 + 8));
  CHECK(both.Of(state)[kWithoutCopy] == 4 * (4 + 8));
  CHECK(both.Of(state)[kWithCopy] == 4 * (4 + 8) + 4 * 2);
  REQUIRE(state.IsLegal(Action::kCopyEarly));
  CHECK(both.Of(state)[kWithEarlyCopy] == 4 * (1 + 2 + 4 + 8) + 4 * 0.5);
}

TEST_CASE("a value that is evicted pays for its way to main memory too") {
  ProgramBuilder b;
  const BufferId x = b.Result("x", 4);
  b.Add({.name = "make x", .writes = {x}, .cycles = {4, 0}});
  b.Add({.name = "a", .cycles = {10}});
  b.Add({.name = "use x", .reads = {x}, .cycles = {4, 0}});
  const auto game = MakeGame(b.Build(), TestHardware(8));
  const Rent rent({.space_ps_per_byte = {1, 2, 4}, .channel_ps_per_ps = {8, 0.5, 8}});
  State state(game);
  CHECK(rent.Of(state)[kWithCopy] == 4 * (1 + 2) + 4 * 0.5);
  CHECK(rent.Of(state)[kWithoutCopy] == 4 * (1 + 2 + 4));
}

TEST_CASE("where nothing costs anything, rent is greedy") {
  Rng rng(1);
  for (int i = 0; i < 40; ++i) {
    const auto game = MakeGame(RandomProgram(rng, {.instructions = 20}), TestHardware(16));
    const Rent free(UniformPrices(*game, 0));
    State state(game);
    while (!state.IsTerminal()) {
      const Action action = RentAction(state, free);
      REQUIRE(action == GreedyAction(state));
      REQUIRE(state.Apply(action).ok());
    }
  }
}

TEST_CASE("rent leaves its place to a buffer that saves more in less time") {
  ProgramBuilder b;
  const BufferId lasting = b.Result("lasting", 4), brief = b.Result("brief", 4);
  b.Add({.name = "make lasting", .writes = {lasting}, .cycles = {4, 2}});
  b.Add({.name = "make brief", .writes = {brief}, .cycles = {9, 1}});
  b.Add({.name = "use brief", .reads = {brief}, .cycles = {9, 1}});
  b.Add({.name = "use lasting", .reads = {lasting}, .cycles = {4, 2}});
  const auto game = MakeGame(b.Build(), TestHardware(4));
  CHECK(Solve("greedy", {game}, {})->report.latency_ps == 26 - 4);
  const auto result = Solve("rent", {game}, {});
  CHECK(result->report.latency_ps == 26 - 16);
  CHECK(result->status == SolveStatus::kHeuristic);
}

TEST_CASE("rent is never slower than greedy, and one evaluation is one game") {
  Rng rng(2);
  for (int i = 0; i < 40; ++i) {
    const auto game = MakeGame(RandomProgram(rng, {.instructions = 20}), TestHardware(12));
    const auto greedy = Solve("greedy", {game}, {}), rent = Solve("rent", {game}, {});
    CHECK(rent->report.latency_ps <= greedy->report.latency_ps);
    SolveLimits one;
    one.evaluations = 1;
    CHECK(Solve("rent", {game}, one)->evaluations == 1);
  }
}

TEST_CASE("small buffers are worth what instructions save by them") {
  ProgramBuilder b;
  const BufferId large = b.Constant("large", 20 << 10), small = b.Constant("small", 1 << 10);
  b.Add({.name = "use", .reads = {large, small}, .cycles = {100, 60, 90, 20}});
  b.Add({.name = "a", .cycles = {100}});
  const auto game = *TimeGame::Create(b.Build(), TestHardware(64 << 10));
  CHECK(WorthOfSmallBuffers(*game) == 0.2);
  CHECK(WorthOfSmallBuffers(*GameOfSmallBuffers(*game)) == 0);
  CHECK(GameByDefault(*game)->options().min_buffer_bytes == kSmallBufferBytes);
}

TEST_CASE("prices are one finite number for each tick, 0 at least; the channel may be free") {
  ProgramBuilder b;
  b.Add({.name = "a"});
  b.Add({.name = "b"});
  const auto program = b.Build();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(ValidatePrices(*program, {{0, 1}, {}}).ok());
  CHECK(ValidatePrices(*program, {{0, 1}, {1, 0}}).ok());
  for (const Prices& wrong : {Prices{{0}, {}}, Prices{{0, 1}, {0}}, Prices{{0, -1}, {}},
                              Prices{{0, 1}, {nan, 0}}, Prices{{}, {}}}) {
    CHECK(ValidatePrices(*program, wrong).code() == absl::StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace mallocgame
