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

TEST_CASE("an opcode is known by its name, if XLA has it, and says what it computes") {
#define CHECK_NAME(opcode, name) CHECK(OpcodeNamed(name) == Opcode::opcode);
  MALLOCGAME_HLO_OPCODES(CHECK_NAME)
#undef CHECK_NAME
  CHECK(OpcodeNamed("") == kUnknown);
  CHECK(OpcodeNamed("zip") == kUnknown);
  CHECK(WhatComputes(kUnknown) == Computes::kNothing);
  CHECK(WhatComputes(kAddDependency) == Computes::kNothing);
  CHECK(WhatComputes(kTuple) == Computes::kNothing);
  CHECK(WhatComputes(kAbs) == Computes::kOperation);
  CHECK(WhatComputes(kXor) == Computes::kOperation);
  CHECK(WhatComputes(kAcos) == Computes::kTranscendental);
  CHECK(WhatComputes(kTanh) == Computes::kTranscendental);
  CHECK(WhatComputes(kAllReduce) == Computes::kByItsOwnRule);
  CHECK(WhatComputes(kWhile) == Computes::kByItsOwnRule);
}

TEST_CASE("an opcode tells which step of a transfer it is, and of what") {
  CHECK((IsStart(kCopyStart) && BeginsTransfer(kCopyStart) && !IsDone(kCopyStart)));
  CHECK((IsDone(kSendDone) && IsTransfer(kSendDone) && !BeginsTransfer(kSendDone)));
  CHECK((!IsStart(kRecv) && BeginsTransfer(kRecv) && IsTransfer(kRecv) && !IsAsynchronous(kRecv)));
  CHECK((!IsStart(kAsyncUpdate) && !IsDone(kAsyncUpdate) && IsAsynchronous(kAsyncUpdate)));
  CHECK((!IsTransfer(kAllGather) && !IsTransfer(kUnknown)));
  CHECK(BegunBy(kAllGatherStart) == kAllGather);
  CHECK(EndedBy(kCollectivePermuteDone) == kCollectivePermute);
  CHECK((BegunBy(kAllGatherDone) == kUnknown && EndedBy(kAsyncDone) == kUnknown));
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
