// The compiler's own answer as a plan, read from small modules before and after assignment.
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "mallocgame/hlo/import.h"
#include "mallocgame/plan/validate.h"
#include "tests/catch.h"
#include "tests/hlo/module_text.h"

namespace mallocgame {
namespace {

using hlo_test::ModuleText;
using hlo_test::UnitHardware;

const char* const kMain = "f32[8,128]";
const char* const kFast = "f32[8,128]{1,0:S(1)}";

struct Read {
  std::shared_ptr<const Program> program;
  Plan plan;

  // The offset of the residence that serves the access of `buffer` by `instruction`; -1 if main
  // memory serves it.
  int64_t OffsetOf(const std::string& instruction, const std::string& buffer) const {
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
};

absl::StatusOr<Plan> TryRead(const ModuleText& before, const ModuleText& after,
                             std::shared_ptr<const Program>* program) {
  const std::string module = before.Bytes(), assigned = after.Bytes();
  ImportInput input;
  input.module = module;
  absl::StatusOr<Imported> imported = ImportHlo(input, UnitHardware());
  INFO(imported.status());
  REQUIRE(imported.ok());
  *program = imported->program;
  return ReadAssignment(*imported->program, module, assigned, UnitHardware());
}

Read ReadPlan(const ModuleText& before, const ModuleText& after) {
  Read read;
  absl::StatusOr<Plan> plan = TryRead(before, after, &read.program);
  INFO(plan.status());
  REQUIRE(plan.ok());
  read.plan = *std::move(plan);
  const Verdict verdict = Validate(*read.program, UnitHardware(), read.plan);
  INFO(PlanToString(*read.program, read.plan));
  CHECK(verdict.message == "");
  return read;
}

// a = -p; b = |q|; r = a + b
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

std::string Line(const std::string& name, const char* shape, const std::string& call) {
  return absl::StrCat(name, " = ", shape, " ", call);
}
std::string Start(const std::string& name, const char* to, const char* from,
                  const std::string& operand) {
  return absl::StrCat(name, " = (", to, ", ", from, ", u32[]{:S(2)}) copy-start(", operand, ")");
}

TEST_CASE("a preload, a prefetch, and a result kept in fast memory") {
  ModuleText after;
  after.Computation("main")
      .Add("p = f32[8,128] parameter()")
      .Add("q = f32[8,128] parameter()")
      .Add(Start("p0", kFast, kMain, "p"), "cross_program_prefetch_index: 0")
      .Add(Start("q0", kFast, kMain, "q"))
      .Add(Line("p1", kFast, "copy-done(p0)"))
      .Add(Line("a", kFast, "negate(p1)"))
      .Add(Line("q1", kFast, "copy-done(q0)"))
      .Add("b = f32[8,128] abs(q1)")
      .Add("r = f32[8,128] add(a, b)")
      .Place("p0", {0}, 0, 1)
      .Place("q0", {0}, 8192, 1)
      .Place("a", {}, 4096, 1)
      .Place("b", {}, 777, 0);
  const Read read = ReadPlan(Straight(), after);
  CHECK(read.OffsetOf("a", "p") == 0);
  CHECK(read.OffsetOf("a", "a") == 4096);
  CHECK(read.OffsetOf("b", "q") == 8192);
  CHECK(read.OffsetOf("b", "b") == -1);
  CHECK(read.OffsetOf("r", "a") == 4096);
  CHECK(read.OffsetOf("r", "r") == -1);
  REQUIRE(read.plan.copies.size() == 2);
  const auto residence = [&](size_t copy) { return read.plan.copies[copy].residence; };
  CHECK(read.plan.copies[0] == Copy{CopyKind::kPrefetch, residence(0), 0, 2, 0, 4096, true, -1});
  CHECK(read.plan.copies[1] == Copy{CopyKind::kPrefetch, residence(1), 2, 3, 0, 4096, false, -1});
  CHECK(read.plan.residences[read.plan.copies[0].residence.index()] ==
        Residence{BufferId(0), 0, 0, 3});
  CHECK(read.plan.residences.size() == 3);
}

TEST_CASE("a result written back and fetched again is two residences") {
  ModuleText after;
  after.Computation("main")
      .Add("p = f32[8,128] parameter()")
      .Add("q = f32[8,128] parameter()")
      .Add(Line("a", kFast, "negate(p)"))
      .Add(Start("out", kMain, kFast, "a"))
      .Add("b = f32[8,128] abs(q)")
      .Add(Line("home", kMain, "copy-done(out)"))
      .Add(Start("in", kFast, kMain, "home"))
      .Add(Line("again", kFast, "copy-done(in)"))
      .Add("r = f32[8,128] add(again, b)")
      .Place("a", {}, 0, 1)
      .Place("in", {0}, 4096, 1);
  const Read read = ReadPlan(Straight(), after);
  CHECK(read.OffsetOf("a", "a") == 0);
  CHECK(read.OffsetOf("r", "a") == 4096);
  REQUIRE(read.plan.copies.size() == 2);
  CHECK(read.plan.copies[0].kind == CopyKind::kWriteBack);
  CHECK(read.plan.copies[0].begin == 3);
  CHECK(read.plan.copies[0].end == 4);
  CHECK(read.plan.copies[1].kind == CopyKind::kPrefetch);
  CHECK(read.plan.copies[1].begin == 4);
  CHECK(read.plan.residences[0] == Residence{read.plan.residences[1].buffer, 0, 2, 4});
}

TEST_CASE("slices fill the parts of one residence") {
  ModuleText after;
  for (const char* k : {"0", "1"}) {
    after.Computation(absl::StrCat("wrapped", k))
        .Add(absl::StrCat("w", k, " = f32[8,128] parameter()"))
        .Add(absl::StrCat("s", k, " = f32[4,128]{1,0:S(1)} slice(w", k, ")"));
  }
  after.Computation("main").Add("p = f32[8,128] parameter()").Add("q = f32[8,128] parameter()");
  for (const char* k : {"0", "1"}) {
    after.Add(absl::StrCat("start", k,
                           " = ((f32[8,128]), f32[4,128]{1,0:S(1)}, s32[]{:S(2)}) async-start(q)"),
              "", {absl::StrCat("wrapped", k)});
    if (*k == '0') after.Add("a = f32[8,128] negate(p)");
  }
  after.Add("done0 = f32[4,128]{1,0:S(1)} async-done(start0)")
      .Add("done1 = f32[4,128]{1,0:S(1)} async-done(start1)")
      .Add(Line("q1", kFast, "custom-call(done0, done1)"), "custom_call_target: 'ConcatBitcast'")
      .Add("b = f32[8,128] abs(q1)")
      .Add("r = f32[8,128] add(a, b)")
      .Place("s0", {}, 6144, 1)
      .Place("s1", {}, 4096, 1);
  const Read read = ReadPlan(Straight(), after);
  CHECK(read.OffsetOf("b", "q") == 4096);
  REQUIRE(read.plan.copies.size() == 2);
  CHECK(read.plan.copies[0] ==
        Copy{CopyKind::kPrefetch, ResidenceId(0), 2, 3, 2048, 4096, false, -1});
  CHECK(read.plan.copies[1] == Copy{CopyKind::kPrefetch, ResidenceId(0), 3, 3, 0, 2048, false, -1});
  CHECK(read.plan.residences[0] == Residence{BufferId(1), 4096, 2, 4});
}

TEST_CASE("a plain copy that became a prefetch") {
  ModuleText before, after;
  before.Computation("main")
      .Add("p = f32[8,128] parameter()")
      .Add("q = f32[8,128] parameter()")
      .Add("a = f32[8,128] negate(q)")
      .Add("c = f32[8,128] copy(p)")
      .Add("r = f32[8,128] add(a, c)");
  after.Computation("main")
      .Add("p = f32[8,128] parameter()")
      .Add("q = f32[8,128] parameter()")
      .Add(Start("c0", kFast, kMain, "p"))
      .Add("a = f32[8,128] negate(q)")
      .Add(Line("c1", kFast, "copy-done(c0)"))
      .Add("r = f32[8,128] add(a, c1)")
      .Place("c0", {0}, 0, 1);
  const Read read = ReadPlan(before, after);
  CHECK(read.OffsetOf("r", "c") == 0);
  CHECK(read.OffsetOf("c", "c") == 0);
  CHECK(read.OffsetOf("c", "p") == -1);
  REQUIRE(read.plan.copies.size() == 1);
  CHECK(read.plan.copies[0] == Copy{CopyKind::kPrefetch, ResidenceId(0), 2, 4, 0, 4096, false, 3});
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

TEST_CASE("what a loop carries in fast memory stays there over the whole loop") {
  const ModuleText before = LoopText(kMain, kMain, false);
  ModuleText after = LoopText(kFast, kFast, true);
  // `more` lies where the state was, because nobody needs the state between its read by `use` and
  // its next write by `new`.
  after.Place("s", {}, 0, 1)
      .Place("t0", {0}, 4096, 1)
      .Place("use", {}, 8192, 1)
      .Place("more", {}, 0, 1);
  const Read read = ReadPlan(before, after);
  CHECK(read.OffsetOf("s", "s") == 0);
  CHECK(read.OffsetOf("use", "s") == 0);
  CHECK(read.OffsetOf("loop", "s") == 0);
  CHECK(read.OffsetOf("loop", "t") == 4096);
  CHECK(read.OffsetOf("more", "t") == 4096);
  CHECK(read.OffsetOf("r", "s") == 0);
  CHECK(read.OffsetOf("more", "more") == 12288);
  const Loop& loop = read.program->loops()[0];
  for (const Residence& residence : read.plan.residences) {
    if (residence.offset == 4096)
      CHECK((residence.begin <= loop.entry && residence.end == loop.exit));
  }
  REQUIRE(read.plan.copies.size() == 1);
  CHECK(read.plan.copies[0].end == loop.entry);
}

TEST_CASE("what does not fit together is refused") {
  std::shared_ptr<const Program> program;
  const auto refused = [&program](const ModuleText& before, const ModuleText& after,
                                  const std::string& message) {
    const absl::Status status = TryRead(before, after, &program).status();
    INFO(status);
    CHECK(status.code() == absl::StatusCode::kInvalidArgument);
    CHECK(absl::StrContains(status.message(), message));
  };
  ModuleText same = Straight();
  refused(Straight(), same, "no buffer_assignment");
  same.Place("a", {}, 0, 1);
  CHECK(TryRead(Straight(), same, &program).ok());

  ModuleText fast = Straight();
  fast.at("a").mutable_shape()->mutable_layout()->set_memory_space(1);
  fast.proto().mutable_buffer_assignment();
  refused(Straight(), fast, "no offset in fast memory to buffer 'a'");
  ModuleText renamed = same;
  renamed.at("a").set_name("elsewhere");
  refused(Straight(), renamed, "no instruction 'a'");
  ModuleText far = same;
  far.Place("b", {}, INT64_MAX, 1);
  refused(Straight(), far, "has offset");
  ModuleText fewer = same;
  fewer.at("r").mutable_operand_ids()->RemoveLast();
  refused(Straight(), fewer, "other operands");

  const std::string module = Straight().Bytes(), other = LoopText(kMain, kMain, false).Bytes(),
                    assigned = same.Bytes();
  CHECK_FALSE(ReadAssignment(*program, other, assigned, UnitHardware()).ok());
  CHECK_FALSE(ReadAssignment(*program, module, assigned.substr(0, 50), UnitHardware()).ok());
}

}  // namespace
}  // namespace mallocgame
