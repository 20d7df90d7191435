// What lies where inside of fused computations follows from operands and results.
#include "mallocgame/hlo/module/memory_spaces.h"

#include <cstdint>
#include <string>

#include "mallocgame/hlo/module/hlo.pb.h"
#include "tests/catch.h"
#include "tests/hlo/module_text.h"

namespace mallocgame::hlo {
namespace {

using hlo_test::ModuleText;

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
  HloProto proto = m.proto();
  SpreadMemorySpaces(*proto.mutable_hlo_module());
  const auto space = [&](const std::string& name) -> int64_t {
    for (const HloComputationProto& computation : proto.hlo_module().computations()) {
      for (const HloInstructionProto& instruction : computation.instructions()) {
        if (instruction.name() == name) return instruction.shape().layout().memory_space();
      }
    }
    return -1;
  };
  for (const std::string name : {"part", "root", "new"}) {
    INFO(name);
    CHECK(space(name) == 1);
  }
  CHECK(space("twice") == 0);
}

}  // namespace
}  // namespace mallocgame::hlo
