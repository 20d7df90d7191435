// Which operands and results HLO has for the accesses of a program.
#include "mallocgame/hlo/import/uses.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "mallocgame/hlo/import/import.h"
#include "tests/catch.h"
#include "tests/hlo/module_text.h"

namespace mallocgame {
namespace {

using hlo_test::ModuleText;
using hlo_test::UnitHardware;

std::shared_ptr<const Program> Import(const std::string& module) {
  ImportInput input;
  input.module = module;
  absl::StatusOr<Imported> imported = ImportHlo(input, UnitHardware());
  INFO(imported.status());
  REQUIRE(imported.ok());
  return imported->program;
}

// Lists uses in order: "add: a@0 b@1 r@result".
std::string Uses(const ModuleText& text) {
  const std::string module = text.Bytes();
  const std::shared_ptr<const Program> program = Import(module);
  const absl::StatusOr<std::vector<HloUse>> uses = FindUses(*program, module);
  INFO(uses.status());
  REQUIRE(uses.ok());
  std::string all, last;
  for (const HloUse& use : *uses) {
    const Access& access = program->access(use.access);
    const std::string& instruction = program->instruction(access.tick).name;
    if (instruction != last) absl::StrAppend(&all, all.empty() ? "" : "; ", instruction, ":");
    last = instruction;
    const std::string place = use.operand ? absl::StrCat(*use.operand) : "result";
    absl::StrAppend(&all, " ", program->buffer(access.buffer).name, "@", place);
    if (!use.index.empty()) absl::StrAppend(&all, "{", absl::StrJoin(use.index, ","), "}");
    if (use.memory_space) absl::StrAppend(&all, "S(", *use.memory_space, ")");
  }
  return all;
}

TEST_CASE("an operand given twice is two uses of one access; views and tuples are seen through") {
  ModuleText m;
  m.Computation("main")
      .Add("p = f32[8,128] parameter()")
      .Add("q = f32[8,128] parameter()")
      .Add("square = f32[8,128] multiply(p, p)")
      .Add("flat = f32[1024] bitcast(square)")
      .Add("pair = (f32[1024], f32[8,128]) tuple(flat, q)")
      .Add("first = f32[1024] get-tuple-element(pair)")
      .Add("r = f32[1024] negate(first)");
  CHECK(Uses(m) == "square: p@0 p@1 square@result; r: square@0 r@result");
}

TEST_CASE("an update in place is named by its operand and by its result") {
  ModuleText m;
  m.Computation("main")
      .Add("p = f32[16,128] parameter()")
      .Add("row = f32[1,128] parameter()")
      .Add("i = s32[] parameter()")
      .Add("copied = f32[16,128] copy(p)")
      .Add("put = f32[16,128] dynamic-update-slice(copied, row, i, i)")
      .Add("r = f32[16,128] negate(put)");
  CHECK(Uses(m) ==
        "copied: p@0 copied@result; put: row@1 copied@0 copied@result; r: copied@0 r@result");
}

TEST_CASE("a kernel may require a memory space for its operands, and an array of one") {
  ModuleText m;
  m.Computation("main")
      .Add("p = f32[16,128] parameter()")
      .Add("q = f32[16,128] parameter()")
      .Add("both = (f32[16,128], f32[16,128]) tuple(p, q)")
      .Add("k = f32[16,128] custom-call(p, q, both)",
           "custom_call_target: 'tpu_custom_call' "
           "backend_config: '{\"custom_call_config\":{\"input_memory_space_colors\":["
           "{\"operand_index\":\"1\",\"color\":\"1\",\"shape_index\":[]},"
           "{\"operand_index\":\"2\",\"color\":\"0\",\"shape_index\":[\"0\"]}]}}'")
      .Add("r = f32[16,128] negate(q)");
  CHECK(Uses(m) == "k: p@0 p@2{0}S(0) q@1S(1) q@2{1} k@result; r: q@0 r@result");
}

TEST_CASE("an array of a tuple has an index, also where a loop is given it") {
  ModuleText m;
  m.Computation("condition")
      .Add("state.c = (s32[], (f32[16,128], f32[16,128])) parameter()")
      .Add("i.c = s32[] get-tuple-element(state.c)")
      .Add("limit = s32[] constant()", "literal { shape { element_type: S32 } s32s: 4 }")
      .Add("less = pred[] compare(i.c, limit)", "comparison_direction: 'LT'");
  m.Computation("body")
      .Add("state.b = (s32[], (f32[16,128], f32[16,128])) parameter()")
      .Add("i.b = s32[] get-tuple-element(state.b)")
      .Add("both.b = (f32[16,128], f32[16,128]) get-tuple-element(state.b)", "tuple_index: 1")
      .Add("table.b = f32[16,128] get-tuple-element(both.b)", "tuple_index: 1")
      .Add("sum.b = f32[16,128] get-tuple-element(both.b)")
      .Add("one = s32[] constant()", "literal { shape { element_type: S32 } s32s: 1 }")
      .Add("more = f32[16,128] add(sum.b, table.b)")
      .Add("next = s32[] add(i.b, one)")
      .Add("both.r = (f32[16,128], f32[16,128]) tuple(more, table.b)")
      .Add("state.r = (s32[], (f32[16,128], f32[16,128])) tuple(next, both.r)");
  m.Computation("main")
      .Add("table = f32[16,128] parameter()")
      .Add("zero = s32[] constant()", "literal { shape { element_type: S32 } s32s: 0 }")
      .Add("start = s32[] copy(zero)")
      .Add("sum = f32[16,128] negate(table)")
      .Add("both = (f32[16,128], f32[16,128]) tuple(sum, table)")
      .Add("init = (s32[], (f32[16,128], f32[16,128])) tuple(start, both)")
      .Add("loop = (s32[], (f32[16,128], f32[16,128])) while(init)", "", {"body", "condition"})
      .Add("both.l = (f32[16,128], f32[16,128]) get-tuple-element(loop)", "tuple_index: 1")
      .Add("sum.l = f32[16,128] get-tuple-element(both.l)")
      .Add("result = f32[16,128] negate(sum.l)");
  const std::string uses = Uses(m);
  INFO(uses);
  CHECK(absl::StrContains(uses, "loop: table@0{1,1} sum@0{1,0};"));
  CHECK(absl::StrContains(uses, "more: table@1 sum@0 sum@result;"));
}

TEST_CASE("a module of another program is refused") {
  ModuleText one, other;
  one.Computation("main").Add("p = f32[8,128] parameter()").Add("r = f32[8,128] negate(p)");
  other.Computation("main").Add("p = f32[8,128] parameter()").Add("s = f32[8,128] negate(p)");
  const std::shared_ptr<const Program> program = Import(one.Bytes());
  const absl::Status status = FindUses(*program, other.Bytes()).status();
  CHECK(status.code() == absl::StatusCode::kInvalidArgument);
  CHECK(absl::StrContains(status.message(), "was not made of this module"));
  CHECK_FALSE(FindUses(*program, "damaged").ok());
}

}  // namespace
}  // namespace mallocgame
