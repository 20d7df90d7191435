// What loops carry, and what is copied in them, in the plan that is read of the compiler's answer.
#include <string>

#include "absl/strings/str_cat.h"
#include "mallocgame/hlo/import/import.h"
#include "tests/catch.h"
#include "tests/hlo/assigned_plans.h"
#include "tests/hlo/module_text.h"

namespace mallocgame {
namespace {

using hlo_test::DoneSlice;
using hlo_test::kFast;
using hlo_test::kFastRows;
using hlo_test::kHigh;
using hlo_test::kMain;
using hlo_test::kRows;
using hlo_test::Line;
using hlo_test::LoopInto;
using hlo_test::LoopOf;
using hlo_test::LoopParts;
using hlo_test::LoopText;
using hlo_test::ModuleText;
using hlo_test::Read;
using hlo_test::ReadPlan;
using hlo_test::Start;
using hlo_test::UnitHardware;
using hlo_test::Wrap;

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

TEST_CASE("an eviction right before the tuple that a loop's body gives begins in the body") {
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
  CHECK(out.kind == CopyKind::kEviction);
  CHECK(read.program->instruction(out.begin).name == "br");
  CHECK(out.end == read.program->loops()[0].exit);
}

TEST_CASE("a loop that carries in fast memory what its body uses in main memory only") {
  LoopParts before, after;
  before.state = kMain;
  before.body = {"bs = f32[8,128] element 1 of b", "one_more = f32[8,128] negate(bs)",
                 "new = f32[8,128] add(one_more, bs)"};
  before.carried_on = std::string("new");
  before.before = {"made = f32[8,128] negate(t)", "s = f32[8,128] copy(made)",
                   "other = f32[8,128] abs(made)"};
  before.initial = std::string("s");
  before.behind = {"sum = f32[8,128] element 1 of loop", "r = f32[8,128] add(sum, other)"};
  after = before;
  after.state = kFast;
  after.before = {Line("made", kFast, "negate(t)"),       Start("gone", kMain, kFast, "made"),
                  Line("home", kMain, "copy-done(gone)"), Start("in", kFast, kMain, "home"),
                  "other = f32[8,128] abs(made)",         Line("s0", kFast, "copy-done(in)")};
  after.initial = std::string("s0");
  after.body = {Line("bs", kFast, "element 1 of b"), Start("out", kMain, kFast, "bs"),
                Line("away", kMain, "copy-done(out)"), "one_more = f32[8,128] negate(away)",
                "new = f32[8,128] add(one_more, away)"};
  after.tail = {Start("back", kFast, kMain, "new"), Line("next_s", kFast, "copy-done(back)")};
  after.carried_on = std::string("next_s");
  after.behind[0] = Line("sum", kFast, "element 1 of loop");
  ModuleText assigned = LoopOf(after);
  assigned.Place("made", {}, 8192, 1).Place("in", {0}, 0, 1).Place("back", {0}, 0, 1);
  const Read read = ReadPlan(LoopOf(before), assigned);
  CHECK(read.OffsetOf("s", "made") == 8192);
  CHECK(read.OffsetOf("s", "s") == -1);
  CHECK(read.OffsetOf("one_more", "s") == -1);
  CHECK(read.OffsetOf("r", "s") == 0);
}

TEST_CASE(
    "a loop's value that is evicted unchanged from where its body reads it, and fetched anew") {
  LoopParts before, after;
  before.state = kMain;
  before.body = {"bs = f32[8,128] element 1 of b", "one_more = f32[8,128] negate(bs)",
                 "new = f32[8,128] add(one_more, bs)"};
  before.carried_on = std::string("new");
  before.before = {"s = f32[8,128] negate(t)"};
  before.initial = std::string("s");
  before.behind = {"sum = f32[8,128] element 1 of loop", "r = f32[8,128] negate(sum)"};
  after = before;
  after.state = kFast;
  after.before = {"s = f32[8,128] negate(t)", Start("in", kFast, kMain, "s"),
                  Line("s0", kFast, "copy-done(in)")};
  after.initial = std::string("s0");
  after.body = {Line("bs", kFast, "element 1 of b"), Start("out", kMain, kFast, "bs"),
                "one_more = f32[8,128] negate(bs)", Line("away", kMain, "copy-done(out)"),
                "new = f32[8,128] add(one_more, away)"};
  after.tail = {Start("back", kFast, kMain, "new"), Line("next_s", kFast, "copy-done(back)")};
  after.carried_on = std::string("next_s");
  after.behind[0] = Line("sum", kFast, "element 1 of loop");
  ModuleText assigned = LoopOf(after);
  assigned.Place("in", {0}, 0, 1).Place("back", {0}, 0, 1);
  const Read read = ReadPlan(LoopOf(before), assigned);
  CHECK(read.OffsetOf("loop", "s") == -1);
  CHECK(read.OffsetOf("one_more", "s") == 0);
  CHECK(read.OffsetOf("new", "s") == -1);
  CHECK(read.OffsetOf("r", "s") == 0);
  REQUIRE(read.plan.copies.size() == 2);
  CHECK(read.program->instruction(read.plan.copies[0].begin).name == "b");
  CHECK(read.program->instruction(read.plan.copies[1].end).name == "r");
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

}  // namespace
}  // namespace mallocgame
