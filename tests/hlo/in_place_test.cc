// Which results are updates of operands. A pair is written "operand.array>result array".
#include "mallocgame/hlo/module/in_place.h"

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "mallocgame/hlo/module/hlo.pb.h"
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

TEST_CASE("an array gets another size in place, and a sum over chips takes its operands' places") {
  ModuleText m;
  m.Computation("main")
      .Add("x = f32[4,6] parameter()")
      .Add("y = f32[9] parameter()")
      .Add("n = s32[] parameter()")
      .Add("bounded = f32[4,6] set-dimension-size(x, n)", "dimensions: 1")
      .Add("one = f32[9] all-reduce-start(y)")
      .Add("both = (f32[9], f32[4,6]) all-reduce-start(y, x)")
      .Add("sum = f32[9] all-reduce(y)");
  CHECK(Pairs(m, "bounded") == "0.0>0");
  CHECK(Pairs(m, "one") == "0.0>0");
  CHECK(Pairs(m, "both") == "0.0>0 1.0>1");
  CHECK(Pairs(m, "sum").empty());  // Done at once, it makes a new array.
}

TEST_CASE("a ragged-all-to-all and a permute into parts write into their second operand") {
  ModuleText m;
  m.Computation("main")
      .Add("x = f32[4,2] parameter()")
      .Add("out = f32[6,2] parameter()")
      .Add("i = s32[2] parameter()")
      .Add("at = (s32[], s32[]) parameter()")
      .Add("xs = (f32[4,2], f32[3]) parameter()")
      .Add("outs = (f32[6,2], f32[5]) parameter()")
      .Add("ats = ((s32[], s32[]), (s32[])) parameter()")
      .Add("ragged = f32[6,2] ragged-all-to-all(x, out, i, i, i, i)")
      .Add("part = f32[6,2] collective-permute(x, out, at, at)", "dynamic_slice_sizes: [1, 2]")
      .Add("parts = (f32[6,2], f32[5]) collective-permute(xs, outs, ats, ats)",
           "dynamic_slice_sizes: [1, 2, 3]")
      .Add("start = (f32[4,2], f32[6,2], u32[]) collective-permute-start(x, out, at, at)",
           "dynamic_slice_sizes: [1, 2]")
      .Add(
          "starts = ((f32[4,2], f32[3]), (f32[6,2], f32[5]), u32[]) "
          "collective-permute-start(xs, outs, ats, ats)",
          "dynamic_slice_sizes: [1, 2, 3]")
      .Add("whole = (f32[4,2], f32[6,2], s32[2], s32[2]) collective-permute(x, out, i, i)");
  CHECK(Pairs(m, "ragged") == "1.0>0");
  CHECK(Pairs(m, "part") == "1.0>0");
  CHECK(Pairs(m, "parts") == "1.0>0 1.1>1");
  CHECK(Pairs(m, "start") == "1.0>1");
  CHECK(Pairs(m, "starts") == "1.0>2 1.1>3");
  CHECK(Pairs(m, "whole").empty());  // four arrays, each of which goes whole to a new one
}

const char kSecondIsResult[] =
    "output_operand_aliasing { output_shape_index: 1 operand_index: 1 operand_shape_index: 0 }";

ModuleText Wrapped() {
  ModuleText m;
  m.Computation("wrapped", true)
      .Add("wp = f32[3] parameter()")
      .Add("wq = (f32[8], f32[2]) parameter()")
      .Add("wr = f32[8] custom-call(wp, wq)");
  m.Computation("main").Add("p = f32[3] parameter()").Add("q = (f32[8], f32[2]) parameter()");
  return m;
}

TEST_CASE("an asynchronous start declares which argument is the result") {
  ModuleText m = Wrapped();
  m.Add("start = ((f32[3], (f32[8], f32[2])), f32[8], s32[]) async-start(p, q)", kSecondIsResult,
        {"wrapped"})
      .Add("wait = ((f32[3], (f32[8], f32[2])), f32[8], s32[]) async-update(start)")
      .Add("done = f32[8] async-done(wait)");
  CHECK(Pairs(m, "start") == "1.0>3");
  CHECK(Pairs(m, "wait").empty());  // It is its operand, and brings nothing.
  CHECK(Pairs(m, "done") == "0.1>0");
}

TEST_CASE("an argument that comes with a later update is the result of that update") {
  ModuleText m = Wrapped();
  m.Add("start = ((f32[3]), (), s32[]) async-start(p)", kSecondIsResult, {"wrapped"})
      .Add("update = ((f32[3], (f32[8], f32[2])), f32[8], s32[]) async-update(start, q)")
      .Add("done = f32[8] async-done(update)");
  CHECK(Pairs(m, "start").empty());  // It has neither the argument nor the result.
  CHECK(Pairs(m, "update") == "1.0>3");
  CHECK(Pairs(m, "done") == "0.1>0");
  // In a loop it can't be seen where the chain began.
  ModuleText loop;
  loop.Computation("body", true)
      .Add("b = (((f32[3], (f32[8], f32[2])), f32[8], s32[])) parameter()")
      .Add("chain = ((f32[3], (f32[8], f32[2])), f32[8], s32[]) get-tuple-element(b)")
      .Add("end = f32[8] async-done(chain)");
  loop.Computation("main").Add("p = f32[8] parameter()");
  CHECK(Pairs(loop, "end").empty());
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

TEST_CASE("any update in place may be at the root of a fusion, and elements of tuples lead to it") {
  CHECK(Pairs(Fusion("f32[8]", {"cut = f32[8] set-dimension-size(fy, fi)"}), "f") == "2.0>0");
  CHECK(Pairs(Fusion("f32[8]", {"both = (f32[8], f32[8]) scatter(fx, fy, fi, fu, fu)",
                                "second = f32[8] get-tuple-element(both)"}),
              "f") == "1.0>0");
  ModuleText m = Fusion(
      "(f32[8], f32[8])",
      {"call = (f32[8], f32[2], f32[8]) custom-call(fu, fx)", "a = f32[8] get-tuple-element(call)",
       "b = f32[8] get-tuple-element(call)", "r = (f32[8], f32[8]) tuple(a, b)"});
  m.at("b").set_tuple_index(2);
  auto& alias = *m.at("call").add_output_operand_aliasing();
  alias.add_output_shape_index(2);
  alias.set_operand_index(1);
  CHECK(Pairs(m, "f") == "1.0>1");
}

TEST_CASE("what a nested fusion declares counts below an update, not at the root") {
  // inner(ix, iu) declares that its result is ix; its computation makes a new array.
  const auto with_copy = [](const std::vector<std::string>& body) {
    ModuleText m = Fusion("f32[8]", body);
    m.at("iput").set_opcode("negate");
    while (m.at("iput").operand_ids_size() > 1) m.at("iput").mutable_operand_ids()->RemoveLast();
    m.at("same").add_output_operand_aliasing()->set_operand_index(0);
    return m;
  };
  CHECK(Pairs(with_copy({"same = f32[8] fusion(fx, fu)",
                         "put = f32[8] dynamic-update-slice(same, fu, fi)"}),
              "f") == "1.0>0");
  CHECK(Pairs(with_copy({"same = f32[8] fusion(fx, fu)", "view = f32[8] bitcast(same)"}), "f")
            .empty());
}

TEST_CASE("a fusion updates nothing in place unless there is an update on the way") {
  // It passes x on: the result is a copy of it.
  CHECK(Pairs(Fusion("f32[8]", {"same = f32[8] bitcast(fx)"}), "f").empty());
  // The update is of something computed, not of a parameter.
  CHECK(Pairs(Fusion("f32[8]", {"sum = f32[8] add(fx, fy)",
                                "put = f32[8] dynamic-update-slice(sum, fu, fi)"}),
              "f")
            .empty());
  // XLA sees one update. To it what an earlier one made is a new array.
  CHECK(Pairs(Fusion("f32[8]", {"first = f32[8] dynamic-update-slice(fx, fu, fi)",
                                "put = f32[8] dynamic-update-slice(first, fu, fi)"}),
              "f")
            .empty());
}

}  // namespace
}  // namespace mallocgame::hlo
