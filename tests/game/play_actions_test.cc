// A game that was played before comes out as it did.
#include "mallocgame/game/play_actions.h"

#include "tests/catch.h"
#include "tests/support/play.h"
#include "tests/support/programs.h"

namespace mallocgame {
namespace {

TEST_CASE("actions played again give the same state, and an illegal one its error") {
  Rng rng(1);
  for (int n = 0; n < 20; ++n) {
    const auto program = testing::RandomProgram(rng, {.instructions = 12});
    const auto game = Game::Create(program, testing::TestHardware(12), *testing::OptionsOf("time"));
    REQUIRE(game.ok());
    const State state = testing::PlayAtRandom(**game, rng);
    const auto again = PlayActions(**game, state.actions());
    REQUIRE(again.ok());
    CHECK((*again)->IsTerminal());
    CHECK((*again)->latency_ps() == state.latency_ps());
    CHECK((*again)->ToPlan() == state.ToPlan());
    std::vector<uint8_t> actions(state.actions().begin(), state.actions().end());
    actions.push_back(0);
    CHECK(PlayActions(**game, actions).status().code() == absl::StatusCode::kFailedPrecondition);
    if (actions.size() < 2) continue;
    actions.resize(1);
    CHECK((*PlayActions(**game, actions))->num_decisions() == 1);
  }
}

}  // namespace
}  // namespace mallocgame
