// On random programs all that can judge a game agree on it: the game itself, whichever of the two,
// Validate, Simulate, a machine that moves bytes, and the replay of its log, written and read.
#include <memory>

#include "mallocgame/base/rng.h"
#include "mallocgame/game/game.h"
#include "mallocgame/game/position.h"
#include "mallocgame/plan/validate.h"
#include "mallocgame/replay/game_log.h"
#include "mallocgame/simulator/simulate.h"
#include "tests/catch.h"
#include "tests/support/machine.h"
#include "tests/support/play.h"
#include "tests/support/programs.h"

namespace mallocgame {
namespace {

using testing::CopyTiming;

// Plays a game at random and returns the number of its copies.
int64_t CheckAgreement(const Game& game, Rng& rng) {
  const Program& program = game.program();
  const std::unique_ptr<Position> position = game.Start();
  testing::PlayOnAtRandom(*position, rng);
  const Plan plan = position->ToPlan();
  const Verdict verdict = Validate(program, game.hardware(), plan);
  INFO(verdict.message << "\n" << PlanToString(program, plan));
  REQUIRE(verdict.ok());
  const auto report = Simulate(game.cost_model(), plan);
  REQUIRE(report.ok());
  REQUIRE(report->latency_ps == position->latency_ps());
  REQUIRE(report->all_main_ps == game.all_main_ps());
  for (const CopyTiming timing : {CopyTiming::kAtOnce, CopyTiming::kLate})
    REQUIRE(testing::RunPlan(program, game.hardware(), plan, timing).empty());

  const auto log = RecordGame(game, position->actions(), "at random", 1);
  REQUIRE(log.ok());
  REQUIRE(log->plan == plan);
  REQUIRE(log->totals.latency_ps == report->latency_ps);
  const auto read = ParseGameLog(SerializeGameLog(*log));
  REQUIRE(read.ok());
  REQUIRE(*read == *log);
  const auto replayed = ReplayLog(*read, game.shared_program());
  REQUIRE(replayed.ok());
  REQUIRE(replayed->same);
  return static_cast<int64_t>(plan.copies.size());
}

TEST_CASE("both games, Validate, Simulate, a machine and the replay agree on random programs") {
  const GameKind kind = GENERATE(GameKind::kTime, GameKind::kPriority);
  Rng rng(1);
  int64_t copies = 0;
  for (int n = 0; n < 500; ++n) {
    testing::RandomProgramOptions drawn;
    drawn.instructions = 4 + static_cast<int>(rng.Below(20));
    drawn.loops = static_cast<int>(rng.Below(3));
    drawn.branches = static_cast<int>(rng.Below(2));
    drawn.constrained = rng.Below(2) == 0;
    drawn.roofline = rng.Below(4) == 0;
    const auto program = testing::RandomProgram(rng, drawn);
    Hardware hardware = testing::TestHardware(4 + rng.Below(40), rng.Below(3) == 0 ? 4 : 1);
    hardware.max_preloads = static_cast<int32_t>(rng.Below(3));
    GameOptions options;
    options.kind = kind;
    copies += CheckAgreement(*testing::MakeGame(program, hardware, options), rng);
  }
  CHECK(copies > 1000);
}

}  // namespace
}  // namespace mallocgame
