// Computations that are called from several places are copied, as XLA's FlattenCallGraph does.
#include "mallocgame/hlo/module/call_graph.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "mallocgame/hlo/import/import.h"
#include "mallocgame/hlo/module/hlo.pb.h"
#include "mallocgame/plan/plan.h"
#include "mallocgame/plan/validate.h"
#include "tests/catch.h"
#include "tests/hlo/module_text.h"

namespace mallocgame::hlo {
namespace {

using hlo_test::Literal;
using hlo_test::ModuleText;
using hlo_test::UnitHardware;

// The names of the instructions on the time axis, a loop's at its exit only.
std::string Axis(const ModuleText& text) {
  const std::string bytes = text.Bytes();
  ImportInput input;
  input.module = bytes;
  const auto imported = ImportHlo(input, UnitHardware());
  INFO(imported.status());
  REQUIRE(imported.ok());
  std::vector<std::string> names;
  for (const Instruction& i : imported->program->instructions()) {
    if (i.kind != InstructionKind::kLoopEntry) names.push_back(i.name);
  }
  return absl::StrJoin(names, " ");
}

ModuleText Layer() {
  ModuleText m;
  m.Computation("layer").Add("x = f32[64,64] parameter()").Add("y = f32[64,64] tanh(x)");
  return m;
}

TEST_CASE("each call has a computation of its own, and the first keeps the original") {
  ModuleText m = Layer();
  m.Computation("main")
      .Add("p = f32[64,64] parameter()")
      .Add("a = f32[64,64] call(p)", "", {"layer"})
      .Add("b = f32[64,64] call(a)", "", {"layer"})
      .Add("c = f32[64,64] call(b)", "", {"layer"});
  CHECK(Axis(m) == "p x y a x.clone y.clone b x.clone.1 y.clone.1 c");
  const auto module = hlo_test::Parse(m);
  CHECK(module->computations().size() == 4);
  CHECK(module->computation(1).proto->name() == "layer.clone");
  CHECK(module->computation(2).scheduled);
  // The arrays of one call are not those of another.
  const int32_t y = hlo_test::Named(*module, "y"), copy = hlo_test::Named(*module, "y.clone");
  CHECK(module->operands(copy)[0] == hlo_test::Named(*module, "x.clone"));
  CHECK(module->instruction(y).first_array != module->instruction(copy).first_array);
  // What is read back is flat already, and stays as it is.
  HloProto again = module->proto();
  CHECK_FALSE(*FlattenCallGraph(*module, *again.mutable_hlo_module()));
}

TEST_CASE("a name that is taken is passed over") {
  ModuleText m = Layer();
  m.Computation("main")
      .Add("y.clone = f32[64,64] parameter()")
      .Add("a = f32[64,64] call(y.clone)", "", {"layer"})
      .Add("b = f32[64,64] call(a)", "", {"layer"});
  CHECK(Axis(m) == "y.clone x y a x.clone y.clone.1 b");
}

TEST_CASE("what a copy calls is copied with it; what instructions are made of is shared") {
  ModuleText m;
  m.Computation("fused", true).Add("f = f32[64,64] parameter()").Add("g = f32[64,64] negate(f)");
  m.Computation("inner")
      .Add("u = f32[64,64] parameter()")
      .Add("v = f32[64,64] fusion(u)", "", {"fused"});
  m.Computation("outer")
      .Add("s = f32[64,64] parameter()")
      .Add("t = f32[64,64] call(s)", "", {"inner"})
      .Add("w = f32[64,64] call(t)", "", {"inner"});
  m.Computation("main")
      .Add("p = f32[64,64] parameter()")
      .Add("a = f32[64,64] call(p)", "", {"outer"})
      .Add("b = f32[64,64] call(a)", "", {"outer"});
  CHECK(Axis(m) ==
        "p s u v t u.clone v.clone w a "
        "s.clone u.clone.1 v.clone.1 t.clone u.clone.2 v.clone.2 w.clone b");
  const auto module = hlo_test::Parse(m);
  for (const char* const name : {"v", "v.clone", "v.clone.1", "v.clone.2"}) {
    const int32_t called = module->called(hlo_test::Named(*module, name))[0];
    CHECK(module->computation(called).proto->name() == "fused");
  }
}

// Two loops, and a conditional of two branches, over the same computations.
ModuleText Shared() {
  ModuleText m;
  m.Computation("condition")
      .Add("c = (s32[], f32[64,64]) parameter()")
      .Add("ci = s32[] get-tuple-element(c)")
      .Add("n = s32[] constant()", Literal(7))
      .Add("go = pred[] compare(ci, n)", "comparison_direction: 'LT'");
  m.Computation("body")
      .Add("b = (s32[], f32[64,64]) parameter()")
      .Add("bi = s32[] get-tuple-element(b)")
      .Add("bx = f32[64,64] get-tuple-element(b)", "tuple_index: 1")
      .Add("one = s32[] constant()", Literal(1))
      .Add("next = s32[] add(bi, one)")
      .Add("bn = f32[64,64] negate(bx)")
      .Add("br = (s32[], f32[64,64]) tuple(next, bn)");
  m.Computation("branch").Add("h = f32[64,64] parameter()").Add("k = f32[64,64] cosine(h)");
  m.Computation("main")
      .Add("p = f32[64,64] parameter()")
      .Add("which = s32[] parameter()")
      .Add("zero = s32[] constant()", Literal(0))
      .Add("start = (s32[], f32[64,64]) tuple(zero, p)")
      .Add("loop = (s32[], f32[64,64]) while(start)", "", {"body", "condition"})
      .Add("x = f32[64,64] get-tuple-element(loop)", "tuple_index: 1")
      .Add("four = s32[] constant()", Literal(4))
      .Add("again = (s32[], f32[64,64]) tuple(four, x)")
      .Add("loop2 = (s32[], f32[64,64]) while(again)", "", {"body", "condition"})
      .Add("y = f32[64,64] get-tuple-element(loop2)", "tuple_index: 1")
      .Add("z = f32[64,64] conditional(which, y, y)", "", {"branch", "branch"});
  return m;
}

TEST_CASE("loops and branches share no computation either, and each loop is counted for itself") {
  const ModuleText m = Shared();
  const std::string bytes = m.Bytes();
  ImportInput input;
  input.module = bytes;
  const auto imported = ImportHlo(input, UnitHardware());
  REQUIRE(imported.ok());
  const Program& program = *imported->program;
  REQUIRE(program.loops().size() == 2);
  CHECK(program.loops()[0].trips == 7);
  CHECK(program.loops()[1].trips == 3);
  CHECK(absl::StrContains(Axis(m), " y h k h.clone k.clone z"));
  CHECK(Validate(program, UnitHardware(), AllMainPlan(program, UnitHardware())).ok());
}

TEST_CASE("without a schedule the copies have none either") {
  ModuleText m = Shared();
  m.proto().mutable_hlo_module()->clear_schedule();
  CHECK(Axis(m) == Axis(Shared()));
}

TEST_CASE("transfers of the same computation keep their arrays apart") {
  ModuleText m;
  m.Computation("wrapped", true)
      .Add("w = f32[64,64] parameter()")
      .Add("o = f32[64,64] custom-call(w)", "custom_call_target: 'far'");
  const std::string shape = "((f32[64,64]), f32[64,64], s32[])";
  m.Computation("main")
      .Add("p = f32[64,64] parameter()")
      .Add("q = f32[64,64] negate(p)")
      .Add(absl::StrCat("s = ", shape, " async-start(p)"), "", {"wrapped"})
      .Add(absl::StrCat("t = ", shape, " async-start(q)"), "", {"wrapped"})
      .Add("d = f32[64,64] async-done(s)")
      .Add("e = f32[64,64] async-done(t)")
      .Add("r = f32[64,64] add(d, e)");
  const std::string bytes = m.Bytes();
  ImportInput input;
  input.module = bytes;
  const auto imported = ImportHlo(input, UnitHardware());
  REQUIRE(imported.ok());
  // p, q, and a result of each transfer; r.
  int64_t large = 0;
  for (const Buffer& buffer : imported->program->buffers()) large += buffer.size_bytes > 4 ? 1 : 0;
  CHECK(large == 5);
}

TEST_CASE("calls that multiply beyond measure are refused") {
  ModuleText m = Layer();
  std::string below = "layer";
  for (int depth = 0; depth < 40; ++depth) {
    const std::string p = absl::StrCat("d", depth);
    m.Computation(p)
        .Add(p + "x = f32[64,64] parameter()")
        .Add(absl::StrCat(p, "y = f32[64,64] call(", p, "x)"), "", {below})
        .Add(absl::StrCat(p, "z = f32[64,64] call(", p, "y)"), "", {below});
    below = p;
  }
  const auto module = Module::Parse(m.Bytes(), "m");
  REQUIRE_FALSE(module.ok());
  CHECK(absl::StrContains(module.status().message(), "m: computation "));
  CHECK(
      absl::StrContains(module.status().message(),
                        "places, directly or through others, and each gets a copy; at most 262144 "
                        "instructions"));
}

TEST_CASE("a large constant is not copied beyond measure") {
  ModuleText m = Layer();
  m.at("y").set_backend_config(std::string(1 << 22, ' '));
  m.Computation("main").Add("p = f32[64,64] parameter()");
  std::string last = "p";
  for (int k = 0; k < 70; ++k) {
    const std::string call = absl::StrCat("c", k);
    m.Add(absl::StrCat(call, " = f32[64,64] call(", last, ")"), "", {"layer"});
    last = call;
  }
  const auto module = Module::Parse(m.Bytes(), "m");
  CHECK(absl::StrContains(module.status().message(), "'layer' is called from 70 places"));
}

}  // namespace
}  // namespace mallocgame::hlo
