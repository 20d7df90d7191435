// The time axis of small modules, tick by tick.
#include "mallocgame/hlo/module/schedule.h"

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "mallocgame/hlo/module/hlo.pb.h"
#include "tests/catch.h"
#include "tests/hlo/module_text.h"

namespace mallocgame::hlo {
namespace {

using hlo_test::Literal;
using hlo_test::ModuleText;

// A loop over (s32[]) that counts from 0 to `limit`, as the end of the computation at hand. Its
// condition and body, whose names begin with `p`, must have been added.
void AddLoop(ModuleText& m, const std::string& p) {
  m.Add(p + "zero = s32[] constant()", Literal(0))
      .Add(absl::StrCat(p, "init = (s32[]) tuple(", p, "zero)"))
      .Add(absl::StrCat(p, "loop = (s32[]) while(", p, "init)"), "", {p + "body", p + "condition"});
}
void AddCondition(ModuleText& m, const std::string& p, int64_t limit) {
  m.Computation(p + "condition")
      .Add(p + "c = (s32[]) parameter()")
      .Add(absl::StrCat(p, "ci = s32[] get-tuple-element(", p, "c)"))
      .Add(p + "limit = s32[] constant()", Literal(limit))
      .Add(absl::StrCat(p, "go = pred[] compare(", p, "ci, ", p, "limit)"),
           "comparison_direction: 'LT'");
}
void AddBody(ModuleText& m, const std::string& p, bool with_inner = false) {
  m.Computation(p + "body")
      .Add(p + "b = (s32[]) parameter()")
      .Add(absl::StrCat(p, "bi = s32[] get-tuple-element(", p, "b)"))
      .Add(p + "one = s32[] constant()", Literal(1));
  if (with_inner) AddLoop(m, "i.");
  m.Add(absl::StrCat(p, "next = s32[] add(", p, "bi, ", p, "one)"))
      .Add(absl::StrCat(p, "r = (s32[]) tuple(", p, "next)"));
}
ModuleText OneLoop(int64_t limit) {
  ModuleText m;
  AddCondition(m, "", limit);
  AddBody(m, "");
  m.Computation("main");
  AddLoop(m, "");
  return m;
}

std::string Refusal(const ModuleText& text, const FlattenOptions& options = {}) {
  return std::string(Flatten(*hlo_test::Parse(text), options).status().message());
}

TEST_CASE("a while takes two ticks, with its condition and its body between them") {
  const auto module = hlo_test::Parse(OneLoop(6));
  const Schedule schedule = *Flatten(*module);
  // Ticks: zero init loop< c ci limit go b bi one next r loop>
  REQUIRE(schedule.ticks.size() == 13);
  CHECK(schedule.loops == std::vector<Loop>{{2, 12, 6, true}});
  CHECK(schedule.regions == std::vector<Region>{{RegionKind::kEntry, -1, -1, 0, 13, 1},
                                                {RegionKind::kLoopCondition, 0, 0, 3, 7, 6},
                                                {RegionKind::kLoopBody, 0, 0, 7, 12, 6}});
  const int32_t loop = hlo_test::Named(*module, "loop");
  CHECK(schedule.ticks[2].kind == InstructionKind::kLoopEntry);
  CHECK(schedule.ticks[2].instruction == loop);
  CHECK(schedule.ticks[12].kind == InstructionKind::kLoopExit);
  CHECK(schedule.ticks[12].instruction == loop);
  // A while is where its exit is; the entry shares the logical time of the tick after it.
  CHECK(schedule.tick_of[loop] == 12);
  CHECK(schedule.tick_of[hlo_test::Named(*module, "next")] == 10);
  CHECK(schedule.ticks[2].logical_time == 2);
  CHECK(schedule.ticks[3].logical_time == 2);
  CHECK(schedule.ticks[12].logical_time == 11);
  CHECK(schedule.unscheduled_computations == 0);
}

TEST_CASE("trip counts of nested loops multiply, up to a limit") {
  const auto nested = [](int64_t inner, int64_t outer) {
    ModuleText m;
    AddCondition(m, "i.", inner);
    AddBody(m, "i.");
    AddCondition(m, "o.", outer);
    AddBody(m, "o.", /*with_inner=*/true);
    m.Computation("main");
    AddLoop(m, "o.");
    return m;
  };
  const Schedule schedule = *Flatten(*hlo_test::Parse(nested(3, 4)));
  // Regions: main, outer condition, outer body, inner condition, inner body.
  REQUIRE(schedule.regions.size() == 5);
  CHECK(schedule.regions[2].trips == 4);
  CHECK(schedule.regions[4].trips == 12);
  CHECK(schedule.regions[4].parent == 2);
  // 2^21 times 2^19 is as often as a region may run.
  const Schedule most = *Flatten(*hlo_test::Parse(nested(1 << 21, 1 << 19)));
  CHECK(most.regions[4].trips == kMaxTrips);
  CHECK(most.loops[1].trips_known);
  const Schedule more = *Flatten(*hlo_test::Parse(nested((1 << 21) + 1, 1 << 19)));
  CHECK(more.regions[4].trips == kMaxTrips);
  CHECK(more.loops[0].trips == 1 << 19);
  CHECK(more.loops[0].trips_known);
  CHECK(more.loops[1].trips == 1 << 21);
  CHECK_FALSE(more.loops[1].trips_known);
}

TEST_CASE("fewer trips are left to the loops that are too long, from the outermost on") {
  std::vector<Region> regions = {{RegionKind::kEntry, -1, -1, 0, 9, 1},
                                 {RegionKind::kLoopBody, 0, 0, 1, 8, 1},
                                 {RegionKind::kCall, 1, -1, 2, 7, 1},
                                 {RegionKind::kLoopBody, 2, 1, 3, 6, 1}};
  std::vector<Loop> loops = {{0, 8, 10, true}, {2, 6, 30, true}};
  const auto trips = [&] {
    return std::vector<int64_t>{regions[1].trips, regions[2].trips, regions[3].trips,
                                loops[0].trips, loops[1].trips};
  };
  SetTrips(1000, regions, loops);
  CHECK(trips() == std::vector<int64_t>{10, 10, 300, 10, 30});
  SetTrips(200, regions, loops);
  CHECK(trips() == std::vector<int64_t>{10, 10, 200, 10, 20});
  CHECK((loops[0].trips_known && !loops[1].trips_known));
  SetTrips(7, regions, loops);
  CHECK(trips() == std::vector<int64_t>{7, 7, 7, 7, 1});
  CHECK_FALSE(loops[0].trips_known);
  loops[0].trips = 0;
  SetTrips(7, regions, loops);
  CHECK(trips() == std::vector<int64_t>{0, 0, 0, 0, 1});
}

TEST_CASE("a loop that nobody can count gets the default, and what is told comes first") {
  ModuleText data = OneLoop(6);
  data.at("limit").set_opcode("rng");
  const auto loops = [&data](const FlattenOptions& options) {
    return (*Flatten(*hlo_test::Parse(data), options)).loops;
  };
  CHECK(loops({.default_trips = 7, .trips = {}}) == std::vector<Loop>{{2, 12, 7, false}});
  CHECK(loops({.trips = {{"loop", 1000}}}) == std::vector<Loop>{{2, 12, 1000, true}});
  CHECK(Refusal(data, {.default_trips = 0, .trips = {}}) ==
        "default_trips is 0; allowed are 1 to 1099511627776");
  CHECK(Refusal(data, {.trips = {{"loop", -1}}}) ==
        "trips of 'loop': found -1; allowed are 0 to 1099511627776");
  CHECK(Refusal(data, {.trips = {{"init", 1}}}) == "trips: 'init' is no loop; loops are loop");
  // It also comes before what can be counted.
  data = OneLoop(6);
  CHECK(loops({.trips = {{"loop", 8}}})[0].trips == 8);
  CHECK(loops({})[0].trips == 6);
  ModuleText none;
  none.Computation("main").Add("p = f32[8] parameter()");
  CHECK(Refusal(none, {.trips = {{"p", 1}}}) == "trips: 'p' is no loop; there are none");
}

TEST_CASE("a loop that never runs has no trips, nor has what it calls") {
  const Schedule schedule = *Flatten(*hlo_test::Parse(OneLoop(0)));
  CHECK(schedule.loops[0] == Loop{2, 12, 0, true});
  CHECK(schedule.regions[1].trips == 0);
  CHECK(schedule.regions[2].trips == 0);
}

TEST_CASE("without a schedule the order in the module is one, unless one is required") {
  ModuleText m = OneLoop(6);
  const Schedule scheduled = *Flatten(*hlo_test::Parse(m));
  m.proto().mutable_hlo_module()->clear_schedule();
  const Schedule schedule = *Flatten(*hlo_test::Parse(m));
  CHECK(schedule.unscheduled_computations == 3);
  REQUIRE(schedule.ticks.size() == scheduled.ticks.size());
  for (size_t t = 0; t < schedule.ticks.size(); ++t)
    CHECK(schedule.ticks[t].instruction == scheduled.ticks[t].instruction);
  CHECK(absl::StrContains(Refusal(m, {.trips = {}, .requires_schedule = true}),
                          "computation 'main' has no schedule, and one is required"));

  // One computation may lack it alone.
  ModuleText body = OneLoop(6);
  body.proto().mutable_hlo_module()->mutable_schedule()->mutable_sequences()->erase(2);
  CHECK((*Flatten(*hlo_test::Parse(body))).unscheduled_computations == 1);
  CHECK(absl::StrContains(Refusal(body, {.trips = {}, .requires_schedule = true}),
                          "computation 'body' has no schedule"));
}

TEST_CASE("fused computations are not on the time axis; called ones come before their call") {
  ModuleText m;
  m.Computation("fused", true).Add("f = f32[8] parameter()").Add("g = f32[8] negate(f)");
  m.Computation("callee").Add("a = f32[8] parameter()").Add("b = f32[8] fusion(a)", "", {"fused"});
  m.Computation("main").Add("p = f32[8] parameter()").Add("c = f32[8] call(p)", "", {"callee"});
  const auto module = hlo_test::Parse(m);
  const Schedule schedule = *Flatten(*module);
  CHECK(schedule.ticks.size() == 4);  // p a b c
  CHECK(schedule.tick_of[hlo_test::Named(*module, "c")] == 3);
  CHECK(schedule.tick_of[hlo_test::Named(*module, "g")] == kNone);
  CHECK(schedule.regions[1] == Region{RegionKind::kCall, 0, -1, 1, 3, 1});
}

TEST_CASE("what cannot be flattened is refused") {
  ModuleText half = OneLoop(6);
  half.at("loop").mutable_called_computation_ids()->RemoveLast();
  CHECK(absl::StrContains(Refusal(half), "a while calls two computations"));
}

}  // namespace
}  // namespace mallocgame::hlo
