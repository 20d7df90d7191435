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
                             std::shared_ptr<const Program>* program,
                             const Hardware& hardware = UnitHardware()) {
  const std::string module = before.Bytes(), assigned = after.Bytes();
  ImportInput input;
  input.module = module;
  absl::StatusOr<Imported> imported = ImportHlo(input, hardware);
  INFO(imported.status());
  REQUIRE(imported.ok());
  *program = imported->program;
  return ReadAssignment(*imported->program, module, assigned, hardware);
}

Read ReadPlan(const ModuleText& before, const ModuleText& after,
              const Hardware& hardware = UnitHardware()) {
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

// A loop of four trips that carries `state`, a tuple's elements. Each part lists its instructions;
// bodies end in the elements carried on, and `main` starts with its parameters.
struct LoopParts {
  std::string state;                              // shapes: "f32[8,128], f32[8,128]"
  std::vector<std::string> body, before, behind;  // instructions
  std::string initial, carried_on;                // "s, t"
  std::vector<std::string> tail = {};             // of the body, right before its tuple
};

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

const char* const kRows = "f32[4,128]";
const char* const kFastRows = "f32[4,128]{1,0:S(1)}";
const char* const kLow = R"(slice_dimensions { limit: 4 stride: 1 }
                            slice_dimensions { limit: 128 stride: 1 })";
const char* const kHigh = R"(slice_dimensions { start: 4 limit: 8 stride: 1 }
                             slice_dimensions { limit: 128 stride: 1 })";

// Adds the computation that an asynchronous slice wraps. It must come before its caller.
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

TEST_CASE("slices that became prefetches, two of one array") {
  ModuleText before, after;
  before.Computation("main")
      .Add("p = f32[8,128] parameter()")
      .Add("q = f32[4,128] parameter()")
      .Add(Line("low", kRows, "slice(p)"), kLow)
      .Add("a = f32[4,128] negate(q)")
      .Add(Line("high", kRows, "slice(p)"), kHigh)
      .Add("r = f32[4,128] add(a, low, high)");
  Wrap(after, "low", kLow);
  Wrap(after, "high", kHigh);
  after.Computation("main").Add("p = f32[8,128] parameter()").Add("q = f32[4,128] parameter()");
  StartSlice(after, "high", "p");
  StartSlice(after, "low", "p");
  after.Add("a = f32[4,128] negate(q)")
      .Add(DoneSlice("low"))
      .Add(DoneSlice("high"))
      .Add("r = f32[4,128] add(a, low_done, high_done)")
      .Place("part_low", {}, 4096, 1)
      .Place("part_high", {}, 0, 1);
  const Read read = ReadPlan(before, after);
  CHECK(read.OffsetOf("low", "p") == -1);
  CHECK(read.OffsetOf("low", "low") == 4096);
  CHECK(read.OffsetOf("high", "high") == 0);
  CHECK(read.OffsetOf("r", "low") == 4096);
  REQUIRE(read.plan.copies.size() == 2);
  const auto residence = [&](size_t copy) { return read.plan.copies[copy].residence; };
  // Both begin before `a` and are done before `r`.
  CHECK(read.plan.copies[0] == Copy{CopyKind::kPrefetch, residence(0), 3, 5, 0, 2048, false, 4});
  CHECK(read.plan.copies[1] == Copy{CopyKind::kPrefetch, residence(1), 3, 5, 0, 2048, false, 2});
}

TEST_CASE("a slice of a tuple's element in a loop that became a prefetch") {
  LoopParts before, after;
  before.state = absl::StrCat(kRows, ", ", kMain);
  before.body = {"bs = f32[4,128] element 1 of b", "bt = f32[8,128] element 2 of b",
                 "use = f32[4,128] negate(bs)", "high = f32[4,128] slice(bt)",
                 "new = f32[4,128] add(use, high)"};
  before.carried_on = std::string("new, bt");
  before.before = {"s = f32[4,128] broadcast(zero)"};
  before.initial = std::string("s, t");
  before.behind = {"sum = f32[4,128] element 1 of loop", "r = f32[4,128] negate(sum)"};
  after = before;
  after.body = {
      "bs = f32[4,128] element 1 of b",
      "bt = f32[8,128] element 2 of b",
      absl::StrCat("high_start = ((", kMain, "), ", kFastRows, ", s32[]{:S(2)}) async-start(bt)"),
      "use = f32[4,128] negate(bs)",
      DoneSlice("high"),
      "new = f32[4,128] add(use, high_done)"};
  ModuleText module = LoopOf(before), assigned;
  *module.at("high").mutable_slice_dimensions() = [] {
    ModuleText m;
    m.Computation("x").Add("s = f32[4,128] slice()", kHigh);
    return m.at("s").slice_dimensions();
  }();
  Wrap(assigned, "high", kHigh);
  LoopInto(after, assigned);
  assigned.Call("high_start", "wrapped_high").Place("part_high", {}, 2048, 1);
  const Read read = ReadPlan(module, assigned);
  CHECK(read.OffsetOf("new", "high") == 2048);
  REQUIRE(read.plan.copies.size() == 1);
  const Copy& copy = read.plan.copies[0];
  CHECK(read.program->instruction(copy.begin).name == "use");
  CHECK(read.program->instruction(copy.replaces).name == "high");
  CHECK(read.program->instruction(copy.end).name == "new");
}

TEST_CASE("a copy that is split between two cores has all bytes of the buffer") {
  // On v5p a copy in fast memory may have one half of the array on each core: SC(0:4).
  const char* const split = "f32[8,128]{1,0:T(8,128)S(1)SC(0:4)}";
  ModuleText after;
  after.Computation("main")
      .Add("p = f32[8,128] parameter()")
      .Add("q = f32[8,128] parameter()")
      .Add(Start("q0", split, kMain, "q"))
      .Add("a = f32[8,128] negate(p)")
      .Add(Line("q1", split, "copy-done(q0)"))
      .Add("b = f32[8,128] abs(q1)")
      .Add("r = f32[8,128] add(a, b)")
      .Place("q0", {0}, 8192, 1);
  const Read read = ReadPlan(Straight(), after);
  CHECK(read.OffsetOf("b", "q") == 8192);
  REQUIRE(read.plan.copies.size() == 1);
  CHECK(read.plan.copies[0] == Copy{CopyKind::kPrefetch, ResidenceId(0), 2, 3, 0, 4096, false, -1});
  // The halves fit at the top of fast memory, where all of it doesn't: then it lies elsewhere.
  ModuleText top = after;
  top.proto().clear_buffer_assignment();
  top.Place("q0", {0}, UnitHardware().fast_bytes - 2048, 1);
  CHECK(ReadPlan(Straight(), top).OffsetOf("b", "q") == 0);
}

TEST_CASE("a plain copy before a loop that became a prefetch, where copies write to main memory") {
  LoopParts before, after;
  before.state = kMain;
  before.body = {"bs = f32[8,128] element 1 of b", "new = f32[8,128] abs(bs)"};
  before.carried_on = std::string("new");
  before.before = {"s = f32[8,128] copy(t)"};
  before.initial = std::string("s");
  before.behind = {"sum = f32[8,128] element 1 of loop", "r = f32[8,128] negate(sum)"};
  after = before;
  after.state = kFast;
  after.body = {Line("bs", kFast, "element 1 of b"), Line("new", kFast, "abs(bs)")};
  after.before = {Start("in", kFast, kMain, "t"), Line("s0", kFast, "copy-done(in)")};
  after.initial = std::string("s0");
  after.behind[0] = Line("sum", kFast, "element 1 of loop");
  ModuleText module = LoopOf(before), assigned = LoopOf(after);
  assigned.Place("in", {0}, 4096, 1);
  for (ModuleText* m : {&module, &assigned}) {  // a loop fusion, which may write to fast memory
    m->at("new").set_opcode("fusion");
    m->at("new").set_fusion_kind("kLoop");
  }
  Hardware hardware = UnitHardware();
  hardware.name = std::string("tpu_v5p_like");
  const Read read = ReadPlan(module, assigned, hardware);
  CHECK(read.OffsetOf("s", "s") == 4096);
  CHECK(read.OffsetOf("new", "s") == 4096);
  CHECK(read.OffsetOf("r", "s") == 4096);
  REQUIRE(read.plan.copies.size() == 1);
  CHECK(read.program->instruction(read.plan.copies[0].replaces).name == "s");
}

TEST_CASE("a write-back right before the tuple that a loop's body gives begins in the body") {
  LoopParts before, after;
  before.state = kMain;
  before.body = {"bs = f32[8,128] element 1 of b", "one_more = f32[8,128] negate(bs)",
                 "new = f32[8,128] add(one_more, bs)"};
  before.carried_on = std::string("new");
  before.before = {"s = f32[8,128] negate(t)"};
  before.initial = std::string("s");
  before.behind = {"sum = f32[8,128] element 1 of loop"};
  after = before;
  after.body = {"bs = f32[8,128] element 1 of b", Start("in", kFast, kMain, "bs"),
                "one_more = f32[8,128] negate(bs)", Line("here", kFast, "copy-done(in)"),
                Line("new", kFast, "add(one_more, here)")};
  after.tail = {Start("out", kMain, kFast, "new"), Line("home", kMain, "copy-done(out)")};
  after.carried_on = std::string("home");
  ModuleText assigned = LoopOf(after);
  assigned.Place("in", {0}, 0, 1).Place("new", {}, 0, 1);
  const Read read = ReadPlan(LoopOf(before), assigned);
  REQUIRE(read.plan.copies.size() == 2);
  const Copy& out = read.plan.copies[1];
  CHECK(out.kind == CopyKind::kWriteBack);
  CHECK(read.program->instruction(out.begin).name == "br");
  CHECK(out.end == read.program->loops()[0].exit);
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

TEST_CASE("scratch that the compiler gives a place among the buffers lies below them") {
  const auto scratch = [](ModuleText& m, int64_t offset) {
    m.at("b").set_backend_config(
        absl::StrCat(R"({"scoped_memory_configs":[{"memory_space":"1","offset":")", offset,
                     R"(","size":"8192"}],"used_scoped_memory_configs":[]})"));
  };
  ModuleText before = Straight(), after = Straight();
  for (const char* name : {"a", "b"})
    after.at(name).mutable_shape()->mutable_layout()->set_memory_space(1);
  after.Place("a", {}, 0, 1).Place("b", {}, 16384, 1);
  scratch(before, 0);
  scratch(after, 8192);
  const Read read = ReadPlan(before, after);
  for (Tick t = 0; t < read.program->ticks(); ++t) {
    const Instruction& instruction = read.program->instruction(t);
    CHECK(instruction.reserved_bytes == (instruction.name == "b" ? 8192 : 0));
  }
  CHECK(read.OffsetOf("b", "b") == 8192);                              // right above the scratch
  CHECK(read.OffsetOf("a", "a") == UnitHardware().fast_bytes - 8192);  // below it: on top now
  // Scratch at several offsets: what is in the way moves.
  after.at("a").set_backend_config(
      R"({"scoped_memory_configs":[{"memory_space":"1","offset":"4096","size":"4096"}]})");
  const Read moved = ReadPlan(before, after);
  CHECK(moved.OffsetOf("a", "a") == 8192);
  CHECK(moved.OffsetOf("b", "b") == 16384);
}

TEST_CASE("what a loop fetches for the next trip is fetched at the begin of each") {
  // The table `t` lies in fast memory when the loop begins. Each trip reads it once, lets it go,
  // and fetches it again at its end.
  const bool used_behind = GENERATE(false, true);
  LoopParts before, after;
  before.state = std::string("f32[8,128], f32[8,128]");
  before.body = {"bs = f32[8,128] element 1 of b", "bt = f32[8,128] element 2 of b",
                 "more = f32[8,128] multiply(bs, bt)", "new = f32[8,128] abs(more)"};
  before.carried_on = std::string("new, bt");
  before.before = {"s = f32[8,128] broadcast(zero)"};
  before.initial = std::string("s, t");
  before.behind = {"sum = f32[8,128] element 1 of loop", "tab = f32[8,128] element 2 of loop",
                   used_behind ? "r = f32[8,128] add(sum, tab)" : "r = f32[8,128] negate(sum)"};
  after = before;
  after.state = absl::StrCat("f32[8,128], ", kFast, ", f32[8,128]");
  after.body = {"bs = f32[8,128] element 1 of b",        Line("bt", kFast, "element 2 of b"),
                "bm = f32[8,128] element 3 of b",        "more = f32[8,128] multiply(bs, bt)",
                Start("again", kFast, kMain, "bm"),      "new = f32[8,128] abs(more)",
                Line("there", kFast, "copy-done(again)")};
  after.carried_on = std::string("new, there, bm");
  after.before = {"s = f32[8,128] broadcast(zero)", Start("first", kFast, kMain, "t"),
                  Line("here", kFast, "copy-done(first)")};
  after.initial = std::string("s, here, t");
  after.behind[1] = Line("tab", kFast, "element 2 of loop");
  ModuleText assigned = LoopOf(after);
  assigned.Place("first", {0}, 4096, 1).Place("again", {0}, 4096, 1);
  const Read read = ReadPlan(LoopOf(before), assigned);
  CHECK(read.OffsetOf("loop", "t") == -1);
  CHECK(read.OffsetOf("more", "t") == 4096);
  REQUIRE(read.plan.copies.size() == (used_behind ? 2 : 1));
  const Copy& in_loop = read.plan.copies[0];
  const Loop& loop = read.program->loops()[0];
  CHECK(read.program->instruction(in_loop.begin).name == "b");
  CHECK(read.program->instruction(in_loop.end).name == "more");
  CHECK(read.plan.residences[in_loop.residence.index()].end == in_loop.end + 1);
  if (used_behind) {
    CHECK(read.OffsetOf("r", "t") == 4096);
    CHECK(read.plan.copies[1].begin == loop.exit + 1);
    CHECK(read.program->instruction(read.plan.copies[1].end).name == "r");
  }
}

TEST_CASE("a plain copy before such a loop makes its result in main memory") {
  LoopParts before, after;
  before.state = std::string("f32[8,128], f32[8,128]");
  before.body = {"bs = f32[8,128] element 1 of b", "bt = f32[8,128] element 2 of b",
                 "more = f32[8,128] multiply(bs, bt)", "old = f32[8,128] copy(bs)"};
  before.carried_on = std::string("more, old");
  before.before = {"s = f32[8,128] broadcast(zero)", "first = f32[8,128] copy(t)"};
  before.initial = std::string("s, first");
  before.behind = {"r = f32[8,128] element 1 of loop"};
  after = before;
  after.state = absl::StrCat("f32[8,128], ", kFast);
  after.body[1] = Line("bt", kFast, "element 2 of b");
  after.tail = {Start("again", kFast, kMain, "old"), Line("there", kFast, "copy-done(again)")};
  after.carried_on = std::string("more, there");
  after.before[1] = Start("in", kFast, kMain, "t");
  after.before.push_back(Line("here", kFast, "copy-done(in)"));
  after.initial = std::string("s, here");
  ModuleText assigned = LoopOf(after);
  assigned.Place("in", {0}, 4096, 1).Place("again", {0}, 4096, 1);
  const Read read = ReadPlan(LoopOf(before), assigned);
  CHECK(read.OffsetOf("first", "first") == -1);
  CHECK(read.OffsetOf("loop", "first") == -1);
  CHECK(read.OffsetOf("more", "first") == 4096);
  for (const Copy& copy : read.plan.copies) CHECK(copy.replaces == -1);
}

TEST_CASE("what a loop carries goes through main memory where there are no bytes for it between") {
  // `big` takes all of fast memory between the last read of the state and its next write.
  const char* const big = "f32[256,1024]";
  LoopParts before, after;
  before.state = std::string("f32[8,128]");
  before.body = {"bs = f32[8,128] element 1 of b", "use = f32[8,128] negate(bs)",
                 Line("big", big, "broadcast(use)"), "more = f32[8,128] reduce(big, bs)",
                 "new = f32[8,128] abs(more)"};
  before.carried_on = std::string("new");
  before.before = {"s = f32[8,128] negate(t)"};
  before.initial = std::string("s");
  before.behind = {"sum = f32[8,128] element 1 of loop", "r = f32[8,128] negate(sum)"};
  after = before;
  after.state = kFast;
  after.body = {Line("bs", kFast, "element 1 of b"),
                Start("out", kMain, kFast, "bs"),
                "use = f32[8,128] negate(bs)",
                Line("home", kMain, "copy-done(out)"),
                Line("big", "f32[256,1024]{1,0:S(1)}", "broadcast(use)"),
                "more = f32[8,128] reduce(big, home)",
                Line("new", kFast, "abs(more)")};
  after.before = {Line("s", kFast, "negate(t)")};
  after.behind[0] = Line("sum", kFast, "element 1 of loop");
  ModuleText assigned = LoopOf(after);
  assigned.Place("s", {}, 0, 1).Place("new", {}, 0, 1).Place("big", {}, 0, 1);
  const Read read = ReadPlan(LoopOf(before), assigned);
  CHECK(read.OffsetOf("big", "big") == 0);
  CHECK(read.OffsetOf("loop", "s") == -1);
  CHECK(read.OffsetOf("s", "s") == 0);
  CHECK(read.OffsetOf("use", "s") == 0);
  CHECK(read.OffsetOf("more", "s") == -1);
  CHECK(read.OffsetOf("new", "s") == 0);
  CHECK(read.OffsetOf("r", "s") == 0);
  std::string copies;
  for (const Copy& copy : read.plan.copies) {
    absl::StrAppend(&copies, copy.kind == CopyKind::kPrefetch ? "in" : "out", " before ",
                    read.program->instruction(copy.begin).name, "; ");
  }
  CHECK(copies == "out before init; in before b; out before one; in before sum; ");
}

TEST_CASE("a value read from one place and written to another is one residence") {
  LoopParts before, after;
  before.state = std::string("f32[8,128]");
  before.body = {"bs = f32[8,128] element 1 of b", "new = f32[8,128] negate(bs)",
                 "more = f32[8,128] abs(new)"};
  before.carried_on = std::string("new");
  before.before = {"s = f32[8,128] negate(t)"};
  before.initial = std::string("s");
  before.behind = {"sum = f32[8,128] element 1 of loop"};
  after = before;
  after.body = {"bs = f32[8,128] element 1 of b",     Start("in", kFast, kMain, "bs"),
                Line("old", kFast, "copy-done(in)"),  Line("new", kFast, "negate(old)"),
                Start("out", kMain, kFast, "new"),    "more = f32[8,128] abs(new)",
                Line("home", kMain, "copy-done(out)")};
  after.carried_on = std::string("home");
  ModuleText assigned = LoopOf(after);
  assigned.Place("in", {0}, 0, 1).Place("new", {}, 4096, 1);
  const Read read = ReadPlan(LoopOf(before), assigned);
  CHECK(read.OffsetOf("new", "s") == 4096);
  CHECK(read.OffsetOf("more", "s") == 4096);
  CHECK(read.plan.residences.size() == 1);
  CHECK(read.plan.copies.size() == 2);
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
  ModuleText large = fast;
  large.Place("a", {}, UnitHardware().fast_bytes - 4096, 1);
  CHECK(TryRead(Straight(), large, &program).ok());
  large = fast;
  large.Place("a", {}, UnitHardware().fast_bytes - 4095, 1);
  refused(Straight(), large, "buffer 'a' has bytes");
  ModuleText fewer = same;
  fewer.at("r").mutable_operand_ids()->RemoveLast();
  refused(Straight(), fewer, "other operands");

  const char* const twice = "f32[16,128]{1,0:S(1)}";
  ModuleText larger;
  larger.Computation("main")
      .Add("p = f32[8,128] parameter()")
      .Add("q = f32[8,128] parameter()")
      .Add(Start("q0", twice, kMain, "q"))
      .Add("a = f32[8,128] negate(p)")
      .Add(Line("q1", twice, "copy-done(q0)"))
      .Add("b = f32[8,128] abs(q1)")
      .Add("r = f32[8,128] add(a, b)")
      .Place("q0", {0}, 8192, 1);
  refused(Straight(), larger, "it is of 8192 bytes, buffer 'q' has 4096");

  const std::string module = Straight().Bytes(), other = LoopText(kMain, kMain, false).Bytes(),
                    assigned = same.Bytes();
  CHECK_FALSE(ReadAssignment(*program, other, assigned, UnitHardware()).ok());
  CHECK_FALSE(ReadAssignment(*program, module, assigned.substr(0, 50), UnitHardware()).ok());
}

}  // namespace
}  // namespace mallocgame
