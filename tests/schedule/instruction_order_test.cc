// Orders of instructions: which are legal, and the program in another one.
#include "mallocgame/schedule/instruction_order.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "mallocgame/base/rng.h"
#include "mallocgame/plan/validate.h"
#include "mallocgame/schedule/units.h"
#include "mallocgame/simulator/simulate.h"
#include "tests/catch.h"
#include "tests/support/dependences.h"
#include "tests/support/programs.h"

namespace mallocgame {
namespace {

using Catch::Matchers::Contains;
using testing::ProgramBuilder;
using testing::RandomOrder;
using testing::TestHardware;
using testing::WithDependences;

//   tick  0      1     2      3     | 4         | 5     | 6    7
//         left   right alone  entry | condition | body  | exit join
std::shared_ptr<const Program> Example() {
  ProgramBuilder b("example");
  const BufferId w = b.Parameter("w", 4), l = b.Result("left", 8), r = b.Result("right", 16),
                 a = b.Result("alone", 4), j = b.Result("join", 4);
  b.MarkOutput(j);
  b.MarkOutput(a);
  b.Add({.name = "left", .reads = {w}, .writes = {l}, .cycles = {5}});
  b.Add({.name = "right", .reads = {w}, .writes = {r}, .cycles = {7}});
  b.Add({.name = "alone", .reads = {w}, .writes = {a}, .cycles = {3}});
  b.BeginLoop("loop", 3);
  b.BeginBody();
  b.Add({.name = "body", .reads = {w}, .updates = {l}, .cycles = {2}});
  b.EndLoop();
  b.Add({.name = "join", .reads = {l, r}, .writes = {j}, .cycles = {1}});
  return WithDependences(*b.Build());
}

std::vector<std::string> NamesOf(const Program& program) {
  std::vector<std::string> names;
  for (const Instruction& instruction : program.instructions()) names.push_back(instruction.name);
  return names;
}

TEST_CASE("units stand for all that they run") {
  const auto program = Example();
  const ScheduleUnits units(program);
  REQUIRE(units.regions().size() == 3);
  REQUIRE(units.regions()[0].size() == 5);
  CHECK(units.regions()[0][3].begin == 3);
  CHECK(units.regions()[0][3].end == 7);
  CHECK(units.regions()[0][3].works);
  CHECK(units.unit_at(5, 0) == 3);
  CHECK(units.unit_of(3) == 3);
  CHECK(units.unit_of(6) == 3);
  CHECK(units.unit_of(5) == 0);
  // Of ten pairs, left-loop, loop-join, left-join and right-join are ordered.
  CHECK(units.free_pairs() == 6);
  CHECK(units.has_freedom());
  CHECK(units.TicksOf(units.ProgramOrder()) == std::vector<Tick>{0, 1, 2, 3, 4, 5, 6, 7});
}

TEST_CASE("another order has everything where its instruction stands") {
  const auto program = Example();
  const std::vector<Tick> order = {2, 0, 3, 4, 5, 6, 1, 7};
  const auto made = Reordered(*program, order);
  INFO(made.status());
  REQUIRE(made.ok());
  const Program& other = *made->program;
  CHECK(NamesOf(other) == std::vector<std::string>{"alone", "left", "loop",
                                                   program->instruction(4).name, "body", "loop",
                                                   "right", "join"});
  CHECK(other.loops()[0].entry == 2);
  CHECK(other.loops()[0].exit == 5);
  CHECK(other.regions()[2].begin == 4);
  CHECK(other.instruction(5).logical_time == 4);
  for (size_t a = 0; a < program->accesses().size(); ++a) {
    const Access& before = program->accesses()[a];
    const Access& now = other.accesses()[made->access_of[a]];
    CHECK(order[now.tick] == before.tick);
    CHECK(now.kind == before.kind);
    CHECK(now.buffer.value == made->buffer_of[before.buffer.index()]);
    CHECK(other.buffer(now.buffer) == program->buffer(before.buffer));
  }
  // All in main memory, an order changes no latency.
  const Hardware hardware = TestHardware(64);
  const auto latency = [&](const std::shared_ptr<const Program>& p) {
    return Simulate(CostModel(p, hardware), AllMainPlan(*p, hardware))->latency_ps;
  };
  CHECK(latency(made->program) == latency(program));

  // The way back gives the program again.
  std::vector<Tick> back(order.size());
  for (size_t i = 0; i < order.size(); ++i) back[order[i]] = static_cast<Tick>(i);
  const auto again = Reordered(other, back);
  INFO(again.status());
  REQUIRE(again.ok());
  CHECK(again->program->data() == program->data());
}

TEST_CASE("orders that are refused, and why") {
  const auto program = Example();
  const auto error = [&](const std::vector<Tick>& order) {
    return std::string(CheckInstructionOrder(*program, order).message());
  };
  CHECK(error({0, 1, 2, 3, 4, 5, 6, 7}).empty());
  CHECK(error({1, 2, 0, 3, 4, 5, 6, 7}).empty());
  CHECK_THAT(error({0, 1, 2}), Contains("found 3 ticks, program 'example' has 8"));
  CHECK_THAT(error({0, 1, 2, 3, 4, 5, 6, 8}), Contains("found tick 8 at 7, allowed: 0 to 7"));
  CHECK_THAT(error({0, 1, 1, 3, 4, 5, 6, 7}), Contains("'right' (tick 1) stands at 1 and at 2"));
  CHECK_THAT(error({0, 2, 3, 4, 5, 6, 7, 1}),
             Contains("'join' (tick 7) stands at 6, and 'right' (tick 1), on which it depends, at "
                      "7; it must stand before"));
  CHECK_THAT(error({3, 4, 5, 6, 0, 1, 2, 7}), Contains("'left' (tick 0)"));
  CHECK_THAT(error({0, 1, 3, 4, 2, 5, 6, 7}), Contains("isn't followed by"));
  CHECK_THAT(error({0, 1, 3, 2, 4, 5, 6, 7}), Contains("doesn't begin where its condition does"));
  CHECK_THAT(error({0, 1, 2, 3, 5, 4, 6, 7}), Contains("isn't followed by"));
  CHECK_THAT(error({0, 1, 2, 6, 4, 5, 3, 7}), Contains("doesn't begin where its condition does"));
}

TEST_CASE("without dependences only the program's own order is legal") {
  ProgramData data = Example()->data();
  data.has_dependences = false;
  data.dependences.clear();
  const auto program = *Program::Create(std::move(data));
  CHECK_FALSE(ScheduleUnits(program).has_freedom());
  std::vector<Tick> order(8);
  std::iota(order.begin(), order.end(), 0);
  CHECK(CheckInstructionOrder(*program, order).ok());
  std::swap(order[0], order[1]);
  CHECK_THAT(std::string(CheckInstructionOrder(*program, order).message()),
             Contains("nobody knows what depends on what in program 'example'"));
}

TEST_CASE("a fingerprint knows nothing of dependences") {
  const auto program = Example();
  ProgramData data = program->data();
  data.dependences.clear();
  data.has_dependences = false;
  CHECK((*Program::Create(std::move(data)))->fingerprint() == program->fingerprint());
}

TEST_CASE("random orders of random programs are programs, and one broken dependence is refused") {
  Rng rng(72);
  int orders = 0, broken = 0;
  for (int p = 0; p < 60; ++p) {
    const auto program = WithDependences(*testing::RandomProgram(rng, {.instructions = 16}));
    for (int n = 0; n < 5; ++n) {
      const std::vector<Tick> order = RandomOrder(program, rng);
      const auto made = Reordered(*program, order);
      INFO(made.status());
      REQUIRE(made.ok());
      // What isn't checked on the way of a search is what Create would have said.
      CHECK(ReorderedLegally(*program, order).program->data() == made->program->data());
      std::vector<Tick> back(order.size());
      for (size_t i = 0; i < order.size(); ++i) back[order[i]] = static_cast<Tick>(i);
      const auto again = Reordered(*made->program, back);
      REQUIRE(again.ok());
      // Its buffers are numbered otherwise, as they aren't named after instructions.
      CHECK(again->program->data().instructions == program->data().instructions);
      CHECK(again->program->data().regions == program->data().regions);
      CHECK(again->program->data().loops == program->data().loops);
      CHECK(again->program->data().dependences == program->data().dependences);
      CHECK(again->program->data().cost == program->data().cost);
      orders += order != back;
    }
    // Exchanging two neighbours that depend on each other breaks this one dependence.
    for (const Dependence& d : program->data().dependences) {
      if (d.after != d.before + 1 ||
          program->instruction(d.after).region != program->instruction(d.before).region ||
          program->instruction(d.before).kind != InstructionKind::kOrdinary ||
          program->instruction(d.after).kind != InstructionKind::kOrdinary) {
        continue;
      }
      std::vector<Tick> order(program->ticks());
      std::iota(order.begin(), order.end(), 0);
      std::swap(order[d.before], order[d.after]);
      const absl::Status status = CheckInstructionOrder(*program, order);
      CHECK_FALSE(status.ok());
      ++broken;
    }
  }
  CHECK(orders > 100);
  CHECK(broken > 50);
}

TEST_CASE("dependences that a file may not have") {
  const auto error = [](const auto& change) {
    ProgramData data = Example()->data();
    change(data);
    return std::string(Program::Create(std::move(data)).status().message());
  };
  CHECK_THAT(error([](ProgramData& d) { d.dependences = {{3, 2}}; }),
             Contains("dependence 0: ticks 3 and 2 of 8 are not in that order"));
  CHECK_THAT(error([](ProgramData& d) { d.dependences = {{0, 5}}; }),
             Contains("'left' and 'body' are not in the same region"));
  CHECK_THAT(error([](ProgramData& d) { d.dependences = {{0, 3}}; }),
             Contains("tick 3 is a loop's entry"));
  CHECK_THAT(error([](ProgramData& d) { d.dependences = {{0, 2}, {0, 1}}; }),
             Contains("dependence 1: not sorted and distinct"));
  CHECK_THAT(error([](ProgramData& d) { d.has_dependences = false; }),
             Contains("dependences, though they are said not to be known"));
  CHECK_THAT(error([](ProgramData& d) { d.main_uses = {{0, BufferId(1)}}; }),
             Contains("main use 0: buffer 'left' is eligible"));
  CHECK_THAT(error([](ProgramData& d) { d.main_uses = {{9, BufferId(1)}}; }),
             Contains("main use 0: tick 9 of 8"));
}

}  // namespace
}  // namespace mallocgame
