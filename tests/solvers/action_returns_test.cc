// Returns of actions are those of the games that they begin, and looking leaves no trace.
#include "mallocgame/solvers/playing/action_returns.h"

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>

#include "mallocgame/game/priority/priority_game.h"
#include "mallocgame/game/priority/priority_state.h"
#include "mallocgame/game/time/time_game.h"
#include "mallocgame/simulator/simulate.h"
#include "mallocgame/solvers/playing/players.h"
#include "mallocgame/solvers/playing/rent.h"
#include "tests/catch.h"
#include "tests/support/play.h"
#include "tests/support/programs.h"

namespace mallocgame {
namespace {

using testing::MakeGame;
using testing::ProgramBuilder;
using testing::RandomProgram;
using testing::TestHardware;

Prices RandomPrices(const Game& game, Rng& rng) {
  Prices prices = UniformPrices(game, 1);
  for (double& price : prices.space_ps_per_byte) price *= 2 * rng.Uniform();
  prices.channel_ps_per_ps.assign(prices.space_ps_per_byte.size(), rng.Uniform());
  return prices;
}

void PlayOn(Position& position, const Prices* prices) {
  if (prices == nullptr) {
    position.PlayOn(position.game().OpenIntent());
  } else {
    PlayRentFrom(static_cast<State&>(position), Rent(*prices));
  }
}

// Checks the returns at every position of a random game, against clones and the simulator.
void CheckGame(const Game& game, const Prices* prices, Rng& rng) {
  const std::unique_ptr<Position> position = game.NewInitialPosition();
  while (true) {
    const std::string text = position->ToString();
    const int64_t latency = position->latency_ps();
    const int decisions = position->num_decisions();
    const ActionSet legal = position->legal_actions();
    const auto returns = ActionReturns(*position, prices);
    REQUIRE(returns.ok());
    REQUIRE(returns->size() == static_cast<size_t>(game.num_actions()));
    CHECK(position->ToString() == text);
    CHECK(position->latency_ps() == latency);
    CHECK(position->num_decisions() == decisions);
    CHECK(position->legal_actions() == legal);
    for (int action = 0; action < game.num_actions(); ++action) {
      const double found = (*returns)[action];
      CHECK(std::isnan(found) == !legal.Has(action));
      if (std::isnan(found)) continue;
      const std::unique_ptr<Position> clone = position->Clone();
      REQUIRE(clone->Apply(action).ok());
      PlayOn(*clone, prices);
      const auto report = Simulate(game.cost_model(), clone->ToPlan());
      REQUIRE(report.ok());
      CHECK(found ==
            1 - static_cast<double>(report->latency_ps) / static_cast<double>(game.all_main_ps()));
    }
    if (position->IsTerminal()) break;
    int action = rng.Below(game.num_actions());
    while (!legal.Has(action)) action = (action + 1) % game.num_actions();
    REQUIRE(position->Apply(action).ok());
  }
}

TEST_CASE("the return of an action is that of the game it begins, and the state stays") {
  Rng rng(11);
  for (int i = 0; i < 10; ++i) {
    const auto game = MakeGame(RandomProgram(rng, {.instructions = 16}), TestHardware(12));
    CheckGame(*game, nullptr, rng);
    const Prices prices = RandomPrices(*game, rng);
    CheckGame(*game, &prices, rng);
  }
}

TEST_CASE("the return of an action of the priority game is that of greedy's game behind it") {
  Rng rng(12);
  for (int i = 0; i < 4; ++i) {
    const auto program = RandomProgram(rng, {.instructions = 12});
    CheckGame(*MakeGame(program, TestHardware(12), PriorityGameOptions()), nullptr, rng);
  }
}

TEST_CASE("returns of actions worked out on paper") {
  ProgramBuilder b;
  const BufferId x = b.Constant("x", 4);
  b.Add({.name = "a", .cycles = {10}});
  b.Add({.name = "use x", .reads = {x}, .cycles = {10, 5}});
  const auto game = MakeGame(b.Build(), TestHardware(8));
  State state(game);
  const auto returns = ActionReturns(state);
  REQUIRE(returns.ok());
  CHECK((*returns)[static_cast<size_t>(Action::kDrop)] == 0);
  CHECK((*returns)[static_cast<size_t>(Action::kCopy)] == 0.25);
}

TEST_CASE("returns of actions need prices of the program, and none in the priority game") {
  ProgramBuilder b;
  const BufferId x = b.Constant("x", 4);
  b.Add({.name = "use x", .reads = {x}, .cycles = {10, 5}});
  const auto program = b.Build();
  const auto game = MakeGame(program, TestHardware(8));
  State state(game);
  const Prices wrong{{1, 2}, {}}, right{{1}, {}};
  CHECK(ActionReturns(state, &wrong).status().code() == absl::StatusCode::kInvalidArgument);
  CHECK(ActionReturns(state, &right).ok());
  PriorityState order(MakeGame(program, TestHardware(8), PriorityGameOptions()));
  CHECK(ActionReturns(order, &right).status().code() == absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace mallocgame
