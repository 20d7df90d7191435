// How often loops run: the count is recorded, follows from constants, is found by running, or is
// unknown.
#include "mallocgame/hlo/trip_count.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "google/protobuf/text_format.h"
#include "mallocgame/hlo/hlo.pb.h"
#include "tests/catch.h"
#include "tests/hlo/module_text.h"

namespace mallocgame::hlo {
namespace {

using hlo_test::Literal;
using hlo_test::ModuleText;

// for (i = start; i DIRECTION limit; i = i OP step);
ModuleText Counter(int64_t start, const std::string& direction, int64_t limit,
                   const std::string& op, int64_t step) {
  ModuleText m;
  m.Computation("condition")
      .Add("c = (s32[]) parameter()")
      .Add("ci = s32[] get-tuple-element(c)")
      .Add("limit = s32[] constant()", Literal(limit))
      .Add("go = pred[] compare(ci, limit)",
           absl::StrCat("comparison_direction: '", direction, "'"));
  m.Computation("body")
      .Add("b = (s32[]) parameter()")
      .Add("bi = s32[] get-tuple-element(b)")
      .Add("saved = s32[] copy(bi)")
      .Add("step = s32[] constant()", Literal(step))
      .Add(absl::StrCat("next = s32[] ", op, "(saved, step)"))
      .Add("root = (s32[]) tuple(next)");
  m.Computation("main")
      .Add("start = s32[] constant()", Literal(start))
      .Add("first = s32[] copy(start)")
      .Add("init = (s32[]) tuple(first)")
      .Add("loop = (s32[]) while(init)", "", {"body", "condition"});
  return m;
}

std::optional<int64_t> Count(const ModuleText& text) {
  const auto module = hlo_test::Parse(text);
  return TripCounter(*module).Count(hlo_test::Named(*module, "loop"));
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
      .Add("step = s32[] constant()", Literal(1))
      .Add("next = s32[] add(step, bi)")
      .Add("root = (s32[], s32[]) tuple(next, bn)");
  m.Computation("main")
      .Add("start = s32[] constant()", Literal(0))
      .Add("limit = s32[] constant()", Literal(42))
      .Add("init = (s32[], s32[]) tuple(start, limit)")
      .Add("loop = (s32[], s32[]) while(init)", "", {"body", "condition"});
  CHECK(Count(m) == 42);
}

TEST_CASE("limits are read from constants of every integer type") {
  // The counter starts at 0 and runs while it is less than the limit.
  const auto count = [](const std::string& literal) {
    ModuleText m = Counter(0, "LT", 0, "add", 1);
    m.at("limit").clear_literal();
    REQUIRE(google::protobuf::TextFormat::MergeFromString(literal, &m.at("limit")));
    return Count(m);
  };
  CHECK(count("literal { shape { element_type: S64 } s64s: 3000000000 }") == 3'000'000'000);
  CHECK(count("literal { shape { element_type: U32 } u32s: 4294967295 }") == 4'294'967'295);
  CHECK(count("literal { shape { element_type: U8 } u8s: '\\377' }") == 255);
  CHECK(count("literal { shape { element_type: S8 } s8s: '\\377' }") == 0);           // -1
  CHECK(count("literal { shape { element_type: U16 } u16s: '\\001\\002' }") == 513);  // 1 + 2 * 256
  CHECK(count("literal { shape { element_type: PRED } preds: true }") == 1);
  // no value, too few bytes, no integer
  CHECK(count("literal { shape { element_type: S32 } }") == std::nullopt);
  CHECK(count("literal { shape { element_type: U16 } u16s: '\\001' }") == std::nullopt);
  CHECK(count("literal { shape { element_type: F32 } }") == std::nullopt);
}

TEST_CASE("a loop whose numbers overflow is unknown") {
  CHECK(Count(Counter(1, "GT", 0, "multiply", 2)) == std::nullopt);  // 2^63 does not fit
}

TEST_CASE("a loop that takes too long to run is unknown, and uses up the work of its module") {
  // "NE" is run and not computed. A trip takes a handful of evaluations, and two million are
  // allowed.
  CHECK(Count(Counter(0, "NE", 1000, "add", 1)) == 1000);
  const auto module = hlo_test::Parse(Counter(0, "NE", 2'000'000, "add", 1));
  const auto small = hlo_test::Parse(Counter(0, "NE", 1000, "add", 1));
  TripCounter counter(*module);
  CHECK(counter.Count(hlo_test::Named(*module, "loop")) == std::nullopt);
  // What is recorded or follows from constants costs next to nothing; running is over.
  CHECK(counter.Count(hlo_test::Named(*module, "loop")) == std::nullopt);
  CHECK(TripCounter(*small).Count(hlo_test::Named(*small, "loop")) == 1000);
}

TEST_CASE("a step that is not added to the carried element itself is run, not computed") {
  // next = step + saved is the same as saved + step; both are computed, even for a billion trips.
  ModuleText swapped = Counter(0, "LT", 1'000'000'000, "add", 1);
  swapped.at("next").mutable_operand_ids()->SwapElements(0, 1);
  CHECK(Count(swapped) == 1'000'000'000);
  // next = saved + saved doubles: 1 2 4 8 16 are less than 20.
  ModuleText doubled = Counter(1, "LT", 20, "add", 1);
  doubled.at("next").set_operand_ids(1, doubled.at("saved").id());
  CHECK(Count(doubled) == 5);
}

}  // namespace
}  // namespace mallocgame::hlo
