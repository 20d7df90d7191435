// How often loops run: recorded, counted from constants, run, or unknown.
#include "mallocgame/hlo/trip_count.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/catch.h"
#include "tests/hlo/module_text.h"

namespace mallocgame::hlo {
namespace {

using hlo_test::ModuleText;

std::string Constant(int64_t value) {
  return absl::StrCat("literal { shape { element_type: S32 } s32s: ", value, " }");
}

// i = start; while (i DIRECTION limit) i = i OP step
ModuleText Counter(int64_t start, const std::string& direction, int64_t limit,
                   const std::string& op, int64_t step) {
  ModuleText m;
  m.Computation("condition")
      .Add("c = (s32[]) parameter()")
      .Add("ci = s32[] get-tuple-element(c)")
      .Add("limit = s32[] constant()", Constant(limit))
      .Add("go = pred[] compare(ci, limit)",
           absl::StrCat("comparison_direction: '", direction, "'"));
  m.Computation("body")
      .Add("b = (s32[]) parameter()")
      .Add("bi = s32[] get-tuple-element(b)")
      .Add("saved = s32[] copy(bi)")
      .Add("step = s32[] constant()", Constant(step))
      .Add(absl::StrCat("next = s32[] ", op, "(saved, step)"))
      .Add("root = (s32[]) tuple(next)");
  m.Computation("main")
      .Add("start = s32[] constant()", Constant(start))
      .Add("first = s32[] copy(start)")
      .Add("init = (s32[]) tuple(first)")
      .Add("loop = (s32[]) while(init)", "", {"body", "condition"});
  return m;
}

std::optional<int64_t> Count(const ModuleText& text) {
  const std::string bytes = text.Bytes();
  const auto module = Module::Parse(bytes, "m");
  INFO(module.status());
  REQUIRE(module.ok());
  return TripCounter(**module).Count((*module)->FindByName("loop").value());
}

TEST_CASE("an induction variable with a constant start, step and limit") {
  CHECK(Count(Counter(0, "LT", 64, "add", 1)) == 64);
  CHECK(Count(Counter(3, "LT", 10, "add", 2)) == 4);
  CHECK(Count(Counter(0, "LT", 2'000'000'000, "add", 1)) == 2'000'000'000);
  CHECK(Count(Counter(5, "LT", 5, "add", 1)) == 0);
}

TEST_CASE("other counters are run") {
  CHECK(Count(Counter(10, "GT", 0, "subtract", 3)) == 4);
  CHECK(Count(Counter(0, "NE", 8, "add", 2)) == 4);
  CHECK(Count(Counter(1, "LE", 100, "multiply", 3)) == 5);
}

TEST_CASE("loops that never end, or that nobody can count, are unknown") {
  CHECK(Count(Counter(0, "GE", 0, "multiply", 1)) == std::nullopt);
  CHECK(Count(Counter(0, "NE", 7, "add", 2)) == std::nullopt);
  ModuleText data = Counter(0, "LT", 64, "add", 1);
  data.at("start").set_opcode("rng");
  CHECK(Count(data) == std::nullopt);
}

TEST_CASE("a recorded count wins") {
  ModuleText m = Counter(0, "LT", 64, "add", 1);
  m.at("loop").set_backend_config(
      R"({"known_trip_count":{"n":"27"},"known_init_step":{"init":"0"}})");
  CHECK(Count(m) == 27);
  m.at("loop").set_backend_config(R"({"known_trip_count":{"n":28}})");
  CHECK(Count(m) == 28);
  for (const char* odd : {"{\"known_trip_count\":{\"n\":\"-3\"}}", "{\"known_trip_count\":7}",
                          "known_trip_count", "[[[["}) {
    m.at("loop").set_backend_config(odd);
    CHECK(Count(m) == 64);
  }
}

TEST_CASE("a condition in a fusion") {
  ModuleText m;
  m.Computation("compare", true)
      .Add("x = s32[] parameter()")
      .Add("y = s32[] parameter()")
      .Add("less = pred[] compare(x, y)", "comparison_direction: 'LT'");
  m.Computation("condition")
      .Add("c = (s32[], s32[]) parameter()")
      .Add("ci = s32[] get-tuple-element(c)")
      .Add("cn = s32[] get-tuple-element(c)", "tuple_index: 1")
      .Add("go = pred[] fusion(ci, cn)", "", {"compare"});
  m.Computation("body")
      .Add("b = (s32[], s32[]) parameter()")
      .Add("bi = s32[] get-tuple-element(b)")
      .Add("bn = s32[] get-tuple-element(b)", "tuple_index: 1")
      .Add("step = s32[] constant()", Constant(1))
      .Add("next = s32[] add(step, bi)")
      .Add("root = (s32[], s32[]) tuple(next, bn)");
  m.Computation("main")
      .Add("start = s32[] constant()", Constant(0))
      .Add("limit = s32[] constant()", Constant(42))
      .Add("init = (s32[], s32[]) tuple(start, limit)")
      .Add("loop = (s32[], s32[]) while(init)", "", {"body", "condition"});
  CHECK(Count(m) == 42);
}

}  // namespace
}  // namespace mallocgame::hlo
