// What lies where inside of fused computations follows from operands and results.
#include "mallocgame/hlo/module/memory_spaces.h"

#include <cstdint>
#include <map>
#include <string>

#include "mallocgame/hlo/module/hlo.pb.h"
#include "tests/catch.h"
#include "tests/hlo/module_text.h"

namespace mallocgame::hlo {
namespace {

using hlo_test::ModuleText;

// The memory spaces of all instructions afterwards.
std::map<std::string, int64_t> Spread(ModuleText text) {
  HloProto& proto = text.proto();
  SpreadMemorySpaces(*proto.mutable_hlo_module());
  std::map<std::string, int64_t> spaces;
  for (const HloComputationProto& computation : proto.hlo_module().computations()) {
    for (const HloInstructionProto& instruction : computation.instructions())
      spaces[instruction.name()] = instruction.shape().layout().memory_space();
  }
  return spaces;
}

TEST_CASE("a fused computation has its operands and results, and what is updated, where they lie") {
  ModuleText m;
  m.Computation("fused", /*fused=*/true)
      .Add("new = f32[8] custom-call()", "custom_call_target: 'AllocateBuffer'")
      .Add("part = f32[4] parameter()")
      .Add("twice = f32[4] add(part, part)")
      .Add("at = s32[] constant()")
      .Add("root = f32[8] dynamic-update-slice(new, twice, at)");
  m.Computation("main")
      .Add("p = f32[4]{0:S(1)} parameter()")
      .Add("updated = f32[8]{0:S(1)} fusion(p)", "fusion_kind: 'kLoop'", {"fused"});
  const auto spaces = Spread(m);
  for (const std::string name : {"part", "root", "new"}) {
    INFO(name);
    CHECK(spaces.at(name) == 1);
  }
  CHECK(spaces.at("twice") == 0);
}

// As libtpu 0.0.51 has it.
TEST_CASE("what a fusion in it makes to be updated lies where the result does") {
  ModuleText m;
  m.Computation("inner", /*fused=*/true)
      .Add("input = f32[8,8] parameter()")
      .Add("copied = f32[8,8]{0,1} copy(input)");
  m.Computation("fused", /*fused=*/true)
      .Add("whole = f32[8,8] parameter()")
      .Add("part = f32[1,8] parameter()")
      .Add("at = s32[] constant()")
      .Add("anew = f32[8,8]{0,1} fusion(whole)",
           "fusion_kind: 'kLoop' output_operand_aliasing { operand_index: 0 }", {"inner"})
      .Add("root = f32[8,8] dynamic-update-slice(anew, part, at, at)");
  m.Computation("main")
      .Add("p = f32[8,8]{1,0:S(1)} parameter()")
      .Add("q = f32[1,8] parameter()")
      .Add("updated = f32[8,8]{1,0:S(1)} fusion(p, q)", "fusion_kind: 'kLoop'", {"fused"});
  const auto spaces = Spread(m);
  for (const std::string name : {"whole", "input", "anew", "copied", "root"}) {
    INFO(name);
    CHECK(spaces.at(name) == 1);
  }
  CHECK(spaces.at("part") == 0);
}

}  // namespace
}  // namespace mallocgame::hlo
