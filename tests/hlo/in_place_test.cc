// Which results are updates of operands. A pair is written "operand.array>result array".
#include "mallocgame/hlo/in_place.h"

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "mallocgame/hlo/hlo.pb.h"
#include "tests/catch.h"
#include "tests/hlo/module_text.h"

namespace mallocgame::hlo {
namespace {

using hlo_test::ModuleText;

absl::StatusOr<std::vector<InPlacePair>> TryPairs(const ModuleText& text, const std::string& name) {
  const auto module = hlo_test::Parse(text);
  return InPlaceFinder(*module).PairsOf(hlo_test::Named(*module, name));
}

std::string Pairs(const ModuleText& text, const std::string& name) {
  const auto pairs = TryPairs(text, name);
  INFO(pairs.status());
  REQUIRE(pairs.ok());
  return absl::StrJoin(*pairs, " ", [](std::string* out, const InPlacePair& pair) {
    absl::StrAppend(out, pair.operand, ".", pair.operand_array, ">", pair.output_array);
  });
}

TEST_CASE("dynamic-update-slice updates its first operand, scatter those before the indices") {
  ModuleText m;
  m.Computation("main")
      .Add("x = f32[8] parameter()")
      .Add("y = f32[8] parameter()")
      .Add("u = f32[2] parameter()")
      .Add("i = s32[] parameter()")
      .Add("put = f32[8] dynamic-update-slice(x, u, i)")
      .Add("one = f32[8] scatter(x, i, u)")
      .Add("two = (f32[8], f32[8]) scatter(x, y, i, u, u)")
      .Add("odd = (f32[8], f32[8]) scatter(x, i, u)")
      .Add("sum = f32[8] add(x, y)");
  CHECK(Pairs(m, "put") == "0.0>0");
  CHECK(Pairs(m, "one") == "0.0>0");
  CHECK(Pairs(m, "two") == "0.0>0 1.0>1");
  CHECK(Pairs(m, "odd").empty());  // two results, but only one operand to update
  CHECK(Pairs(m, "sum").empty());  // reads its operands, and gives something new
}

TEST_CASE("an instruction may declare that it updates operands") {
  ModuleText m;
  m.Computation("main")
      .Add("x = f32[8] parameter()")
      .Add("pair = (f32[4], f32[8]) parameter()")
      .Add(
          "call = (f32[8], f32[4], f32[8]) custom-call(x, pair)",
          "output_operand_aliasing { output_shape_index: 0 operand_index: 0 } "
          "output_operand_aliasing { output_shape_index: 2 operand_index: 1 operand_shape_index: 1 "
          "}");
  CHECK(Pairs(m, "call") == "0.0>0 1.1>2");

  const auto refusal = [&](int alias, int64_t operand) {
    ModuleText wrong = m;
    wrong.at("call").mutable_output_operand_aliasing(alias)->set_operand_index(operand);
    return std::string(TryPairs(wrong, "call").status().message());
  };
  CHECK(absl::StrContains(refusal(0, 2), "'call' of computation 'main': aliases operand 2 of 2"));
  // Result 0 is one array, operand 1 as a whole has two.
  CHECK(absl::StrContains(refusal(0, 1), "aliases an output of 1 arrays with an operand of 2"));
  CHECK(absl::StrContains(refusal(1, 0), "no shape at index {1}"));
}

// main: f = fusion(u, x, y) of `body`, where the body's parameters are fu, fx, fy and its index is
// fi.
ModuleText Fusion(const std::string& shape, const std::vector<std::string>& body) {
  ModuleText m;
  m.Computation("inner", true)
      .Add("ix = f32[8] parameter()")
      .Add("iu = f32[2] parameter()")
      .Add("ii = s32[] constant()")
      .Add("iput = f32[8] dynamic-update-slice(ix, iu, ii)");
  m.Computation("fused", true)
      .Add("fu = f32[2] parameter()")
      .Add("fx = f32[8] parameter()")
      .Add("fy = f32[8] parameter()")
      .Add("fi = s32[] constant()");
  for (const std::string& line : body) {
    const bool nested = absl::StrContains(line, " fusion(");
    m.Add(line, "", nested ? std::vector<std::string>{"inner"} : std::vector<std::string>{});
  }
  m.Computation("main")
      .Add("u = f32[2] parameter()")
      .Add("x = f32[8] parameter()")
      .Add("y = f32[8] parameter()")
      .Add(absl::StrCat("f = ", shape, " fusion(u, x, y)"), "", {"fused"});
  return m;
}

TEST_CASE("a fusion updates the parameter that its root is an update of") {
  CHECK(Pairs(Fusion("f32[8]", {"put = f32[8] dynamic-update-slice(fx, fu, fi)"}), "f") == "1.0>0");
  // seen through a bitcast before the update, and one after it
  CHECK(Pairs(Fusion("f32[2,4]", {"view = f32[8] bitcast(fy)",
                                  "put = f32[8] dynamic-update-slice(view, fu, fi)",
                                  "back = f32[2,4] bitcast(put)"}),
              "f") == "2.0>0");
  // seen through a nested fusion; in a tuple each element by itself
  CHECK(Pairs(Fusion("(f32[8], f32[8], f32[8])",
                     {"new = f32[8] negate(fy)", "put = f32[8] fusion(fx, fu)",
                      "other = f32[8] dynamic-update-slice(fy, fu, fi)",
                      "r = (f32[8], f32[8], f32[8]) tuple(new, put, other)"}),
              "f") == "1.0>1 2.0>2");
}

TEST_CASE("a fusion updates nothing in place unless there is an update on the way") {
  // It passes x on: the result is a copy of it.
  CHECK(Pairs(Fusion("f32[8]", {"same = f32[8] bitcast(fx)"}), "f").empty());
  // The update is of something computed, not of a parameter.
  CHECK(Pairs(Fusion("f32[8]", {"sum = f32[8] add(fx, fy)",
                                "put = f32[8] dynamic-update-slice(sum, fu, fi)"}),
              "f")
            .empty());
}

}  // namespace
}  // namespace mallocgame::hlo
