// The time axis of small modules, tick by tick.
#include "mallocgame/hlo/schedule.h"

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "mallocgame/hlo/hlo.pb.h"
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

std::string Refusal(const ModuleText& text, int64_t default_trips = 1) {
  return std::string(Flatten(*hlo_test::Parse(text), default_trips).status().message());
}

TEST_CASE("a while takes two ticks, with its condition and its body between them") {
  const auto module = hlo_test::Parse(OneLoop(6));
  const Schedule schedule = *Flatten(*module, 1);
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
  CHECK(schedule.unknown_trip_counts == 0);
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
  const Schedule schedule = *Flatten(*hlo_test::Parse(nested(3, 4)), 1);
  // Regions: main, outer condition, outer body, inner condition, inner body.
  REQUIRE(schedule.regions.size() == 5);
  CHECK(schedule.regions[2].trips == 4);
  CHECK(schedule.regions[4].trips == 12);
  CHECK(schedule.regions[4].parent == 2);
  CHECK(Refusal(nested(1000, 1'000'000)).empty());
  CHECK(absl::StrContains(Refusal(nested(1001, 1'000'000)),
                          "'i.loop' of computation 'o.body': its body runs 1001 times for each of "
                          "1000000 times; at most 1000000000"));
}

TEST_CASE("a loop that nobody can count gets the default, one that never runs gets one trip") {
  ModuleText data = OneLoop(6);
  data.at("limit").set_opcode("rng");
  const Schedule unknown = *Flatten(*hlo_test::Parse(data), 7);
  CHECK(unknown.unknown_trip_counts == 1);
  CHECK(unknown.loops == std::vector<Loop>{{2, 12, 7, false}});
  // Its body is on the time axis all the same, so it is taken to run once.
  CHECK((*Flatten(*hlo_test::Parse(OneLoop(0)), 7)).loops[0] == Loop{2, 12, 1, true});
  CHECK(absl::StrContains(Refusal(data, 0), "default_trips is 0; allowed are 1 to 1000000000"));
}

TEST_CASE("fused computations are not on the time axis; called ones come before their call") {
  ModuleText m;
  m.Computation("fused", true).Add("f = f32[8] parameter()").Add("g = f32[8] negate(f)");
  m.Computation("callee").Add("a = f32[8] parameter()").Add("b = f32[8] fusion(a)", "", {"fused"});
  m.Computation("main").Add("p = f32[8] parameter()").Add("c = f32[8] call(p)", "", {"callee"});
  const auto module = hlo_test::Parse(m);
  const Schedule schedule = *Flatten(*module, 1);
  CHECK(schedule.ticks.size() == 4);  // p a b c
  CHECK(schedule.tick_of[hlo_test::Named(*module, "c")] == 3);
  CHECK(schedule.tick_of[hlo_test::Named(*module, "g")] == kNone);
  CHECK(schedule.regions[1] == Region{RegionKind::kCall, 0, -1, 1, 3, 1});
}

TEST_CASE("what cannot be flattened is refused") {
  ModuleText twice;
  twice.Computation("callee").Add("a = f32[8] parameter()");
  twice.Computation("main")
      .Add("p = f32[8] parameter()")
      .Add("c = f32[8] call(p)", "", {"callee"})
      .Add("d = f32[8] call(c)", "", {"callee"});
  CHECK(Refusal(twice) ==
        "computation 'callee' is called by two control instructions; one is allowed");

  ModuleText unscheduled = OneLoop(6);
  unscheduled.proto().mutable_hlo_module()->clear_schedule();
  CHECK(Refusal(unscheduled) == "computation 'main' has no schedule; the module must be scheduled");

  ModuleText half = OneLoop(6);
  half.at("loop").mutable_called_computation_ids()->RemoveLast();
  CHECK(absl::StrContains(Refusal(half), "a while calls two computations"));
}

}  // namespace
}  // namespace mallocgame::hlo
