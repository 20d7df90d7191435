// On random programs all that can judge a game agree on it: the game itself, whichever of the two,
// Validate, Simulate, a machine that moves bytes, and the replay of its log, written and read.
#include <memory>

#include "mallocgame/base/rng.h"
#include "mallocgame/game/game.h"
#include "mallocgame/game/position.h"
#include "mallocgame/plan/pinned.h"
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

// The rule of pins, apart from Validate: nothing but where each access is served from.
void CheckPins(const Program& program, const Plan& plan) {
  for (size_t a = 0; a < program.accesses().size(); ++a) {
    const Access& access = program.accesses()[a];
    const ResidenceId id = plan.served_by[a];
    if (access.pin == Pin::kMain) REQUIRE_FALSE(id.valid());
    if (access.pin == Pin::kFast) {
      REQUIRE(id.valid());
      const Residence& residence = plan.residences[id.index()];
      REQUIRE(residence.buffer == access.buffer);
      REQUIRE((residence.begin <= access.tick && access.tick < residence.end));
    }
    for (size_t b = a; access.held_until > 0 && b < program.accesses().size(); ++b) {
      const Access& other = program.accesses()[b];
      if (other.buffer == access.buffer && other.tick < access.held_until)
        REQUIRE(plan.served_by[b] == id);
    }
  }
}

// Plays a game at random and returns the number of its copies.
int64_t CheckAgreement(const Game& game, Rng& rng) {
  const Program& program = game.program();
  const std::unique_ptr<Position> position = game.NewInitialPosition();
  testing::PlayOnAtRandom(*position, rng);
  const Plan plan = position->ToPlan();
  const Verdict verdict = Validate(program, game.hardware(), plan);
  INFO(verdict.message << "\n" << PlanToString(program, plan));
  REQUIRE(verdict.ok());
  CheckPins(program, plan);
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
  const std::string kind = GENERATE(as<std::string>(), "time", "priority");
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
    copies += CheckAgreement(*testing::MakeGame(program, hardware, *testing::OptionsOf(kind)), rng);
  }
  CHECK(copies > 1000);
}

// The number of plans of programs with pins to fast memory, of `programs` that are drawn.
int CheckPinnedPrograms(int programs, uint64_t seed) {
  Rng rng(seed);
  int pinned = 0;
  for (int n = 0; n < programs; ++n) {
    testing::RandomProgramOptions drawn;
    drawn.instructions = 4 + static_cast<int>(rng.Below(20));
    drawn.loops = static_cast<int>(rng.Below(3));
    drawn.branches = static_cast<int>(rng.Below(2));
    drawn.constrained = rng.Below(2) == 0;
    drawn.pinned = true;
    const auto program = testing::RandomProgram(rng, drawn);
    Hardware hardware = testing::TestHardware(16 + rng.Below(40), rng.Below(3) == 0 ? 4 : 1);
    hardware.max_preloads = static_cast<int32_t>(rng.Below(3));
    if (!CheckPinsFit(*program, hardware).ok()) continue;
    const Plan in_main = AllMainPlan(*program, hardware);
    REQUIRE(Validate(*program, hardware, in_main).message == "");
    const auto report = Simulate(CostModel(program, hardware), in_main);
    REQUIRE(report->latency_ps == report->all_main_ps);
    pinned += program->any_pinned();
    for (const std::string kind : {"time", "priority"}) {
      const bool exact_stalls = kind == "priority" && rng.Below(2) == 0;
      const auto options = testing::OptionsOf(kind, {{"exact_stalls", exact_stalls}});
      CheckAgreement(*testing::MakeGame(program, hardware, *options), rng);
    }
  }
  return pinned;
}

TEST_CASE("no plan of a random game moves what is pinned") {
  CHECK(CheckPinnedPrograms(500, 2) > 200);
}

TEST_CASE("no plan of many random games moves what is pinned", "[weekly]") {
  CHECK(CheckPinnedPrograms(100'000, 3) > 50'000);
}

}  // namespace
}  // namespace mallocgame
