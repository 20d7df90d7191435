// The compiler's own answer as a plan, read from small modules before and after assignment.
#include <string>

#include "absl/strings/str_cat.h"
#include "mallocgame/base/refusal.h"
#include "mallocgame/hlo/import/import.h"
#include "tests/catch.h"
#include "tests/hlo/assigned_plans.h"
#include "tests/hlo/module_text.h"

namespace mallocgame {
namespace {

using hlo_test::DoneSlice;
using hlo_test::kFast;
using hlo_test::kHigh;
using hlo_test::kLow;
using hlo_test::kMain;
using hlo_test::kRows;
using hlo_test::Line;
using hlo_test::LoopText;
using hlo_test::ModuleText;
using hlo_test::Read;
using hlo_test::ReadPlan;
using hlo_test::Start;
using hlo_test::StartSlice;
using hlo_test::Straight;
using hlo_test::TryRead;
using hlo_test::UnitHardware;
using hlo_test::WithPrefetch;
using hlo_test::Wrap;

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

TEST_CASE("a result evicted and fetched again is two residences") {
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
  CHECK(read.plan.copies[0].kind == CopyKind::kEviction);
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

// As libtpu 0.0.51 has it for v5p, where a loop carries what its kernel pins.
TEST_CASE(
    "what a kernel pins, and the compiler makes in main memory to fetch it, is made in place") {
  const std::string pins =
      "custom_call_target: 'tpu_custom_call' backend_config: '{\"input_memory_space_colors\":["
      "{\"operand_index\":\"0\",\"color\":\"1\",\"shape_index\":[]}]}'";
  ModuleText before, after;
  before.Computation("main")
      .Add("p = f32[8,128] parameter()")
      .Add(Line("c", kFast, "copy(p)"))
      .Add("k = f32[8,128] custom-call(c)", pins);
  after.Computation("main")
      .Add("p = f32[8,128] parameter()")
      .Add("c = f32[8,128] copy(p)")
      .Add(Start("in", kFast, kMain, "c"))
      .Add(Line("c1", kFast, "copy-done(in)"))
      .Add("k = f32[8,128] custom-call(c1)", pins)
      .Place("in", {0}, 4096, 1);
  const Read read = ReadPlan(before, after);
  CHECK(read.OffsetOf("c", "c") == 4096);
  CHECK(read.OffsetOf("k", "c") == 4096);
  CHECK(read.plan.copies.empty());
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

TEST_CASE("a copy that is split between two cores has all bytes of the buffer") {
  // On v5p a copy in fast memory may have one half of the array on each core: SC(0:4).
  const char* const split = "f32[8,128]{1,0:T(8,128)S(1)SC(0:4)}";
  const ModuleText after = WithPrefetch(split, 8192);
  const Read read = ReadPlan(Straight(), after);
  CHECK(read.OffsetOf("b", "q") == 8192);
  REQUIRE(read.plan.copies.size() == 1);
  CHECK(read.plan.copies[0] == Copy{CopyKind::kPrefetch, ResidenceId(0), 2, 3, 0, 4096, false, -1});
  // The halves fit at the top of fast memory, where all of it doesn't: then it lies elsewhere.
  const ModuleText top = WithPrefetch(split, UnitHardware().fast_bytes - 2048);
  CHECK(ReadPlan(Straight(), top).OffsetOf("b", "q") == 0);
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

TEST_CASE("what does not fit together is refused") {
  std::shared_ptr<const Program> program;
  const auto refused = [&program](const ModuleText& before, const ModuleText& after,
                                  const Refusal& refusal) {
    const absl::Status status = TryRead(before, after, &program).status();
    INFO(status);
    CHECK(status.code() == absl::StatusCode::kInvalidArgument);
    CHECK(RefusalOf(status) == refusal);
  };
  ModuleText same = Straight();
  refused(Straight(), same, {.rule = "readable"});
  same.Place("a", {}, 0, 1);
  CHECK(TryRead(Straight(), same, &program).ok());

  ModuleText fast = Straight();
  fast.at("a").mutable_shape()->mutable_layout()->set_memory_space(1);
  fast.proto().mutable_buffer_assignment();
  int32_t first = 0;
  while (program->buffer(program->accesses()[first].buffer).name != "a") ++first;
  refused(Straight(), fast, {.rule = "buffer", .accesses = {first}});
  ModuleText renamed = same;
  renamed.at("a").set_name("elsewhere");
  refused(Straight(), renamed, {.rule = "other-program", .instructions = {"a"}});
  ModuleText far = same;
  far.Place("b", {}, INT64_MAX, 1);
  refused(Straight(), far, {.rule = "readable"});
  ModuleText large = fast;
  large.Place("a", {}, UnitHardware().fast_bytes - 4096, 1);
  CHECK(TryRead(Straight(), large, &program).ok());
  large = fast;
  large.Place("a", {}, UnitHardware().fast_bytes - 4095, 1);
  refused(Straight(), large, {.rule = "capacity", .exceeded_bytes = 1});
  ModuleText fewer = same;
  fewer.at("r").mutable_operand_ids()->RemoveLast();
  refused(Straight(), fewer, {.rule = "other-program", .instructions = {"r"}});

  const char* const twice = "f32[16,128]{1,0:S(1)}";
  refused(Straight(), WithPrefetch(twice, 8192), {.rule = "transfer"});

  const std::string module = Straight().Bytes(), other = LoopText(kMain, kMain, false).Bytes(),
                    assigned = same.Bytes();
  CHECK_FALSE(ReadAssignment(*program, other, assigned, UnitHardware()).ok());
  CHECK_FALSE(ReadAssignment(*program, module, assigned.substr(0, 50), UnitHardware()).ok());
}

}  // namespace
}  // namespace mallocgame
