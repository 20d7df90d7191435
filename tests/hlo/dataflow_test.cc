// Which arrays are one storage: each test writes down the sets that it expects.
#include "mallocgame/hlo/module/dataflow.h"

#include <map>
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

using hlo_test::Literal;
using hlo_test::ModuleText;

absl::StatusOr<Dataflow> BuildFor(const Module& module) {
  const absl::StatusOr<Schedule> schedule = Flatten(module);
  INFO(schedule.status());
  REQUIRE(schedule.ok());
  return Dataflow::Build(module, *schedule);
}

// The sets of two or more arrays: "p b; q t{1}". An array of a tuple has its number in braces.
// Arrays and sets are in the order of the module, so callees come first.
std::string Sets(const ModuleText& text) {
  const auto module = hlo_test::Parse(text);
  const absl::StatusOr<Dataflow> dataflow = BuildFor(*module);
  INFO(dataflow.status());
  REQUIRE(dataflow.ok());
  std::map<int32_t, std::vector<std::string>> sets;
  for (const HloInstruction& instruction : module->instructions()) {
    const bool is_tuple = instruction.proto->shape().element_type() == TUPLE;
    for (int32_t k = 0; k < instruction.array_count; ++k) {
      const std::string index = is_tuple ? absl::StrCat("{", k, "}") : "";
      sets[dataflow->SetOf(instruction.first_array + k)].push_back(
          absl::StrCat(instruction.proto->name(), index));
    }
  }
  std::vector<std::string> lines;
  for (const auto& [name, arrays] : sets) {
    if (arrays.size() > 1) lines.push_back(absl::StrJoin(arrays, " "));
  }
  return absl::StrJoin(lines, "; ");
}

std::string Refusal(const ModuleText& text) {
  const auto module = hlo_test::Parse(text);
  return std::string(BuildFor(*module).status().message());
}

TEST_CASE("a bitcast is its operand, a tuple is its elements, and an element is the tuple's") {
  ModuleText m;
  m.Computation("main")
      .Add("p = f32[8,128] parameter()")
      .Add("q = f32[8,128] parameter()")
      .Add("flat = f32[1024] bitcast(p)")
      .Add("pair = (f32[1024], f32[8,128]) tuple(flat, q)")
      .Add("nest = ((f32[1024], f32[8,128]), f32[8,128]) tuple(pair, p)")
      .Add("inner = (f32[1024], f32[8,128]) get-tuple-element(nest)")
      .Add("second = f32[8,128] get-tuple-element(inner)", "tuple_index: 1")
      .Add("r = f32[8,128] negate(second)");
  // p is in `nest` twice: flattened as its first array, and as its third. r is new storage.
  CHECK(Sets(m) == "p flat pair{0} nest{0} nest{2} inner{0}; q pair{1} nest{1} inner{1} second");
}

TEST_CASE("a loop is given, carries and gives back the same storage") {
  ModuleText m;
  m.Computation("condition")
      .Add("c = (s32[], f32[8]) parameter()")
      .Add("ci = s32[] get-tuple-element(c)")
      .Add("limit = s32[] constant()", Literal(4))
      .Add("go = pred[] compare(ci, limit)", "comparison_direction: 'LT'");
  m.Computation("body")
      .Add("b = (s32[], f32[8]) parameter()")
      .Add("bi = s32[] get-tuple-element(b)")
      .Add("bx = f32[8] get-tuple-element(b)", "tuple_index: 1")
      .Add("next = s32[] add(bi, bi)")
      .Add("y = f32[8] negate(bx)")
      .Add("br = (s32[], f32[8]) tuple(next, y)");
  m.Computation("main")
      .Add("i = s32[] parameter()")
      .Add("x = f32[8] parameter()")
      .Add("init = (s32[], f32[8]) tuple(i, x)")
      .Add("loop = (s32[], f32[8]) while(init)", "", {"body", "condition"});
  CHECK(Sets(m) ==
        "c{0} ci b{0} bi next br{0} i init{0} loop{0}; c{1} b{1} bx y br{1} x init{1} loop{1}");
}

TEST_CASE("branches give their conditional's storage, a callee gives its call's") {
  ModuleText m;
  m.Computation("left").Add("xl = f32[8] parameter()").Add("yl = f32[8] negate(xl)");
  m.Computation("right").Add("xr = f32[8] parameter()").Add("yr = f32[8] abs(xr)");
  m.Computation("callee").Add("a = f32[8] parameter()").Add("b = f32[8] negate(a)");
  m.Computation("main")
      .Add("which = pred[] parameter()")
      .Add("p = f32[8] parameter()")
      .Add("q = f32[8] parameter()")
      .Add("either = f32[8] conditional(which, p, q)", "", {"left", "right"})
      .Add("called = f32[8] call(either)", "", {"callee"});
  // The operands after the first are those of the branches, in order.
  CHECK(Sets(m) == "xl p; yl yr a either; xr q; b called");
}

TEST_CASE("an update in place and a donated parameter keep their storage") {
  ModuleText m;
  m.Computation("main")
      .Add("p = f32[8,128] parameter()")
      .Add("row = f32[1,128] parameter()")
      .Add("i = s32[] parameter()")
      .Add("mine = f32[8,128] copy(p)")
      .Add("put = f32[8,128] dynamic-update-slice(mine, row, i, i)")
      .Add("r = (f32[8,128], f32[1,128]) tuple(put, row)");
  CHECK(Sets(m) == "row r{1}; mine put r{0}");
  m.Donate(0, 0);
  CHECK(Sets(m) == "p mine put r{0}; row r{1}");
  m.Donate(0, 7);
  CHECK(Refusal(m) == "input_output_alias: the entry has no parameter 7");
}

TEST_CASE("an asynchronous start passes its operand on; its end gives what the start made") {
  ModuleText m;
  m.Computation("wrapped", true).Add("w = f32[8] parameter()").Add("part = f32[4] slice(w)");
  m.Computation("main")
      .Add("p = f32[8] parameter()")
      .Add("copy = (f32[8], f32[8], u32[]) copy-start(p)")
      .Add("there = f32[8] copy-done(copy)")
      .Add("slice = ((f32[8]), f32[4], s32[]) async-start(there)", "", {"wrapped"})
      .Add("end = f32[4] async-done(slice)");
  // copy-start gives (destination, source, context); async-start gives ((operands), result,
  // context).
  CHECK(Sets(m) == "w copy{0} there slice{0}; part slice{1} end; p copy{1}");
}

TEST_CASE("an asynchronous update may bring the operands and have the result") {
  ModuleText m;
  m.Computation("wrapped", true)
      .Add("w = f32[8] parameter()")
      .Add("v = f32[2] parameter()")
      .Add("part = f32[4] gather(w, v)");
  m.Computation("main")
      .Add("p = f32[8] parameter()")
      .Add("q = f32[2] parameter()")
      .Add("start = ((), (), (s32[1], s32[2])) async-start()", "", {"wrapped"})
      .Add("update = ((f32[8], f32[2]), f32[4], (s32[1])) async-update(start, p, q)",
           "output_operand_aliasing { output_shape_index: [2, 0] operand_index: 0 "
           "operand_shape_index: [2, 0] }")
      .Add("end = f32[4] async-done(update)");
  CHECK(Sets(m) == "w p update{0}; v q update{1}; part update{2} end; start{0} update{3}");
  m.at("update").mutable_operand_ids()->RemoveLast();
  m.at("update").mutable_operand_ids()->RemoveLast();
  CHECK(Refusal(m) == "instruction 'update' of computation 'main': arguments: 2 arrays, given 0");
}

TEST_CASE("arguments and result may come one after another, and what is wrapped may update one") {
  ModuleText m;
  m.Computation("wrapped", true)
      .Add("w = f32[8] parameter()")
      .Add("v = f32[2] parameter()")
      .Add("i = s32[] parameter()")
      .Add("put = f32[8] dynamic-update-slice(w, v, i)");
  m.Computation("main")
      .Add("p = f32[8] parameter()")
      .Add("q = f32[2] parameter()")
      .Add("j = s32[] parameter()")
      .Add("start = ((f32[8]), (), s32[]) async-start(p)", "", {"wrapped"})
      .Add("more = ((f32[8], f32[2]), (), s32[]) async-update(start, q)")
      .Add("all = ((f32[8], f32[2], s32[]), f32[8], s32[]) async-update(more, j)")
      .Add("end = f32[8] async-done(all)");
  CHECK(Sets(m) ==
        "w put p start{0} more{0} all{0} all{3} end; v q more{1} all{1}; i j all{2}; "
        "start{1} more{2} all{4}");
  ModuleText late = m;  // The end alone has the result.
  late.at("all").mutable_shape()->mutable_tuple_shapes(1)->Clear();
  late.at("all").mutable_shape()->mutable_tuple_shapes(1)->set_element_type(TUPLE);
  CHECK(Sets(late) ==
        "w put p start{0} more{0} all{0} end; v q more{1} all{1}; i j all{2}; "
        "start{1} more{2} all{3}");
  m.at("end").mutable_shape()->set_element_type(TUPLE);
  CHECK(Refusal(m) == "instruction 'end' of computation 'main': result: 0 arrays against 1");
}

// So XLA's parser makes it of `call-start`: what is wrapped has the shapes of the start.
TEST_CASE("what is wrapped may have neither the arguments nor the result of what it calls") {
  ModuleText m;
  m.Computation("called").Add("a = f32[8] parameter()").Add("b = f32[8] negate(a)");
  m.Computation("wrapped").Add("c = () call()", "", {"called"});
  m.Computation("main")
      .Add("p = f32[8] parameter()")
      .Add("start = ((), (), s32[]) async-start()", "", {"wrapped"})
      .Add("all = ((f32[8]), f32[8], s32[]) async-update(start, p)")
      .Add("end = f32[8] async-done(all)");
  CHECK(Sets(m) == "p all{0}; start{0} all{2}; all{1} end");
}

TEST_CASE("a collective that writes into an operand holds it until it is done") {
  ModuleText m;
  m.Computation("main")
      .Add("x = f32[4,2] parameter()")
      .Add("at = (s32[], s32[]) parameter()")
      .Add("space = f32[6,2] negate(x)")
      .Add("start = (f32[4,2], f32[6,2], u32[]) collective-permute-start(x, space, at, at)",
           "dynamic_slice_sizes: [1, 2]")
      .Add("done = f32[6,2] collective-permute-done(start)")
      .Add("sums = (f32[4,2], f32[6,2]) all-reduce-start(x, done)")
      .Add("end = (f32[4,2], f32[6,2]) all-reduce-done(sums)");
  CHECK(Sets(m) == "x start{0} sums{0} end{0}; space start{1} done sums{1} end{1}");
}

TEST_CASE("a kernel without a body is its operand, which only has to be in some memory") {
  ModuleText m;
  m.Computation("main")
      .Add("p = f32[8] parameter()")
      .Add("hint = f32[8] custom-call(p)", "custom_call_target: 'tpu_custom_call'")
      .Add("kernel = f32[8] custom-call(hint)", "custom_call_target: 'tpu_custom_call'");
  m.at("hint").set_backend_config(R"({"custom_call_config":{"body":""}})");
  m.at("kernel").set_backend_config(R"({"custom_call_config":{"body":"TUw"}})");
  CHECK(Sets(m) == "p hint");
}

TEST_CASE("shapes that must agree and do not are refused, with the instruction") {
  ModuleText m;
  m.Computation("main")
      .Add("p = f32[8] parameter()")
      .Add("pair = (f32[8], f32[8]) tuple(p, p)")
      .Add("nest = ((f32[8], f32[8])) tuple(pair)")
      .Add("e = f32[8] get-tuple-element(nest)");
  CHECK(Refusal(m) ==
        "instruction 'e' of computation 'main': element and result: 1 arrays against 2");
  m.at("e").set_tuple_index(3);
  CHECK(Refusal(m) ==
        "instruction 'e' of computation 'main': instruction 'nest' of computation 'main': no shape "
        "at index {3}");
  m.at("e").set_tuple_index(0);
  m.at("e").set_opcode("custom-call");
  m.at("e").add_output_operand_aliasing()->set_operand_index(2);
  CHECK(Refusal(m) == "instruction 'e' of computation 'main': aliases operand 2 of 1");
}

}  // namespace
}  // namespace mallocgame::hlo
