// Which opcodes there are, and which modules are refused for theirs.
#include "mallocgame/hlo/module/opcodes.h"

#include <string>

#include "mallocgame/hlo/import/import.h"
#include "mallocgame/hlo/module/hlo.pb.h"
#include "tests/catch.h"
#include "tests/hlo/module_text.h"

namespace mallocgame::hlo {
namespace {

using hlo_test::ModuleText;

std::string OpcodeRefusal(const ModuleText& text) {
  return std::string(CheckOpcodes(*hlo_test::Parse(text)).message());
}

TEST_CASE("an opcode says what it computes, if XLA has it") {
  CHECK(WhatComputes("add-dependency") == Computes::kNothing);
  CHECK(WhatComputes("tuple") == Computes::kNothing);
  CHECK(WhatComputes("abs") == Computes::kOperation);
  CHECK(WhatComputes("xor") == Computes::kOperation);
  CHECK(WhatComputes("acos") == Computes::kTranscendental);
  CHECK(WhatComputes("tanh") == Computes::kTranscendental);
  CHECK(WhatComputes("all-reduce") == Computes::kByItsOwnRule);
  CHECK(WhatComputes("while") == Computes::kByItsOwnRule);
  for (const char* opcode :
       {"all-gather-start", "bitcast-convert", "collective-permute-done", "convolution",
        "dynamic-update-slice", "exponential-minus-one", "get-tuple-element", "opt-barrier",
        "ragged-dot", "rng-get-and-update-state", "round-nearest-even", "select-and-scatter",
        "shift-right-logical", "stochastic-convert", "triangular-solve"}) {
    INFO(opcode);
    CHECK(WhatComputes(opcode).has_value());
  }
  CHECK_FALSE(WhatComputes("").has_value());
  CHECK_FALSE(WhatComputes("zip").has_value());
}

TEST_CASE("an opcode that XLA does not have is refused, in fusions too") {
  ModuleText m;
  m.Computation("fused", true).Add("a = f32[8] parameter()").Add("b = f32[8] negate(a)");
  m.Computation("main")
      .Add("p = f32[8] parameter()")
      .Add("f = f32[8] fusion(p)", "", {"fused"})
      .Add("r = f32[8] abs(f)");
  CHECK(OpcodeRefusal(m).empty());
  m.at("b").set_opcode("winograd");
  CHECK(OpcodeRefusal(m) ==
        "instruction 'b' of computation 'fused': the opcode 'winograd' is unknown; known are those "
        "of XLA of August 2026. What it costs and what it updates in place can't be told: a newer "
        "mallocgame may know it");
  const std::string bytes = m.Bytes();
  CHECK(ImportHlo({bytes, {}, {}}, hlo_test::UnitHardware()).status().message() ==
        OpcodeRefusal(m));
}

TEST_CASE("a scan on the time axis is refused unless it is associative") {
  ModuleText m;
  m.Computation("step", true)
      .Add("x = f32[8] parameter()")
      .Add("carry = f32[8] parameter()")
      .Add("sum = f32[8] add(x, carry)")
      .Add("both = (f32[8], f32[8]) tuple(sum, sum)");
  m.Computation("main")
      .Add("p = f32[16,8] parameter()")
      .Add("q = f32[8] parameter()")
      .Add("s = (f32[16,8], f32[8]) scan(p, q)", "dimensions: 0", {"step"});
  CHECK(OpcodeRefusal(m) ==
        "instruction 's' of computation 'main': a scan that is not associative runs a computation "
        "for each of its steps; dump the module after XLA's pass ScanExpander, which makes it a "
        "while");
  m.at("s").set_is_associative(TRI_STATE_TRUE);
  CHECK(OpcodeRefusal(m).empty());
}

}  // namespace
}  // namespace mallocgame::hlo
