// Makes and reads small modules for tests.
#include "tests/hlo/assigned_plans.h"

#include "absl/strings/str_cat.h"
#include "mallocgame/hlo/import/import.h"
#include "mallocgame/plan/validate.h"
#include "tests/catch.h"

namespace mallocgame::hlo_test {

int64_t Read::OffsetOf(const std::string& instruction, const std::string& buffer) const {
  for (size_t a = 0; a < program->accesses().size(); ++a) {
    const Access& access = program->accesses()[a];
    if (program->instruction(access.tick).name != instruction ||
        program->buffer(access.buffer).name != buffer)
      continue;
    const ResidenceId id = plan.served_by[a];
    return id.valid() ? plan.residences[id.index()].offset : -1;
  }
  FAIL("no access of " << buffer << " by " << instruction);
  throw;
}

absl::StatusOr<Plan> TryRead(const ModuleText& before, const ModuleText& after,
                             std::shared_ptr<const Program>* program, const Hardware& hardware) {
  const std::string module = before.Bytes(), assigned = after.Bytes();
  ImportInput input;
  input.module = module;
  absl::StatusOr<Imported> imported = ImportHlo(input, hardware);
  INFO(imported.status());
  REQUIRE(imported.ok());
  *program = imported->program;
  return ReadAssignment(*imported->program, module, assigned, hardware);
}

Read ReadPlan(const ModuleText& before, const ModuleText& after, const Hardware& hardware) {
  Read read;
  absl::StatusOr<Plan> plan = TryRead(before, after, &read.program, hardware);
  INFO(plan.status());
  REQUIRE(plan.ok());
  read.plan = *std::move(plan);
  const Verdict verdict = Validate(*read.program, hardware, read.plan);
  INFO(PlanToString(*read.program, read.plan));
  CHECK(verdict.message == "");
  return read;
}

ModuleText Straight() {
  ModuleText m;
  m.Computation("main")
      .Add("p = f32[8,128] parameter()")
      .Add("q = f32[8,128] parameter()")
      .Add("a = f32[8,128] negate(p)")
      .Add("b = f32[8,128] abs(q)")
      .Add("r = f32[8,128] add(a, b)");
  return m;
}

ModuleText WithPrefetch(const char* to, int64_t offset) {
  ModuleText m;
  m.Computation("main")
      .Add("p = f32[8,128] parameter()")
      .Add("q = f32[8,128] parameter()")
      .Add(Start("q0", to, kMain, "q"))
      .Add("a = f32[8,128] negate(p)")
      .Add(Line("q1", to, "copy-done(q0)"))
      .Add("b = f32[8,128] abs(q1)")
      .Add("r = f32[8,128] add(a, b)")
      .Place("q0", {0}, offset, 1);
  return m;
}

std::string Line(const std::string& name, const char* shape, const std::string& call) {
  return absl::StrCat(name, " = ", shape, " ", call);
}
std::string Start(const std::string& name, const char* to, const char* from,
                  const std::string& operand) {
  return absl::StrCat(name, " = (", to, ", ", from, ", u32[]{:S(2)}) copy-start(", operand, ")");
}

void LoopInto(const LoopParts& parts, ModuleText& m) {
  const std::string carried = absl::StrCat("(s32[], ", parts.state, ")");
  m.Computation("condition")
      .Add(absl::StrCat("c = ", carried, " parameter()"))
      .Add("ci = s32[] get-tuple-element(c)")
      .Add("limit = s32[] constant()", "literal { shape { element_type: S32 } s32s: 4 }")
      .Add("go = pred[] compare(ci, limit)", "comparison_direction: 'LT'");
  const auto add = [&m](const std::vector<std::string>& lines) {
    // "name = SHAPE element K of TUPLE" is short for a get-tuple-element.
    for (const std::string& line : lines) {
      const size_t at = line.find(" element ");
      if (at == std::string::npos) {
        m.Add(line);
      } else {
        m.Add(absl::StrCat(line.substr(0, at), " get-tuple-element(", line.substr(at + 14), ")"),
              absl::StrCat("tuple_index: ", line.substr(at + 9, 1)));
      }
    }
  };
  m.Computation("body").Add(absl::StrCat("b = ", carried, " parameter()"));
  m.Add("bi = s32[] get-tuple-element(b)");
  add(parts.body);
  m.Add("one = s32[] constant()", "literal { shape { element_type: S32 } s32s: 1 }")
      .Add("next = s32[] add(bi, one)");
  add(parts.tail);
  m.Add(absl::StrCat("br = ", carried, " tuple(next, ", parts.carried_on, ")"));
  m.Computation("main")
      .Add("t = f32[8,128] parameter()")
      .Add("zero = s32[] constant()", "literal { shape { element_type: S32 } s32s: 0 }")
      .Add("i = s32[] copy(zero)");
  add(parts.before);
  m.Add(absl::StrCat("init = ", carried, " tuple(i, ", parts.initial, ")"))
      .Add(absl::StrCat("loop = ", carried, " while(init)"), "", {"body", "condition"});
  add(parts.behind);
}

ModuleText LoopOf(const LoopParts& parts) {
  ModuleText m;
  LoopInto(parts, m);
  return m;
}

void Wrap(ModuleText& m, const std::string& name, const char* part) {
  m.Computation("wrapped_" + name)
      .Add("of_" + name + " = f32[8,128] parameter()")
      .Add(Line("part_" + name, kFastRows, "slice(of_" + name + ")"), part);
}
void StartSlice(ModuleText& m, const std::string& name, const std::string& operand) {
  m.Add(absl::StrCat(name, "_start = ((", kMain, "), ", kFastRows, ", s32[]{:S(2)}) async-start(",
                     operand, ")"),
        "", {"wrapped_" + name});
}
std::string DoneSlice(const std::string& name) {
  return Line(name + "_done", kFastRows, "async-done(" + name + "_start)");
}

ModuleText LoopText(const char* table, const char* state, bool fetched) {
  ModuleText m;
  const std::string carried = absl::StrCat("(s32[], ", state, ", ", table, ")");
  m.Computation("condition")
      .Add(absl::StrCat("c = ", carried, " parameter()"))
      .Add("ci = s32[] get-tuple-element(c)")
      .Add("limit = s32[] constant()", "literal { shape { element_type: S32 } s32s: 4 }")
      .Add("go = pred[] compare(ci, limit)", "comparison_direction: 'LT'");
  m.Computation("body")
      .Add(absl::StrCat("b = ", carried, " parameter()"))
      .Add("bi = s32[] get-tuple-element(b)")
      .Add(absl::StrCat("bs = ", state, " get-tuple-element(b)"), "tuple_index: 1")
      .Add(absl::StrCat("bt = ", table, " get-tuple-element(b)"), "tuple_index: 2")
      .Add(Line("use", table, "negate(bs)"))
      .Add(Line("more", table, "multiply(use, bt)"))
      .Add(absl::StrCat("new = ", state, " abs(more)"))
      .Add("one = s32[] constant()", "literal { shape { element_type: S32 } s32s: 1 }")
      .Add("next = s32[] add(bi, one)")
      .Add(absl::StrCat("br = ", carried, " tuple(next, new, bt)"));
  m.Computation("main")
      .Add("t = f32[8,128] parameter()")
      .Add("zero = s32[] constant()", "literal { shape { element_type: S32 } s32s: 0 }")
      .Add("i = s32[] copy(zero)")
      .Add(absl::StrCat("s = ", state, " broadcast(zero)"));
  if (fetched) m.Add(Start("t0", kFast, kMain, "t")).Add(Line("t1", kFast, "copy-done(t0)"));
  m.Add(absl::StrCat("init = ", carried, " tuple(i, s, ", fetched ? "t1" : "t", ")"))
      .Add(absl::StrCat("loop = ", carried, " while(init)"), "", {"body", "condition"})
      .Add(absl::StrCat("sum = ", state, " get-tuple-element(loop)"), "tuple_index: 1")
      .Add("r = f32[8,128] negate(sum)");
  return m;
}

}  // namespace mallocgame::hlo_test
