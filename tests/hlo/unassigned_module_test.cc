// Modules from after memory space assignment, brought back to main memory. Fast memory is memory
// space 1.
#include "mallocgame/hlo/import/unassigned_module.h"

#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "mallocgame/hlo/module/hlo.pb.h"
#include "tests/catch.h"
#include "tests/hlo/module_text.h"

namespace mallocgame::hlo {
namespace {

using hlo_test::ModuleText;

const std::string kInMain = "f32[64,128]", kInFast = "f32[64,128]{1,0:S(1)}";
const std::string kPrefetchStart = " = (" + kInFast + ", " + kInMain + ", u32[]) copy-start";
const std::string kEvictionStart = " = (" + kInMain + ", " + kInFast + ", u32[]) copy-start";

UnassignedModule TakenBack(const ModuleText& text) {
  auto unassigned = ParseUnassigned(text.Bytes(), 1);
  REQUIRE(unassigned.ok());
  for (const HloInstruction& instruction : unassigned->module->instructions()) {
    for (const Array& array : unassigned->module->arrays(
             static_cast<int32_t>(&instruction - unassigned->module->instructions().data())))
      CHECK(array.memory_space == 0);
  }
  return *std::move(unassigned);
}

// The scheduled instructions of a computation, as in "r=add(a,b)".
std::string OrderOf(const Module& module, int32_t computation) {
  std::vector<std::string> lines;
  for (const int32_t i : module.computation(computation).schedule) {
    std::vector<std::string> operands;
    for (const int32_t operand : module.operands(i))
      operands.push_back(module.instruction(operand).proto->name());
    const HloInstructionProto& proto = *module.instruction(i).proto;
    lines.push_back(proto.name() + "=" + proto.opcode() + "(" + absl::StrJoin(operands, ",") + ")");
  }
  return absl::StrJoin(lines, " ");
}
std::string OrderOf(const UnassignedModule& unassigned) {
  return OrderOf(*unassigned.module, unassigned.module->entry());
}

TEST_CASE("a module from before the assignment stays as it is") {
  ModuleText m;
  m.Computation("main").Add("p = " + kInMain + " parameter()").Add("r = " + kInMain + " negate(p)");
  const UnassignedModule same = TakenBack(m);
  CHECK(OrderOf(same) == "p=parameter() r=negate(p)");
  CHECK(same.arrays == 0);
  CHECK(same.copies == 0);
}

TEST_CASE("prefetches, evictions and preloads for the next run are taken out") {
  ModuleText m;
  m.Computation("main")
      .Add("p = " + kInMain + " parameter()")
      .Add("s" + kPrefetchStart + "(p)", "cross_program_prefetch_index: 0")
      .Add("d = " + kInFast + " copy-done(s)")
      .Add("a = " + kInFast + " negate(d)")
      .Add("s2" + kEvictionStart + "(a)")
      .Add("d2 = " + kInMain + " copy-done(s2)")
      .Add("s3" + kPrefetchStart + "(d2)")
      .Add("d3 = " + kInFast + " copy-done(s3)")
      .Add("next" + kPrefetchStart + "(p)")
      .Add("unused = " + kInFast + " copy-done(next)")
      .Add("r = " + kInMain + " add(d3, d2)");
  const UnassignedModule back = TakenBack(m);
  CHECK(OrderOf(back) == "p=parameter() a=negate(p) r=add(a,a)");
  CHECK(back.arrays == 1);
  CHECK(back.copies == 4);
  CHECK(back.kept_copies == 0);
}

TEST_CASE("slices of all of an array that are joined are the array, others are plain slices") {
  const auto slice = [](ModuleText& m, const std::string& name, int begin, int end) {
    m.Computation(name)
        .Add(name + ".p = " + kInMain + " parameter()")
        .Add(name + ".s = f32[32,128]{1,0:S(1)} slice(" + name + ".p)",
             "slice_dimensions { start: " + std::to_string(begin) +
                 " limit: " + std::to_string(end) +
                 " stride: 1 } slice_dimensions { start: 0 limit: 128 stride: 1 }");
  };
  ModuleText m;
  slice(m, "low", 0, 32);
  slice(m, "high", 32, 64);
  slice(m, "alone", 32, 64);
  m.Computation("main").Add("p = " + kInMain + " parameter()");
  for (const std::string name : {"low", "high", "alone"}) {
    m.Add(name + ".start = ((" + kInMain + "), f32[32,128]{1,0:S(1)}, s32[]) async-start(p)", "",
          {name});
    m.Add(name + ".done = f32[32,128]{1,0:S(1)} async-done(" + name + ".start)");
  }
  m.Add("whole = " + kInFast + " custom-call(high.done, low.done)",
        "custom_call_target: 'ConcatBitcast'")
      .Add("a = " + kInMain + " negate(whole)")
      .Add("b = f32[32,128] negate(alone.done)")
      .Add("r = (" + kInMain + ", f32[32,128]) tuple(a, b)");
  const UnassignedModule back = TakenBack(m);
  CHECK(OrderOf(back) ==
        "p=parameter() alone.done=slice(p) a=negate(p) b=negate(alone.done) r=tuple(a,b)");
  const int32_t plain = hlo_test::Named(*back.module, "alone.done");
  CHECK(back.module->instruction(plain).proto->slice_dimensions(0).start() == 32);
  CHECK(back.copies == 1);
  CHECK(back.kept_copies == 1);
}

TEST_CASE("a dynamic slice between the memories is a plain one, with its indices") {
  ModuleText m;
  m.Computation("cut")
      .Add("cut.p = " + kInMain + " parameter()")
      .Add("cut.i = s32[] parameter()")
      .Add("cut.j = s32[] parameter()")
      .Add("cut.s = f32[32,128]{1,0:S(1)} dynamic-slice(cut.p, cut.i, cut.j)",
           "dynamic_slice_sizes: 32 dynamic_slice_sizes: 128");
  m.Computation("main")
      .Add("p = " + kInMain + " parameter()")
      .Add("i = s32[] parameter()")
      .Add("j = s32[] parameter()")
      .Add("start = ((" + kInMain + ", s32[], s32[]), f32[32,128]{1,0:S(1)}, s32[]) " +
               "async-start(p, i, j)",
           "", {"cut"})
      .Add("done = f32[32,128]{1,0:S(1)} async-done(start)")
      .Add("r = f32[32,128] negate(done)");
  const UnassignedModule back = TakenBack(m);
  CHECK(OrderOf(back) ==
        "p=parameter() i=parameter() j=parameter() done=dynamic-slice(p,i,j) r=negate(done)");
  const int32_t plain = hlo_test::Named(*back.module, "done");
  CHECK(back.module->instruction(plain).proto->dynamic_slice_sizes(0) == 32);
}

// u is updated in place by a fusion-like instruction; the copy of it is read before or afterwards.
ModuleText UpdatedWhileHeld(bool read_afterwards) {
  ModuleText m;
  m.Computation("main")
      .Add("p = " + kInMain + " parameter()")
      .Add("i = s32[] parameter()")
      .Add("part = f32[8,128] parameter()")
      .Add("u = " + kInMain + " negate(p)")
      .Add("s" + kPrefetchStart + "(u)")
      .Add("d = " + kInFast + " copy-done(s)");
  if (!read_afterwards) m.Add("a = " + kInMain + " negate(d)");
  m.Add("v = " + kInMain + " dynamic-update-slice(u, part, i, i)");
  if (read_afterwards) m.Add("a = " + kInMain + " negate(d)");
  m.Add("r = " + kInMain + " add(a, v)");
  return m;
}

TEST_CASE("a copy stays if its source is changed while it is still read") {
  const UnassignedModule before = TakenBack(UpdatedWhileHeld(false)),
                         afterwards = TakenBack(UpdatedWhileHeld(true));
  CHECK(before.copies == 1);
  CHECK(afterwards.kept_copies == 1);
  CHECK(OrderOf(afterwards) ==
        "p=parameter() i=parameter() part=parameter() u=negate(p) d=copy(u) "
        "v=dynamic-update-slice(u,part,i,i) a=negate(d) r=add(a,v)");
}

// A loop carries an array in fast memory. `old_read` is read behind the loop: the array from before
// it was copied, or another one. The body changes what it carries or passes it on.
UnassignedModule UnassignedLoop(bool changes, const std::string& old_read) {
  ModuleText m;
  const std::string carried = "(s32[], " + kInFast + ")";
  m.Computation("body")
      .Add("b.t = " + carried + " parameter()")
      .Add("b.i = s32[] get-tuple-element(b.t)")
      .Add("b.x = " + kInFast + " get-tuple-element(b.t)", "tuple_index: 1")
      .Add("b.y = " + kInMain + " negate(b.x)")
      .Add("b.s" + kPrefetchStart + "(b.y)")
      .Add("b.d = " + kInFast + " copy-done(b.s)")
      .Add("b.r = " + carried + " tuple(b.i, " + (changes ? "b.d)" : "b.x)"));
  m.Computation("condition")
      .Add("c.t = " + carried + " parameter()")
      .Add("c.go = pred[] constant()");
  m.Computation("main")
      .Add("p = " + kInMain + " parameter()")
      .Add("zero = s32[] constant()")
      .Add("u = " + kInMain + " negate(p)")
      .Add("s" + kPrefetchStart + "(u)")
      .Add("d = " + kInFast + " copy-done(s)")
      .Add("t = " + carried + " tuple(zero, d)")
      .Add("w = " + carried + " while(t)", "", {"body", "condition"})
      .Add("x = " + kInFast + " get-tuple-element(w)", "tuple_index: 1")
      .Add("r = " + kInMain + " add(x, " + old_read + ")");
  return TakenBack(m);
}

TEST_CASE("a loop carries what was copied, unless the array from before it is still read") {
  CHECK(UnassignedLoop(true, "p").copies == 2);
  CHECK(UnassignedLoop(false, "u").copies == 2);
  const UnassignedModule needed = UnassignedLoop(true, "u");
  CHECK(needed.copies == 1);
  CHECK(needed.kept_copies == 1);
  CHECK(needed.module->FindByName("d"));
  CHECK(needed.module->instruction(*needed.module->FindByName("d")).proto->opcode() == "copy");
}

TEST_CASE("a copy stays if an argument that was not given away, or a result, needs its own place") {
  const auto back = [](bool donated, bool changed) {
    ModuleText m;
    m.Computation("main")
        .Add("p = " + kInMain + " parameter()")
        .Add("i = s32[] parameter()")
        .Add("part = f32[8,128] parameter()")
        .Add("s" + kPrefetchStart + "(p)")
        .Add("d = " + kInFast + " copy-done(s)")
        .Add("v = " + kInFast + (changed ? " dynamic-update-slice(d, part, i, i)" : " bitcast(d)"))
        .Add("s2" + kEvictionStart + "(v)")
        .Add("d2 = " + kInMain + " copy-done(s2)")
        .Add("r = (" + kInMain + ", s32[]) tuple(d2, i)");
    if (donated) m.Donate(0, 0);
    return TakenBack(m);
  };
  CHECK(back(false, true).kept_copies == 1);
  CHECK(back(false, false).kept_copies == 1);
  CHECK(back(true, true).kept_copies == 0);
  CHECK(back(true, false).kept_copies == 0);
}

TEST_CASE("a copy stays if one branch changes what the other end still holds") {
  const auto back = [](const std::string& read) {
    ModuleText m;
    for (const std::string b : {"l", "r"}) {
      const std::string argument = "(" + kInMain + ", f32[8,128], s32[])";
      m.Computation(b)
          .Add(b + ".t = " + argument + " parameter()")
          .Add(b + ".x = " + kInMain + " get-tuple-element(" + b + ".t)")
          .Add(b + ".u = f32[8,128] get-tuple-element(" + b + ".t)", "tuple_index: 1")
          .Add(b + ".i = s32[] get-tuple-element(" + b + ".t)", "tuple_index: 2");
      if (b == "l") {
        m.Add("l.y = " + kInMain + " dynamic-update-slice(l.x, l.u, l.i, l.i)");
      } else {
        m.Add("r.y = " + kInMain + " bitcast(r.x)");
      }
    }
    m.Computation("main")
        .Add("p = " + kInMain + " parameter()")
        .Add("u = f32[8,128] parameter()")
        .Add("i = s32[] parameter()")
        .Add("which = pred[] parameter()")
        .Add("x = " + kInMain + " negate(p)")
        .Add("s" + kPrefetchStart + "(x)")
        .Add("d = " + kInFast + " copy-done(s)")
        .Add("a = " + kInMain + " negate(d)")
        .Add("t = (" + kInMain + ", f32[8,128], s32[]) tuple(x, u, i)")
        .Add("c = " + kInMain + " conditional(which, t, t)", "", {"l", "r"})
        .Add("z = " + kInMain + " add(c, " + read + ")");
    return TakenBack(m);
  };
  CHECK(back("a").copies == 1);
  CHECK(back("d").kept_copies == 1);
}

}  // namespace
}  // namespace mallocgame::hlo
