// How often loops run: the count is recorded, follows from constants, is found by running, or is
// unknown.
#include "mallocgame/hlo/module/trip_count.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/text_format.h"
#include "mallocgame/hlo/module/hlo.pb.h"
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

TEST_CASE("a counter may go down, be compared in any way, and count to the largest integer") {
  constexpr int64_t kMost = 2'147'483'647;
  CHECK(Count(Counter(10, "GT", 0, "subtract", 3)) == 4);
  CHECK(Count(Counter(10, "GE", 0, "add", -1)) == 11);
  CHECK(Count(Counter(1'000'000'000, "GT", -1'000'000'000, "subtract", 1)) == 2'000'000'000);
  CHECK(Count(Counter(-3, "LE", 7, "add", 5)) == 3);
  CHECK(Count(Counter(0, "NE", 8, "add", 2)) == 4);
  CHECK(Count(Counter(1'000'000'000, "NE", 0, "subtract", 1)) == 1'000'000'000);
  CHECK(Count(Counter(4, "EQ", 4, "add", 1)) == 1);
  CHECK(Count(Counter(5, "EQ", 4, "add", 1)) == 0);
  CHECK(Count(Counter(0, "LT", kMost, "add", 1)) == kMost);
  CHECK(Count(Counter(-kMost - 1, "LT", kMost, "add", 5)) == 858'993'459);
  CHECK(Count(Counter(9, "LT", 7, "add", 1)) == 0);
  CHECK(Count(Counter(0, "GT", 7, "subtract", 1)) == 0);
}

TEST_CASE("a counter that wraps around is run as it does") {
  // 2^31 - 2 and 2^31 - 1 are at most 2^31 - 1, and so is every number behind them.
  CHECK(Count(Counter(2'147'483'646, "LE", 2'147'483'647, "add", 1)) == std::nullopt);
  // Adding 1 to 2^31 - 1 gives -2^31, which ends it.
  CHECK(Count(Counter(2'147'483'600, "GT", 0, "add", 1)) == 48);
  CHECK(Count(Counter(1, "GT", 0, "multiply", 2)) == 31);
}

TEST_CASE("other counters are run") {
  CHECK(Count(Counter(1, "LE", 100, "multiply", 3)) == 5);
  CHECK(Count(Counter(100, "GT", 0, "divide", 3)) == 5);
  CHECK(Count(Counter(1024, "NE", 1, "shift-right-logical", 1)) == 10);
  CHECK(Count(Counter(3, "LT", 1000, "shift-left", 4)) == 3);
  CHECK(Count(Counter(7, "NE", 2, "xor", 5)) == 1);
}

using Lines = std::vector<std::pair<std::string, std::string>>;  // what ModuleText::Add takes

std::string Constant(const std::string& type, int64_t value) {
  return absl::StrCat("literal { shape { element_type: ", absl::AsciiStrToUpper(type), " } ", type,
                      "s: ", value, " }");
}

// for (i = start; CONDITION; i = NEXT); the condition is made of ci, and `next` of bi.
ModuleText Written(const std::string& type, int64_t start, const Lines& condition,
                   const Lines& next) {
  const std::string number = type + "[]", tuple = absl::StrCat("(", number, ")");
  ModuleText m;
  m.Computation("condition")
      .Add(absl::StrCat("c = ", tuple, " parameter()"))
      .Add(absl::StrCat("ci = ", number, " get-tuple-element(c)"));
  for (const auto& [line, extra] : condition) m.Add(line, extra);
  m.Computation("body")
      .Add(absl::StrCat("b = ", tuple, " parameter()"))
      .Add(absl::StrCat("bi = ", number, " get-tuple-element(b)"));
  for (const auto& [line, extra] : next) m.Add(line, extra);
  m.Add(absl::StrCat("root = ", tuple, " tuple(next)"));
  m.Computation("main")
      .Add(absl::StrCat("start = ", number, " constant()"), Constant(type, start))
      .Add(absl::StrCat("init = ", tuple, " tuple(start)"))
      .Add(absl::StrCat("loop = ", tuple, " while(init)"), "", {"body", "condition"});
  return m;
}

TEST_CASE("conditions and steps are seen through what they are made of") {
  // while not (10^9 - 2 i < 1), i + 5 - 2
  CHECK(Count(Written("s32", 0,
                      {{"two = s32[] constant()", Constant("s32", 2)},
                       {"least = s32[] constant()", Constant("s32", 1)},
                       {"n = s32[] constant()", Constant("s32", 1'000'000'000)},
                       {"twice = s32[] multiply(two, ci)", ""},
                       {"left = s32[] subtract(n, twice)", ""},
                       {"done = pred[] compare(left, least)", "comparison_direction: 'LT'"},
                       {"go = pred[] not(done)", ""}},
                      {{"five = s32[] constant()", Constant("s32", 5)},
                       {"back = s32[] constant()", Constant("s32", 2)},
                       {"more = s32[] add(bi, five)", ""},
                       {"next = s32[] subtract(more, back)", ""}})) == 166'666'667);
  const Lines not_zero = {{"zero = u32[] constant()", Constant("u32", 0)},
                          {"go = pred[] compare(ci, zero)", "comparison_direction: 'NE'"}};
  const auto add = [](const std::string& type, int64_t step) {
    return Lines{{absl::StrCat("step = ", type, "[] constant()"), Constant(type, step)},
                 {absl::StrCat("next = ", type, "[] add(bi, step)"), ""}};
  };
  // An unsigned counter goes down by adding 2^32 - 1.
  CHECK(Count(Written("u32", 3'000'000'000, not_zero, add("u32", 4'294'967'295))) == 3'000'000'000);
  // An unsigned number is never less than 0.
  CHECK(Count(Written("u32", 3,
                      {{"zero = u32[] constant()", Constant("u32", 0)},
                       {"go = pred[] compare(ci, zero)", "comparison_direction: 'GE'"}},
                      add("u32", 4'294'967'295))) == std::nullopt);
  for (const auto& [type, limit] : {std::pair("u64", 5'000'000'000),
                                    {"u32", 4'294'967'295},
                                    {"s64", 3'000'000'000},
                                    {"s32", 2'147'483'647}}) {
    const Lines less = {{absl::StrCat("n = ", type, "[] constant()"), Constant(type, limit)},
                        {"go = pred[] compare(ci, n)", "comparison_direction: 'LT'"}};
    CHECK(Count(Written(type, 0, less, add(type, 1))) == limit);
  }
  // i - 1 < 4 as unsigned numbers, from 0 on: 2^32 - 1 is not less than 4.
  CHECK(Count(Written("u32", 0,
                      {{"one = u32[] constant()", Constant("u32", 1)},
                       {"n = u32[] constant()", Constant("u32", 4)},
                       {"before = u32[] subtract(ci, one)", ""},
                       {"go = pred[] compare(before, n)", "comparison_direction: 'LT'"}},
                      add("u32", 1))) == 0);
}

TEST_CASE("a loop may carry one number instead of a tuple") {
  ModuleText m;
  m.Computation("condition")
      .Add("c = s64[] parameter()")
      .Add("n = s64[] constant()", "literal { shape { element_type: S64 } s64s: 12 }")
      .Add("go = pred[] compare(c, n)", "comparison_direction: 'LT'");
  m.Computation("body")
      .Add("b = s64[] parameter()")
      .Add("one = s64[] constant()", "literal { shape { element_type: S64 } s64s: 5 }")
      .Add("next = s64[] add(b, one)");
  m.Computation("main")
      .Add("start = s64[] constant()", "literal { shape { element_type: S64 } s64s: -1 }")
      .Add("loop = s64[] while(start)", "", {"body", "condition"});
  CHECK(Count(m) == 3);
}

TEST_CASE("a counter in the fusion of the body, with others") {
  ModuleText m;
  m.Computation("fused", true)
      .Add("x = s32[] parameter()")
      .Add("y = f32[8] parameter()")
      .Add("three = s32[] constant()", Literal(3))
      .Add("sum = s32[] add(three, x)")
      .Add("z = f32[8] negate(y)")
      .Add("both = (f32[8], s32[]) tuple(z, sum)");
  m.Computation("condition")
      .Add("c = (s32[], f32[8]) parameter()")
      .Add("ci = s32[] get-tuple-element(c)")
      .Add("n = s32[] constant()", Literal(1'000'000'000))
      .Add("go = pred[] compare(n, ci)", "comparison_direction: 'GE'");
  m.Computation("body")
      .Add("b = (s32[], f32[8]) parameter()")
      .Add("bi = s32[] get-tuple-element(b)")
      .Add("bx = f32[8] get-tuple-element(b)", "tuple_index: 1")
      .Add("f = (f32[8], s32[]) fusion(bi, bx)", "", {"fused"})
      .Add("fx = f32[8] get-tuple-element(f)")
      .Add("fi = s32[] get-tuple-element(f)", "tuple_index: 1")
      .Add("root = (s32[], f32[8]) tuple(fi, fx)");
  m.Computation("main")
      .Add("p = f32[8] parameter()")
      .Add("start = s32[] constant()", Literal(1))
      .Add("init = (s32[], f32[8]) tuple(start, p)")
      .Add("loop = (s32[], f32[8]) while(init)", "", {"body", "condition"});
  CHECK(Count(m) == 333'333'334);
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
  CHECK(count(Constant("s64", 300)) == 300);
  CHECK(count(Constant("u32", 65'535)) == 65'535);
  CHECK(count(Constant("u64", 70'000)) == 70'000);
  CHECK(count("literal { shape { element_type: U8 } u8s: '\\377' }") == 255);
  CHECK(count("literal { shape { element_type: S8 } s8s: '\\377' }") == 0);           // -1
  CHECK(count("literal { shape { element_type: U16 } u16s: '\\001\\002' }") == 513);  // 1 + 2 * 256
  CHECK(count("literal { shape { element_type: PRED } preds: true }") == 1);
  // no value, too few bytes, no integer
  CHECK(count("literal { shape { element_type: S32 } }") == std::nullopt);
  CHECK(count("literal { shape { element_type: U16 } u16s: '\\001' }") == std::nullopt);
  CHECK(count("literal { shape { element_type: F32 } }") == std::nullopt);
}

TEST_CASE("a loop that takes too long to run is unknown, and leaves half of the work to others") {
  // "xor" is run and not computed: i is 1 0 1 0 ... A trip takes a handful of evaluations, and two
  // million are allowed for the module.
  const auto endless = hlo_test::Parse(Counter(0, "LT", 2, "xor", 1));
  TripCounter counter(*endless);
  const int32_t loop = hlo_test::Named(*endless, "loop");
  for (int k = 0; k < 40; ++k) CHECK(counter.Count(loop) == std::nullopt);
  // 3^k mod 2^32 comes back to 1 after 2^30 trips.
  CHECK(Count(Counter(3, "NE", 1, "multiply", 3)) == std::nullopt);
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
