// Whatever a draft says, the result is a valid plan; what can be carried out of it is.
#include "mallocgame/solvers/draft.h"

#include <algorithm>

#include "mallocgame/plan/validate.h"
#include "mallocgame/simulator/simulate.h"
#include "mallocgame/solvers/bounds.h"
#include "mallocgame/solvers/registry.h"
#include "tests/catch.h"
#include "tests/support/plans.h"
#include "tests/support/play.h"
#include "tests/support/programs.h"

namespace mallocgame {
namespace {

using testing::LatencyOf;
using testing::RandomProgram;
using testing::TestHardware;

SolveLimits Evaluations(int64_t evaluations) {
  SolveLimits limits;
  limits.seconds = 0;
  limits.evaluations = evaluations;
  return limits;
}

GameOptions AllSizes() {
  GameOptions options;
  options.min_buffer_bytes = 0;
  return options;
}

// What a programme without offsets, and perhaps without copies, may make of a plan.
Plan Spoiled(Plan plan, Rng& rng) {
  for (Residence& r : plan.residences) {
    r.offset = 0;
    if (rng.Below(8) == 0) r.begin = std::max(0, r.begin - 1);
  }
  if (rng.Below(3) == 0) plan.copies.clear();
  for (ResidenceId& id : plan.served_by) {
    if (rng.Below(10) == 0) id = ResidenceId();
  }
  return plan;
}

TEST_CASE("any well formed draft gives a valid plan, and the same one again") {
  Rng rng(1);
  int better = 0;
  for (int n = 0; n < 200; ++n) {
    const auto program = RandomProgram(
        rng, {.instructions = 10, .loops = static_cast<int>(rng.Below(2)), .branches = 1});
    const auto game = *Game::Create(program, TestHardware(6 + rng.Below(12)), AllSizes());
    const Plan draft = Spoiled(testing::PlayAtRandom(*game, rng).ToPlan(), rng);
    const auto once = SolveFromDraft({game, nullptr}, Evaluations(1), draft);
    const auto found = SolveFromDraft({game, nullptr}, Evaluations(100), draft);
    REQUIRE(once.ok());
    REQUIRE(found.ok());
    REQUIRE(Validate(*program, game->hardware(), found->plan).ok());
    REQUIRE(found->report.latency_ps == LatencyOf(*game, found->plan));
    REQUIRE(found->report.latency_ps >= *NoContentionPs(game->cost_model()));
    REQUIRE(found->plan == SolveFromDraft({game, nullptr}, Evaluations(100), draft)->plan);
    better += found->report.latency_ps < once->report.latency_ps;
  }
  CHECK(better > 20);
}

TEST_CASE("a draft that lacks nothing but offsets is carried out as it is, or something faster") {
  Rng rng(2);
  int64_t residences = 0;
  for (int n = 0; n < 200; ++n) {
    const auto program = RandomProgram(rng, {.instructions = 10, .loops = 0, .branches = 0});
    const auto game = *Game::Create(program, TestHardware(6 + rng.Below(12)), AllSizes());
    Plan draft = testing::PlayAtRandom(*game, rng).ToPlan();
    const int64_t latency_ps = LatencyOf(*game, draft);
    residences += static_cast<int64_t>(draft.residences.size());
    for (Residence& r : draft.residences) r.offset = 0;
    const auto found = SolveFromDraft({game, nullptr}, Evaluations(1), draft);
    REQUIRE(found.ok());
    REQUIRE(found->report.latency_ps <= latency_ps);
  }
  CHECK(residences > 200);
}

TEST_CASE("of a draft the game's options are kept") {
  Rng rng(3);
  int64_t required = 0;
  for (int n = 0; n < 100; ++n) {
    const auto program = RandomProgram(rng, {.instructions = 12, .loops = 0, .branches = 0});
    GameOptions options = AllSizes();
    options.keep_free = 0.25;
    for (size_t a = 0; a < program->accesses().size(); a += 3)
      (n % 2 == 0 ? options.forbidden : options.required).emplace_back(a);
    const auto free_game = *Game::Create(program, TestHardware(16), AllSizes());
    const auto game = *Game::Create(program, TestHardware(16), options);
    const Plan draft = testing::PlayAtRandom(*free_game, rng).ToPlan();
    const auto found = SolveFromDraft({game, nullptr}, Evaluations(20), draft);
    REQUIRE(found.ok());
    REQUIRE(Validate(*program, game->hardware(), found->plan).ok());
    for (const Residence& r : found->plan.residences)
      REQUIRE(r.offset + program->buffer(r.buffer).size_bytes <= game->usable_bytes());
    for (const AccessId id : options.forbidden) REQUIRE(!found->plan.served_by[id.index()].valid());
    const auto rent = Solve("rent", {game, nullptr}, Evaluations(0));
    for (const AccessId id : options.required) {
      // Where rent's game can have it, the result has it.
      if (!rent->plan.served_by[id.index()].valid()) continue;
      REQUIRE(found->plan.served_by[id.index()].valid());
      ++required;
    }
  }
  CHECK(required > 50);
}

TEST_CASE("a malformed draft is refused") {
  Rng rng(4);
  const auto program = RandomProgram(rng, {.instructions = 6, .loops = 0, .branches = 0});
  const auto game = *Game::Create(program, TestHardware(16), AllSizes());
  Plan draft = AllMainPlan(*program, game->hardware());
  draft.served_by.pop_back();
  const auto found = SolveFromDraft({game, nullptr}, Evaluations(1), draft);
  CHECK(found.status().code() == absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace mallocgame
