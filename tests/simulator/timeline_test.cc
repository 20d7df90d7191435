// Timeline tick by tick, and its sums against the report.
#include "mallocgame/simulator/timeline.h"

#include <vector>

#include "mallocgame/base/rng.h"
#include "mallocgame/game/game.h"
#include "mallocgame/simulator/simulate.h"
#include "tests/catch.h"
#include "tests/simulator/looped.h"
#include "tests/support/plans.h"
#include "tests/support/play.h"
#include "tests/support/programs.h"

namespace mallocgame {
namespace {

using testing::Looped;
using testing::PlanBuilder;
using testing::ProgramBuilder;
using testing::TestHardware;

std::vector<TickTime> TimesOf(const std::shared_ptr<const Program>& program,
                              const Hardware& hardware, const Plan& plan) {
  const auto times = Timeline(CostModel(program, hardware), plan);
  INFO(times.status());
  REQUIRE(times.ok());
  return *times;
}

//   tick  0      1     2
//         work   use   rest      work takes 6 ps and leaves all of them, use reads p (10 bytes)
TEST_CASE("idle time in which copies are served, and the stall for what is left of them") {
  ProgramBuilder b;
  const BufferId p = b.Parameter("p", 10);
  b.Add({.name = "work", .cycles = {6}});
  b.Add({.name = "use", .reads = {p}, .cycles = {20, 5}});
  b.Add({.name = "rest", .cycles = {3}});
  const auto program = b.Build();
  const Hardware hardware = TestHardware(16);
  PlanBuilder plan(*program, hardware);
  const ResidenceId r = plan.Reside(p, 0, 0, 2);
  plan.ServeAll(r);
  plan.Prefetch(r, 0, 1);
  const std::vector<TickTime> times = TimesOf(program, hardware, plan.plan);
  REQUIRE(times.size() == 3);
  CHECK(times[0] == TickTime{6, 0, 6, 6, PriceSource::kExact});
  CHECK(times[1] == TickTime{5, 4, 5, 0, PriceSource::kExact});
  CHECK(times[2] == TickTime{3, 0, 3, 0, PriceSource::kExact});
  // In main memory the read itself takes 10 of the channel's 20 ps.
  CHECK(TimesOf(program, hardware, AllMainPlan(*program, hardware))[1] ==
        TickTime{20, 0, 10, 0, PriceSource::kExact, 10});
}

TEST_CASE("in a loop all trips of a tick are counted together") {
  const Looped l(5);
  PlanBuilder plan(*l.program, l.hardware);
  plan.Prefetch(plan.Reside(l.p, 0, 4, 6), 4, 5);
  const std::vector<TickTime> times = TimesOf(l.program, l.hardware, plan.plan);
  REQUIRE(times.size() == 8);
  CHECK(times[3] == TickTime{5 * 8, 0, 0, 0, PriceSource::kExact, 5 * 8});
  // z hides 2 of p's 10 in each trip
  CHECK(times[4] == TickTime{5 * 4, 0, 5 * 2, 5 * 2, PriceSource::kExact, 5 * 2});
  CHECK(times[5].stall_ps == 5 * 8);
  CHECK(times[7] == TickTime{});
}

TEST_CASE("the timeline refuses what Simulate refuses") {
  const Looped l(5);
  Plan plan = AllMainPlan(*l.program, l.hardware);
  plan.served_by.pop_back();
  const CostModel cost_model(l.program, l.hardware);
  const auto times = Timeline(cost_model, plan);
  CHECK(times.status().code() == absl::StatusCode::kInvalidArgument);
  CHECK(times.status() == Simulate(cost_model, plan).status());
}

TEST_CASE("over all ticks compute and stalls are those of the report") {
  Rng rng(2);
  int64_t stalls = 0;
  for (int i = 0; i < 200; ++i) {
    const auto program = testing::RandomProgram(rng);
    const auto game = testing::MakeGame(program, TestHardware(20));
    const Plan plan = testing::PlayAtRandom(*game, rng).ToPlan();
    const auto report = Simulate(game->cost_model(), plan);
    REQUIRE(report.ok());
    TickTime sum;
    for (const TickTime& time : TimesOf(program, TestHardware(20), plan)) {
      sum.compute_ps += time.compute_ps;
      sum.stall_ps += time.stall_ps;
      CHECK(time.idle_ps <= time.compute_ps);
      CHECK(time.copied_ps <= time.idle_ps);
    }
    CHECK(sum.compute_ps == report->compute_ps);
    CHECK(sum.stall_ps == report->stall_ps);
    stalls += sum.stall_ps;
  }
  CHECK(stalls > 0);
}

}  // namespace
}  // namespace mallocgame
