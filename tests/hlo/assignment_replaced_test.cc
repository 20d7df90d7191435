// Plain copies that are gone from the compiler's own answer, where a Plan has the copy do the work.
#include <string>

#include "absl/strings/str_cat.h"
#include "mallocgame/hlo/import/import.h"
#include "tests/catch.h"
#include "tests/hlo/assigned_plans.h"
#include "tests/hlo/module_text.h"

namespace mallocgame {
namespace {

using hlo_test::kFast;
using hlo_test::kFastRows;
using hlo_test::kHigh;
using hlo_test::kMain;
using hlo_test::kRows;
using hlo_test::Line;
using hlo_test::ModuleText;
using hlo_test::Read;
using hlo_test::ReadPlan;
using hlo_test::Start;
using hlo_test::Wrap;

TEST_CASE("a slice that became a transfer out of fast memory reads there") {
  ModuleText before, after;
  before.Computation("main")
      .Add("p = f32[8,128] parameter()")
      .Add("q = f32[8,128] negate(p)")
      .Add(Line("high", kRows, "slice(q)"), kHigh)
      .Add("a = f32[8,128] negate(q)")
      .Add("b = f32[4,128] negate(high)")
      .Add("r = (f32[8,128], f32[4,128]) tuple(a, b)");
  Wrap(after, "high", kHigh);
  after.at("of_high").mutable_shape()->mutable_layout()->set_memory_space(1);
  after.at("part_high").mutable_shape()->mutable_layout()->clear_memory_space();
  after.Computation("main")
      .Add("p = f32[8,128] parameter()")
      .Add(Line("q", kFast, "negate(p)"))
      .Add(absl::StrCat("high_start = ((", kFast, "), ", kRows, ", s32[]{:S(2)}) async-start(q)"),
           "", {"wrapped_high"})
      .Add("a = f32[8,128] negate(q)")
      .Add(Line("high_done", kRows, "async-done(high_start)"))
      .Add("b = f32[4,128] negate(high_done)")
      .Add("r = (f32[8,128], f32[4,128]) tuple(a, b)")
      .Place("q", {}, 4096, 1);
  const Read read = ReadPlan(before, after);
  CHECK(read.OffsetOf("high", "q") == 4096);
  CHECK(read.OffsetOf("high", "high") == -1);
  CHECK(read.OffsetOf("b", "high") == -1);
  CHECK(read.plan.copies.empty());
}

TEST_CASE("a dynamic slice that became a transfer into fast memory is made there") {
  ModuleText before, after;
  before.Computation("main")
      .Add("p = f32[8,128] parameter()")
      .Add("i = s32[] parameter()")
      .Add(Line("high", kRows, "dynamic-slice(p, i, i)"),
           "dynamic_slice_sizes: 4 dynamic_slice_sizes: 128")
      .Add("a = f32[8,128] negate(p)")
      .Add("b = f32[4,128] negate(high)")
      .Add("r = (f32[8,128], f32[4,128]) tuple(a, b)");
  after.Computation("wrapped")
      .Add("of = f32[8,128] parameter()")
      .Add("at = s32[] parameter()")
      .Add(Line("part", kFastRows, "dynamic-slice(of, at, at)"),
           "dynamic_slice_sizes: 4 dynamic_slice_sizes: 128");
  after.Computation("main")
      .Add("p = f32[8,128] parameter()")
      .Add("i = s32[] parameter()")
      .Add(absl::StrCat("start = ((", kMain, ", s32[]), ", kFastRows,
                        ", s32[]{:S(2)}) async-start(p, i)"),
           "", {"wrapped"})
      .Add("a = f32[8,128] negate(p)")
      .Add(Line("done", kFastRows, "async-done(start)"))
      .Add("b = f32[4,128] negate(done)")
      .Add("r = (f32[8,128], f32[4,128]) tuple(a, b)")
      .Place("start", {1}, 4096, 1);
  const Read read = ReadPlan(before, after);
  CHECK(read.OffsetOf("b", "high") == 4096);
  for (const Instruction& instruction : read.program->instructions())
    CHECK_FALSE(instruction.plain_copy);
}

TEST_CASE("a plain copy that became a prefetch of what was evicted just before") {
  ModuleText before, after;
  before.Computation("main")
      .Add("p = f32[8,128] parameter()")
      .Add("q = f32[8,128] negate(p)")
      .Add("c = f32[8,128] copy(q)")
      .Add("r = f32[8,128] abs(c)");
  after.Computation("main")
      .Add("p = f32[8,128] parameter()")
      .Add(Line("q", kFast, "negate(p)"))
      .Add(Start("out", kMain, kFast, "q"))
      .Add(Line("home", kMain, "copy-done(out)"))
      .Add(Start("in", kFast, kMain, "home"))
      .Add(Line("c1", kFast, "copy-done(in)"))
      .Add("r = f32[8,128] abs(c1)")
      .Place("q", {}, 0, 1)
      .Place("in", {0}, 4096, 1);
  const Read read = ReadPlan(before, after);
  REQUIRE(read.plan.copies.size() == 2);
  CHECK(read.plan.copies[0].kind == CopyKind::kEviction);
  REQUIRE(read.plan.copies[1].replaces >= 0);
  CHECK(read.program->instruction(read.plan.copies[1].replaces).name == "c");
  CHECK(read.OffsetOf("r", "c") == 4096);
}

// Between `c` and `r` nothing tells the time.
TEST_CASE("what has left before a copy that goes through fast memory leaves its bytes to it") {
  ModuleText before, after;
  before.Computation("main")
      .Add("p = f32[8,128] parameter()")
      .Add("q = f32[8,128] negate(p)")
      .Add("c = f32[8,128] copy(p)")
      .Add("still = f32[8,128] bitcast(p)")
      .Add("r = f32[8,128] add(c, q)");
  after.Computation("main")
      .Add("p = f32[8,128] parameter()")
      .Add(Line("q", kFast, "negate(p)"))
      .Add(Start("leaves", kMain, kFast, "q"))
      .Add(Line("q1", kMain, "copy-done(leaves)"))
      .Add(Start("in", kFast, kMain, "p"))
      .Add(Line("c1", kFast, "copy-done(in)"))
      .Add(Start("out", kMain, kFast, "c1"))
      .Add(Line("c2", kMain, "copy-done(out)"))
      .Add("still = f32[8,128] bitcast(p)")
      .Add("r = f32[8,128] add(c2, q1)")
      .Place("q", {}, 4096, 1)
      .Place("in", {0}, 4096, 1);
  const Read read = ReadPlan(before, after);
  CHECK(read.OffsetOf("q", "q") == 4096);
  CHECK(read.OffsetOf("c", "c") == 4096);
  REQUIRE(read.plan.copies.size() == 3);
  CHECK(read.program->instruction(read.plan.copies[0].end).name == "c");
}

// The left branch hands on what it is given, so that this is one with what the right one writes.
ModuleText Branches(bool assigned) {
  const char* const place = assigned ? kFast : kMain;
  ModuleText m;
  m.Computation("left").Add(Line("x.l", place, "parameter()"));
  m.Computation("right")
      .Add(absl::StrCat("both = (", place, ", ", place, ") parameter()"))
      .Add(Line("x.r", place, "get-tuple-element(both)"), "tuple_index: 0")
      .Add(Line("k.r", place, "get-tuple-element(both)"), "tuple_index: 1")
      .Add(Line("t.r", place, "negate(k.r)"))
      .Add(Line("u.r", place, "add(t.r, k.r)"))
      .Add(Line("y.r", place, "add(u.r, x.r)"));
  m.Computation("main").Add("which = pred[] parameter()").Add("p = f32[8,128] parameter()");
  return m;
}

TEST_CASE("a copy that became a transfer to what branches write, and a fetch before branches") {
  ModuleText before = Branches(false), after = Branches(true);
  before.Add("k = f32[8,128] parameter()")
      .Add("a = f32[8,128] negate(p)")
      .Add("c = f32[8,128] copy(p)")
      .Add("given = (f32[8,128], f32[8,128]) tuple(c, k)")
      .Add("d = f32[8,128] conditional(which, c, given)", "", {"left", "right"})
      .Add("r = f32[8,128] add(d, a)");
  after.Add("k = f32[8,128] parameter()")
      .Add(Start("k0", kFast, kMain, "k"))
      .Add(Start("c0", kFast, kMain, "p"))
      .Add("a = f32[8,128] negate(p)")
      .Add(Line("k1", kFast, "copy-done(k0)"))
      .Add(Line("c1", kFast, "copy-done(c0)"))
      .Add(absl::StrCat("given = (", kFast, ", ", kFast, ") tuple(c1, k1)"))
      .Add(Line("d", kFast, "conditional(which, c1, given)"), "", {"left", "right"})
      .Add("r = f32[8,128] add(d, a)");
  after.Place("y.r", {}, 0, 1).Place("d", {}, 0, 1).Place("c0", {0}, 0, 1);
  after.Place("k0", {0}, 4096, 1);
  after.Place("t.r", {}, 8192, 1).Place("u.r", {}, 12288, 1);
  const Read read = ReadPlan(before, after);
  CHECK(read.OffsetOf("c", "p") == -1);
  CHECK(read.OffsetOf("t.r", "k") == 4096);
  CHECK(read.OffsetOf("u.r", "k") == 4096);
  REQUIRE(read.plan.copies.size() == 1);
  CHECK(read.program->instruction(read.plan.copies[0].begin).name == "a");
  CHECK(read.program->instruction(read.plan.copies[0].end).name == "x.l");
}

}  // namespace
}  // namespace mallocgame
