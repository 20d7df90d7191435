// Loops as the importer puts them on the time axis, how often they run, and what doesn't run.
#include "mallocgame/hlo/import/import.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "mallocgame/hlo/import/uses.h"
#include "mallocgame/plan/validate.h"
#include "mallocgame/program/cost_model.h"
#include "mallocgame/simulator/simulate.h"
#include "tests/catch.h"
#include "tests/hlo/imported.h"
#include "tests/hlo/module_text.h"

namespace mallocgame {
namespace {

using hlo_test::AccessesOf;
using hlo_test::BufferNamed;
using hlo_test::Import;
using hlo_test::LoopModule;
using hlo_test::ModuleText;
using hlo_test::Names;
using hlo_test::UnitHardware;

TEST_CASE("a while stands as entry, condition, body, exit, and its arrays are those it was given") {
  ImportSummary summary;
  const auto program = Import(LoopModule(), &summary);
  CHECK(Names(*program) ==
        "table zero start space init loop< state.c i.c limit less state.b i.b sum.b table.b one "
        "row put next state.r loop> "
        "sum result");
  CHECK(summary.unknown_trip_counts == 0);
  REQUIRE(program->loops().size() == 1);
  CHECK(program->loops()[0] == Loop{5, 19, 16, true});
  REQUIRE(program->regions().size() == 3);
  CHECK(program->regions()[1] == Region{RegionKind::kLoopCondition, 0, 0, 6, 10, 16});
  CHECK(program->regions()[2] == Region{RegionKind::kLoopBody, 0, 0, 10, 19, 16});
  CHECK(program->instruction(5).logical_time == 5);
  CHECK(program->instruction(6).logical_time == 5);
  CHECK(program->instruction(19).logical_time == 18);

  CHECK(BufferNamed(*program, "table").origin == BufferOrigin::kParameter);
  CHECK(BufferNamed(*program, "space").origin == BufferOrigin::kUndefined);
  CHECK(BufferNamed(*program, "result").is_output);
  CHECK_FALSE(BufferNamed(*program, "space").is_output);
  CHECK(BufferNamed(*program, "start").ineligible_because == "effective scalar");
  CHECK(AccessesOf(*program, "loop", InstructionKind::kLoopEntry) == "enter table, enter* space");
  CHECK(AccessesOf(*program, "loop", InstructionKind::kLoopExit).empty());
  CHECK(AccessesOf(*program, "row") == "read table, write row");
  CHECK(AccessesOf(*program, "put") == "read row, update space");
  CHECK(AccessesOf(*program, "result") == "read space, write result");
  CHECK(AccessesOf(*program, "init").empty());
  CHECK(program->data().argument_bytes == 16 * 128 * 4);
}

// for (outer = 0; outer < 27; ++outer) for (inner = 0; inner < 42; ++inner);
ModuleText Nested() {
  const auto literal = [](int value) {
    return absl::StrCat("literal { shape { element_type: S32 } s32s: ", value, " }");
  };
  ModuleText m;
  const auto condition = [&](const std::string& k, int limit) {
    m.Computation("condition" + k)
        .Add("c" + k + " = (s32[]) parameter()")
        .Add("ci" + k + " = s32[] get-tuple-element(c" + k + ")")
        .Add("limit" + k + " = s32[] constant()", literal(limit))
        .Add("go" + k + " = pred[] compare(limit" + k + ", ci" + k + ")",
             "comparison_direction: 'GT'");
  };
  const auto body = [&](const std::string& k) {
    m.Computation("body" + k)
        .Add("b" + k + " = (s32[]) parameter()")
        .Add("bi" + k + " = s32[] get-tuple-element(b" + k + ")")
        .Add("one" + k + " = s32[] constant()", literal(1));
  };
  const auto loop = [&](const std::string& k) {
    m.Add("zero" + k + " = s32[] constant()", literal(0))
        .Add("init" + k + " = (s32[]) tuple(zero" + k + ")")
        .Add("while" + k + " = (s32[]) while(init" + k + ")", "", {"body" + k, "condition" + k});
  };
  condition("I", 42);
  body("I");
  m.Add("nextI = s32[] add(biI, oneI)").Add("rI = (s32[]) tuple(nextI)");
  condition("O", 27);
  body("O");
  loop("I");
  m.Add("nextO = s32[] add(biO, oneO)").Add("rO = (s32[]) tuple(nextO)");
  m.Computation("main");
  loop("O");
  return m;
}

TEST_CASE("nested loops multiply, and their ticks nest") {
  const auto program = Import(Nested());
  CHECK(Names(*program) ==
        "zeroO initO whileO< cO ciO limitO goO bO biO oneO zeroI initI whileI< cI ciI limitI goI "
        "bI biI oneI nextI rI "
        "whileI> nextO rO whileO>");
  REQUIRE(program->loops().size() == 2);
  CHECK(program->loops()[0] == Loop{2, 25, 27, true});
  CHECK(program->loops()[1] == Loop{12, 22, 42, true});
  CHECK(program->trips(20) == 27 * 42);
  CHECK(program->trips(23) == 27);
  CHECK(program->trips(25) == 1);
  CHECK(program->instruction_count() == 24);
  CHECK(program->instruction(25).logical_time == 23);
}

TEST_CASE("a loop that nobody can count gets the default, and is reported") {
  ModuleText m = Nested();
  m.at("zeroI").set_opcode("rng");
  ImportSummary summary;
  const auto program = Import(m, &summary);
  CHECK(summary.unknown_trip_counts == 1);
  CHECK(program->loops()[1] == Loop{12, 22, 5, false});
  CHECK(program->trips(20) == 27 * 5);

  const std::string bytes = m.Bytes();
  ImportInput input;
  input.module = bytes;
  ImportOptions options;
  options.default_trips = 9;
  CHECK((*ImportHlo(input, UnitHardware(), options)).program->loops()[1].trips == 9);
  options.default_trips = 0;
  CHECK(ImportHlo(input, UnitHardware(), options).status().code() ==
        absl::StatusCode::kInvalidArgument);
}

TEST_CASE("the count of a loop may be told") {
  ModuleText m = Nested();
  m.at("zeroI").set_opcode("rng");
  const std::string bytes = m.Bytes();
  ImportInput input;
  input.module = bytes;
  ImportOptions options;
  options.trips = {{"whileI", 1000}, {"whileO", 2}};
  const auto imported = ImportHlo(input, UnitHardware(), options);
  REQUIRE(imported.ok());
  CHECK(imported->summary.unknown_trip_counts == 0);
  CHECK(imported->program->loops()[1] == Loop{12, 22, 1000, true});
  CHECK(imported->program->trips(20) == 2000);
  options.trips = {{"bodyI", 1000}};
  CHECK(ImportHlo(input, UnitHardware(), options).status().message() ==
        "trips: 'bodyI' is no loop; loops are whileO, whileI");
}

// for (i = start; i < limit; ++i) x = f(x), over arrays of a MiB. Assigned, the body fetches x and
// makes what is between in fast memory.
ModuleText LongLoop(int64_t start, int64_t limit, bool assigned = false) {
  const std::string fast = "f32[512,512]{1,0:S(1)}";
  const auto literal = [](int64_t value) {
    return absl::StrCat("literal { shape { element_type: S64 } s64s: ", value, " }");
  };
  ModuleText m;
  m.Computation("condition")
      .Add("c = (s64[], f32[512,512]) parameter()")
      .Add("ci = s64[] get-tuple-element(c)")
      .Add("limit = s64[] constant()", literal(limit))
      .Add("go = pred[] compare(ci, limit)", "comparison_direction: 'LT'");
  m.Computation("body")
      .Add("b = (s64[], f32[512,512]) parameter()")
      .Add("bi = s64[] get-tuple-element(b)")
      .Add("bx = f32[512,512] get-tuple-element(b)", "tuple_index: 1")
      .Add("one = s64[] constant()", literal(1))
      .Add("next = s64[] add(bi, one)");
  if (assigned) {
    m.Add(absl::StrCat("fetch = (", fast, ", f32[512,512], u32[]) copy-start(bx)"))
        .Add(absl::StrCat("there = ", fast, " copy-done(fetch)"))
        .Add(absl::StrCat("half = ", fast, " negate(there)"));
  } else {
    m.Add("half = f32[512,512] negate(bx)");
  }
  m.Add("whole = f32[512,512] tanh(half)").Add("r = (s64[], f32[512,512]) tuple(next, whole)");
  m.Computation("main")
      .Add("p = f32[512,512] parameter()")
      .Add("start = s64[] constant()", literal(start))
      .Add("x = f32[512,512] copy(p)")
      .Add("init = (s64[], f32[512,512]) tuple(start, x)")
      .Add("loop = (s64[], f32[512,512]) while(init)", "", {"body", "condition"})
      .Add("y = f32[512,512] get-tuple-element(loop)", "tuple_index: 1")
      .Add("z = f32[512,512] cosine(y)");
  if (assigned) m.Place("fetch", {0}, 0, 1).Place("there", {}, 0, 1).Place("half", {}, 1 << 20, 1);
  return m;
}

TEST_CASE("what a loop that never runs does takes no time, and decides nothing") {
  const ModuleText m = LongLoop(16, 16);
  const auto program = Import(m);
  CHECK(program->loops()[0].trips == 0);
  CHECK(program->regions()[2].trips == 0);
  CHECK(BufferNamed(*program, "half").ineligible_because == "in a loop that never runs");
  CHECK(BufferNamed(*program, "x").eligible);
  CHECK(AccessesOf(*program, "loop", InstructionKind::kLoopEntry).empty());
  CHECK(AccessesOf(*program, "half").empty());
  CHECK(AccessesOf(*program, "whole").empty());
  CHECK(AccessesOf(*program, "x") == "read p, write x");
  CHECK(AccessesOf(*program, "z") == "read x, write z");
  const CostModel cost_model(program, UnitHardware());
  const Plan plan = AllMainPlan(*program, UnitHardware());
  REQUIRE(Validate(*program, UnitHardware(), plan).ok());
  // A copy and a cosine: each reads a MiB and writes one, at a byte in a picosecond. The table of
  // the tuple takes 16 bytes.
  CHECK((*Simulate(cost_model, plan)).latency_ps == 2 * 2 * 512 * 512 * 4 + 16);
  CHECK(FindUses(*program, m.Bytes()).ok());

  // Once around it takes that and the body.
  const auto once = Import(LongLoop(15, 16));
  CHECK(
      (*Simulate(CostModel(once, UnitHardware()), AllMainPlan(*once, UnitHardware()))).latency_ps >
      2 * 2 * 2 * 512 * 512 * 4);
}

TEST_CASE("what XLA does in a loop that never runs is in no plan") {
  Hardware hardware = UnitHardware();
  hardware.fast_bytes = 4 << 20;
  for (const int64_t start : {16, 15}) {
    const std::string before = LongLoop(start, 16).Bytes();
    ImportInput input;
    input.module = before;
    const auto imported = ImportHlo(input, hardware);
    REQUIRE(imported.ok());
    const auto plan =
        ReadAssignment(*imported->program, before, LongLoop(start, 16, true).Bytes(), hardware);
    INFO(plan.status());
    REQUIRE(plan.ok());
    const Verdict verdict = Validate(*imported->program, hardware, *plan);
    INFO(verdict.message);
    CHECK(verdict.ok());
    CHECK(plan->residences.empty() == (start == 16));
  }
}

TEST_CASE("a loop within one that never runs doesn't run either") {
  ModuleText m = Nested();
  m.at("limitO").mutable_literal()->set_s32s(0, 0);
  const auto program = Import(m);
  CHECK(program->loops()[0].trips == 0);
  CHECK(program->loops()[1].trips == 42);
  CHECK(program->trips(20) == 0);
  CHECK(program->trips(12) == 0);
}

TEST_CASE("a loop that takes too long to be played gets fewer trips, and is reported") {
  ImportSummary summary;
  // A trip takes some five microseconds: 2^31 of them three hours.
  const auto program = Import(LongLoop(0, 2'147'483'647), &summary);
  CHECK(program->loops()[0].trips == 2'147'483'647);
  CHECK(program->loops()[0].trips_known);
  CHECK(summary.unknown_trip_counts == 0);

  for (const int64_t limit : {int64_t{1} << 42, INT64_MAX}) {
    const auto endless = Import(LongLoop(0, limit), &summary);
    CHECK(summary.unknown_trip_counts == 1);
    CHECK_FALSE(endless->loops()[0].trips_known);
    CHECK(endless->loops()[0].trips >= 1 << 30);
    CHECK(endless->regions()[2].trips == endless->loops()[0].trips);
    CHECK(RunFits(CostModel(endless, UnitHardware())));
  }
}

}  // namespace
}  // namespace mallocgame
