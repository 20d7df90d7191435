// The order of instructions and a plan of it, found together.
#include "mallocgame/solvers/schedule/solve_schedule.h"

#include <string>
#include <vector>

#include "mallocgame/base/rng.h"
#include "mallocgame/game/time/time_game.h"
#include "mallocgame/plan/validate.h"
#include "mallocgame/schedule/instruction_order.h"
#include "mallocgame/schedule/main_memory.h"
#include "mallocgame/simulator/simulate.h"
#include "mallocgame/solvers/bounds.h"
#include "tests/catch.h"
#include "tests/support/dependences.h"
#include "tests/support/programs.h"

namespace mallocgame {
namespace {

using Catch::Matchers::Contains;
using testing::ProgramBuilder;
using testing::TestHardware;
using testing::WithDependences;

std::shared_ptr<const Game> GameOf(const std::shared_ptr<const Program>& program,
                                   const Hardware& hardware) {
  TimeGameOptions options;
  options.min_buffer_bytes = 0;
  return *Game::Create(program, hardware, options);
}

// Two instructions need a parameter in fast memory, which has room for one. A third takes as long
// as a copy: if it stands between the two, the second copy is hidden.
std::shared_ptr<const Program> Hiding() {
  ProgramBuilder b("hiding");
  const BufferId v = b.Parameter("v", 40000), w = b.Parameter("w", 40000), x = b.Result("x", 16),
                 y = b.Result("y", 16), z = b.Result("z", 16);
  for (const BufferId buffer : {x, y, z}) b.MarkOutput(buffer);
  b.Add({.name = "needs v", .reads = {v}, .writes = {x}, .cycles = {90000, 100, 90000, 100}});
  b.Add({.name = "needs w", .reads = {w}, .writes = {y}, .cycles = {90000, 100, 90000, 100}});
  b.Add({.name = "works", .writes = {z}, .cycles = {50000, 50000}});
  return WithDependences(*b.Build());
}

TEST_CASE("an order that hides a copy is found, with its plan") {
  const Hardware hardware = TestHardware(60000);
  const auto program = Hiding();
  const SolveProblem problem{GameOf(program, hardware)};
  SolveLimits limits;
  limits.seconds = 0;
  limits.evaluations = 2000;
  const auto result = SolveSchedule(problem, limits);
  INFO(result.status());
  REQUIRE(result.ok());
  CHECK(result->has_freedom);
  CHECK(result->orders > 0);
  CHECK(result->placed.report.latency_ps < result->own_order_ps);
  const auto made = Reordered(*program, result->order);
  REQUIRE(made.ok());
  CHECK(made->program->fingerprint() == result->placed.plan.program_fingerprint);
  CHECK(made->program->fingerprint() == result->game->program().fingerprint());
  CHECK(made->program->instruction(1).name == "works");
  CHECK(Validate(*made->program, hardware, result->placed.plan).ok());
  const auto report = Simulate(CostModel(made->program, hardware), result->placed.plan);
  REQUIRE(report.ok());
  CHECK(report->latency_ps == result->placed.report.latency_ps);
  // Nothing beats the bound that knows no order.
  CHECK(report->latency_ps >= *NoContentionPs(CostModel(program, hardware)));
}

TEST_CASE("with a limit of evaluations the seed decides everything") {
  const Hardware hardware = TestHardware(60000);
  const auto program = Hiding();
  const SolveProblem problem{GameOf(program, hardware)};
  SolveLimits limits;
  limits.seconds = 0;
  limits.evaluations = 500;
  limits.seed = 5;
  const auto one = SolveSchedule(problem, limits), two = SolveSchedule(problem, limits);
  REQUIRE(one.ok());
  REQUIRE(two.ok());
  CHECK(one->order == two->order);
  CHECK(one->placed.plan == two->placed.plan);
  CHECK(one->orders == two->orders);
}

TEST_CASE("without freedom the program's own order is solved") {
  const Hardware hardware = TestHardware(60000);
  ProgramData data = Hiding()->data();
  data.has_dependences = false;
  data.dependences.clear();
  const auto program = *Program::Create(std::move(data));
  const SolveProblem problem{GameOf(program, hardware)};
  SolveLimits limits;
  limits.seconds = 0;
  limits.evaluations = 100;
  const auto result = SolveSchedule(problem, limits);
  REQUIRE(result.ok());
  CHECK_FALSE(result->has_freedom);
  CHECK(result->order == std::vector<Tick>{0, 1, 2});
  CHECK(result->orders == 0);
  CHECK(result->placed.plan.program_fingerprint == program->fingerprint());
}

TEST_CASE("no order needs more main memory than allowed") {
  Rng rng(9);
  SolveLimits limits;
  limits.seconds = 0;
  limits.evaluations = 300;
  int reordered = 0;
  for (int p = 0; p < 15; ++p) {
    const auto program =
        WithDependences(*testing::RandomProgram(rng, {.instructions = 16, .size_unit = 16384}));
    const Hardware hardware = TestHardware(16384 * 12);
    const SolveProblem problem{GameOf(program, hardware)};
    const int64_t own = MainMemoryOf(*program).total_bytes();
    for (const int64_t more : {int64_t{0}, int64_t{1} << 40}) {
      ScheduleOptions options;
      options.solver = "greedy";
      if (more > 0) options.main_bytes = own + more;
      const auto result = SolveSchedule(problem, limits, options);
      INFO(result.status());
      REQUIRE(result.ok());
      const auto made = Reordered(*program, result->order);
      REQUIRE(made.ok());
      CHECK(Validate(*made->program, hardware, result->placed.plan).ok());
      CHECK(result->placed.report.latency_ps <= result->own_order_ps);
      if (more == 0) CHECK(MainMemoryOf(*made->program).total_bytes() <= own);
      reordered += made->program->fingerprint() != program->fingerprint();
    }
  }
  CHECK(reordered > 0);
}

TEST_CASE("a limit that the program's own order breaks is refused") {
  const auto program = Hiding();
  const SolveProblem problem{GameOf(program, TestHardware(60000))};
  SolveLimits limits;
  limits.evaluations = 10;
  ScheduleOptions options;
  options.main_bytes = 5;
  CHECK_THAT(std::string(SolveSchedule(problem, limits, options).status().message()),
             Contains("main_bytes: found 5, program 'hiding' needs"));
}

}  // namespace
}  // namespace mallocgame
