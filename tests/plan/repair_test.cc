// RepairOffsets: plans whose offsets were taken away get others, and nothing else is changed.
#include <vector>

#include "mallocgame/base/rng.h"
#include "mallocgame/game/game.h"
#include "mallocgame/plan/offsets.h"
#include "mallocgame/plan/validate.h"
#include "tests/catch.h"
#include "tests/support/plans.h"
#include "tests/support/play.h"
#include "tests/support/programs.h"

namespace mallocgame {
namespace {

using testing::PlanBuilder;
using testing::ProgramBuilder;
using testing::RandomProgram;
using testing::TestHardware;

TEST_CASE("plans whose offsets were taken away are valid again") {
  Rng rng(4);
  size_t residences = 0;
  int broken = 0;
  for (int i = 0; i < 400; ++i) {
    const auto program = RandomProgram(rng, {.instructions = 30, .constrained = i % 2 == 0});
    const Hardware hardware = TestHardware(12 + rng.Below(30), 1 + rng.Below(4));
    const auto game = testing::MakeGame(program, hardware);
    const Plan original = testing::PlayAtRandom(*game, rng).ToPlan();
    REQUIRE(Validate(*program, hardware, original).ok());
    Plan plan = original;
    for (Residence& r : plan.residences) r.offset = -7;
    broken += !Validate(*program, hardware, plan).ok();
    const auto result = RepairOffsets(*program, hardware, plan, {.seconds = 0});
    REQUIRE(result.ok());
    REQUIRE(result->status == OffsetStatus::kFeasible);
    const Verdict verdict = Validate(*program, hardware, plan);
    INFO(verdict.message);
    REQUIRE(verdict.ok());
    residences += plan.residences.size();
    for (Residence& r : plan.residences) r.offset = 0;
    Plan cleared = original;
    for (Residence& r : cleared.residences) r.offset = 0;
    REQUIRE(plan == cleared);  // nothing but offsets was changed
  }
  CHECK(residences > 2000);
  CHECK(broken > 300);
}

TEST_CASE("a residence filled in slices leaves its last bytes to others until they come") {
  //  tick  0     1     2     3
  //  a     write read
  //  p                       read     p comes in two halves, the second from tick 2 on
  ProgramBuilder b;
  const BufferId a = b.Result("a", 4), p = b.Parameter("p", 8);
  b.Add({.name = "make", .writes = {a}});
  b.Add({.name = "look", .reads = {a}});
  b.Add({.name = "wait"});
  b.Add({.name = "use", .reads = {p}});
  const auto program = b.Build();
  const Hardware hardware = TestHardware(8);
  PlanBuilder builder(*program, hardware);
  const ResidenceId stay = builder.Reside(a, 0, 0, 2), filled = builder.Reside(p, 0, 0, 4);
  builder.ServeAll(stay);
  builder.ServeAll(filled);
  builder.Slice(filled, 0, 3, 0, 4);
  builder.Slice(filled, 2, 3, 4, 8);
  Plan plan = builder.plan;
  REQUIRE(Validate(*program, hardware, plan).rule == Rule::kSpace);
  const auto result = RepairOffsets(*program, hardware, plan);
  REQUIRE(result.ok());
  CHECK(result->status == OffsetStatus::kFeasible);
  CHECK(plan.residences[stay.index()].offset == 4);
  CHECK(Validate(*program, hardware, plan).ok());

  const Hardware smaller = TestHardware(7);
  Plan too_large = builder.plan;
  const Plan before = too_large;
  const auto refused = RepairOffsets(*program, smaller, too_large);
  REQUIRE(refused.ok());
  CHECK(refused->status == OffsetStatus::kInfeasible);
  CHECK(too_large == before);
}

TEST_CASE("offsets lie above what instructions reserve for themselves") {
  ProgramBuilder b;
  const BufferId a = b.Result("a", 4), c = b.Result("c", 4);
  b.Add({.name = "make", .writes = {a}});
  b.Add({.name = "busy", .writes = {c}, .reserved_bytes = 5});
  b.Add({.name = "look", .reads = {a, c}});
  const auto program = b.Build();
  for (const int64_t bytes : {15, 16}) {
    const Hardware hardware = TestHardware(bytes, 4);
    PlanBuilder builder(*program, hardware);
    for (const BufferId buffer : {a, c})
      builder.ServeAll(builder.Reside(buffer, 0, buffer == a ? 0 : 1, 3));
    Plan plan = builder.plan;
    const auto result = RepairOffsets(*program, hardware, plan);
    REQUIRE(result.ok());
    CHECK(result->status == (bytes == 16 ? OffsetStatus::kFeasible : OffsetStatus::kInfeasible));
    CHECK(Validate(*program, hardware, plan).ok() == (bytes == 16));
  }
}

TEST_CASE("the instruction of a residence that reserves most counts, wherever it is") {
  for (int busy = 0; busy < 5; ++busy) {
    ProgramBuilder b;
    const BufferId p = b.Parameter("p", 4);
    for (int i = 0; i < 5; ++i)
      b.Add({.name = "use", .reads = {p}, .reserved_bytes = i == busy ? 3 : 1});
    const auto program = b.Build();
    const Hardware hardware = TestHardware(8);
    PlanBuilder builder(*program, hardware);
    builder.Preload(builder.Reside(p, 0, 0, 5), 0);
    Plan plan = builder.plan;
    REQUIRE(RepairOffsets(*program, hardware, plan).ok());
    CHECK(plan.residences[0].offset == 3);
  }
}

TEST_CASE("a plan that is not well formed is refused") {
  ProgramBuilder b;
  const BufferId a = b.Result("a", 4);
  b.Add({.name = "make", .writes = {a}});
  const auto program = b.Build();
  const Hardware hardware = TestHardware(8);
  PlanBuilder builder(*program, hardware);
  builder.Reside(a, 0, 0, 1);
  Plan plan = builder.plan;
  plan.residences[0].end = 9;
  CHECK(RepairOffsets(*program, hardware, plan).status().code() ==
        absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace mallocgame
