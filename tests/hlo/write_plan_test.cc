// Plans are written into small modules, and read back as the compiler's own assignment is.
#include "mallocgame/hlo/write/write_plan.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "mallocgame/base/refusal.h"
#include "mallocgame/hlo/import/import.h"
#include "mallocgame/hlo/module/hlo.pb.h"
#include "mallocgame/plan/validate.h"
#include "tests/catch.h"
#include "tests/hlo/imported.h"
#include "tests/hlo/module_text.h"
#include "tests/hlo/written_plans.h"

namespace mallocgame {
namespace {

using hlo_test::AccessOf;
using hlo_test::Import;
using hlo_test::LoopModule;
using hlo_test::ModuleText;
using hlo_test::ReadBack;
using hlo_test::Unassigned;
using hlo_test::UnitHardware;
using hlo_test::WriteAndRead;

// Two instructions and a result, with room between for copies.
ModuleText ChainModule(const std::string& shape = "f32[64,128]{1,0:T(8,128)}",
                       const std::string& flat = "f32[8192]{0:T(1024)}") {
  ModuleText m;
  m.Computation("main")
      .Add("w = " + shape + " parameter()")
      .Add("x = " + shape + " parameter()")
      .Add("a = " + shape + " negate(x)")
      .Add("b = " + shape + " add(a, w)")
      .Add("flat = " + flat + " bitcast(b)")
      .Add("c = " + flat + " negate(flat)")
      .Add("d = " + shape + " multiply(b, w)")
      .Add("r = (" + flat + ", " + shape + ") tuple(c, d)");
  return m;
}

// A plan of the chain: `a` and `b` in fast memory, `w` fetched in two slices while `a` is made.
Plan ChainPlan(const Program& program) {
  Plan plan = AllMainPlan(program, UnitHardware());
  const AccessId a = AccessOf(program, "a", "a"), w = AccessOf(program, "b", "w"),
                 b = AccessOf(program, "b", "b"), last = AccessOf(program, "d", "b");
  const Tick made = program.access(a).tick, used = program.access(w).tick;
  plan.residences = {{program.access(a).buffer, 0, made, used + 1},
                     {program.access(w).buffer, 32768, made, used + 1},
                     {program.access(b).buffer, 65536, used, program.access(last).tick + 1}};
  plan.served_by[a.index()] = plan.served_by[AccessOf(program, "b", "a").index()] = ResidenceId(0);
  plan.served_by[w.index()] = ResidenceId(1);
  for (const char* user : {"b", "c", "d"})
    plan.served_by[AccessOf(program, user, "b").index()] = ResidenceId(2);
  const Copy first = {CopyKind::kPrefetch, ResidenceId(1), made, used, 0, 16384};
  const Copy second = {CopyKind::kPrefetch, ResidenceId(1), used, used, 16384, 32768};
  plan.copies = {first, second};
  return plan;
}

TEST_CASE("a plan with slices that is written is read back as it was") {
  const ModuleText m = ChainModule();
  const std::shared_ptr<const Program> program = Import(m);
  const Plan plan = ChainPlan(*program);
  CHECK(WriteAndRead(*program, plan, Unassigned(m)) == plan);
}

TEST_CASE("an array of one dimension that ends within a tile is copied whole") {
  for (const auto& [elements, copies] : {std::pair(8192, 2), std::pair(8000, 1)}) {
    const std::string shape = absl::StrCat("f32[", elements, "]{0:T(1024)}");
    const ModuleText m = ChainModule(shape, shape);
    const std::shared_ptr<const Program> program = Import(m);
    CHECK(std::ssize(WriteAndRead(*program, ChainPlan(*program), Unassigned(m)).copies) == copies);
  }
}

TEST_CASE("an eviction of what nobody reads any more is left out, and the plan says so") {
  const ModuleText m = ChainModule();
  const std::shared_ptr<const Program> program = Import(m);
  const Plan plan = ChainPlan(*program);
  Plan more = plan;
  const Tick behind = plan.residences[2].end;
  more.residences[2].end = behind + 1;
  more.copies.push_back({CopyKind::kEviction, ResidenceId(2), behind, behind + 1, 0, 32768});
  REQUIRE(Validate(*program, UnitHardware(), more).ok());
  const auto written = WritePlan(*program, more, UnitHardware(), Unassigned(m));
  INFO(written.status());
  REQUIRE(written.ok());
  CHECK(written->plan.copies == plan.copies);
  CHECK(ReadBack(*program, Unassigned(m), written->module) == plan);
}

TEST_CASE("a copy by way of fast memory, and a fetch of what it brought, are read back") {
  ModuleText m;
  m.Computation("main")
      .Add("x = f32[64,128]{1,0:T(8,128)} parameter()")
      .Add("k = f32[64,128]{1,0:T(8,128)} copy(x)")
      .Add("a = f32[64,128]{1,0:T(8,128)} negate(x)")
      .Add("b = f32[64,128]{1,0:T(8,128)} negate(a)")
      .Add("u = f32[64,128]{1,0:T(8,128)} add(b, k)");
  const std::shared_ptr<const Program> program = Import(m);
  Plan plan = AllMainPlan(*program, UnitHardware());
  const AccessId made = AccessOf(*program, "k", "k"), used = AccessOf(*program, "u", "k");
  const BufferId k = program->access(made).buffer;
  const Tick copy = program->access(made).tick, use = program->access(used).tick;
  plan.residences = {{k, 0, copy, copy + 1}, {k, 0, use - 1, use + 1}};
  plan.served_by[made.index()] = ResidenceId(0);
  plan.served_by[used.index()] = ResidenceId(1);
  plan.copies = {{CopyKind::kPrefetch, ResidenceId(0), copy, copy, 0, 32768},
                 {CopyKind::kEviction, ResidenceId(0), copy + 1, copy + 1, 0, 32768},
                 {CopyKind::kPrefetch, ResidenceId(1), use - 1, use, 0, 32768}};
  plan.copies[0].replaces = copy;
  const Plan found = WriteAndRead(*program, plan, Unassigned(m));
  CHECK(found.served_by == plan.served_by);
  CHECK(found.copies.size() == plan.copies.size());
  CHECK(found.copies[0].replaces == copy);
  CHECK(found.residences == plan.residences);
}

TEST_CASE("a constant is copied before its place in the schedule") {
  ModuleText m;
  m.Computation("main")
      .Add("x = f32[64,128]{1,0:T(8,128)} parameter()")
      .Add("a = f32[64,128]{1,0:T(8,128)} negate(x)")
      .Add("k = f32[64,128]{1,0:T(8,128)} constant()")
      .Add("u = f32[64,128]{1,0:T(8,128)} add(a, k)");
  const std::shared_ptr<const Program> program = Import(m);
  Plan plan = AllMainPlan(*program, UnitHardware());
  const AccessId used = AccessOf(*program, "u", "k");
  const Tick begin = program->access(AccessOf(*program, "a", "a")).tick;
  const Tick end = program->access(used).tick;
  plan.residences = {{program->access(used).buffer, 0, begin, end + 1}};
  plan.served_by[used.index()] = ResidenceId(0);
  plan.copies = {{CopyKind::kPrefetch, ResidenceId(0), begin, end, 0, 32768}};
  CHECK(WriteAndRead(*program, plan, Unassigned(m)) == plan);
}

TEST_CASE("a copy that begins where the program waits for the host is read back") {
  ModuleText m;
  m.Computation("main")
      .Add("h = f32[64,128]{1,0:T(8,128)S(5)} parameter()")
      .Add("w = f32[64,128]{1,0:T(8,128)} parameter()")
      .Add(
          "start = (f32[64,128]{1,0:T(8,128)}, f32[64,128]{1,0:T(8,128)S(5)}, u32[]) "
          "copy-start(h)")
      .Add("a = f32[64,128]{1,0:T(8,128)} negate(w)")
      .Add("done = f32[64,128]{1,0:T(8,128)} copy-done(start)")
      .Add("b = f32[64,128]{1,0:T(8,128)} add(done, w)")
      .Add("r = (f32[64,128]{1,0:T(8,128)}, f32[64,128]{1,0:T(8,128)}) tuple(a, b)");
  const std::shared_ptr<const Program> program = Import(m);
  Plan plan = AllMainPlan(*program, UnitHardware());
  const AccessId used = AccessOf(*program, "b", "w");
  const Tick end = program->access(used).tick;
  REQUIRE(program->instruction(end - 1).name == "done");
  plan.residences = {{program->access(used).buffer, 0, end - 1, end + 1}};
  plan.served_by[used.index()] = ResidenceId(0);
  plan.copies = {{CopyKind::kPrefetch, ResidenceId(0), end - 1, end, 0, 32768}};
  CHECK(WriteAndRead(*program, plan, Unassigned(m)) == plan);
}

hlo::BufferAssignmentProto AssignmentOf(const PhaseModule& module) {
  hlo::BufferAssignmentProto assignment;
  REQUIRE(assignment.ParseFromString(module.buffer_assignment));
  return assignment;
}

// With value `one` of main memory, by its place among the assigned ones, at the bytes of `other`.
PhaseModule WithOneAt(const PhaseModule& module, int one, int other) {
  hlo::BufferAssignmentProto assignment = AssignmentOf(module);
  auto& assigned = *assignment.mutable_buffer_allocations(0)->mutable_assigned();
  REQUIRE(assigned.size() > std::max(one, other));
  assigned[one].set_offset(assigned[other].offset());
  return {module.module, assignment.SerializeAsString()};
}

// In main memory, by logical buffer.
std::map<int64_t, int64_t> OffsetsIn(const hlo::BufferAssignmentProto& assignment) {
  std::map<int64_t, int64_t> offset_of;
  for (const auto& one : assignment.buffer_allocations(0).assigned())
    offset_of[one.logical_buffer_id()] = one.offset();
  return offset_of;
}

TEST_CASE("what a copy reads later than the instruction whose place it takes keeps its bytes") {
  ModuleText m;
  m.Computation("main")
      .Add("x = f32[64,128]{1,0:T(8,128)} parameter()")
      .Add("a = f32[64,128]{1,0:T(8,128)} negate(x)")
      .Add("k = f32[64,128]{1,0:T(8,128)} copy(a)")
      .Add("b = f32[64,128]{1,0:T(8,128)} negate(x)")
      .Add("u = f32[64,128]{1,0:T(8,128)} add(b, k)");
  const std::shared_ptr<const Program> program = Import(m);
  Plan plan = AllMainPlan(*program, UnitHardware());
  const AccessId made = AccessOf(*program, "k", "k"), used = AccessOf(*program, "u", "k");
  const Tick copy = program->access(made).tick, use = program->access(used).tick;
  plan.residences = {{program->access(made).buffer, 0, copy, use + 1}};
  plan.served_by[made.index()] = plan.served_by[used.index()] = ResidenceId(0);
  plan.copies = {{CopyKind::kPrefetch, ResidenceId(0), copy, use, 0, 32768}};
  plan.copies[0].replaces = copy;
  const PhaseModule shared = WithOneAt(Unassigned(m), 3, 1);  // `b` where `a` was
  const absl::StatusOr<WrittenPlan> written = WritePlan(*program, plan, UnitHardware(), shared);
  INFO(written.status());
  REQUIRE(written.ok());
  CHECK(ReadBack(*program, shared, written->module).served_by == plan.served_by);
  const hlo::BufferAssignmentProto assignment = AssignmentOf(written->module);
  const std::map<int64_t, int64_t> offset_of = OffsetsIn(assignment);
  CHECK(offset_of.at(2) != offset_of.at(4));
}

// `b` has the bytes of `a` in main memory, is made in fast memory, and is evicted while the copy
// that takes the place of `k` still reads `a`.
TEST_CASE("what is evicted keeps away from what a copy reads later than its instruction") {
  ModuleText m;
  m.Computation("main")
      .Add("x = f32[64,128]{1,0:T(8,128)} parameter()")
      .Add("a = f32[64,128]{1,0:T(8,128)} negate(x)")
      .Add("k = f32[64,128]{1,0:T(8,128)} copy(a)")
      .Add("b = f32[64,128]{1,0:T(8,128)} negate(x)")
      .Add("c = f32[64,128]{1,0:T(8,128)} negate(x)")
      .Add("d = f32[64,128]{1,0:T(8,128)} add(b, c)")
      .Add("u = f32[64,128]{1,0:T(8,128)} add(d, k)");
  const std::shared_ptr<const Program> program = Import(m);
  Plan plan = AllMainPlan(*program, UnitHardware());
  const AccessId made = AccessOf(*program, "k", "k"), used = AccessOf(*program, "u", "k"),
                 evicted = AccessOf(*program, "b", "b");
  const Tick copy = program->access(made).tick, use = program->access(used).tick,
             leaves = program->access(evicted).tick;
  plan.residences = {{program->access(made).buffer, 0, copy, use + 1},
                     {program->access(evicted).buffer, 32768, leaves, leaves + 2}};
  plan.served_by[made.index()] = plan.served_by[used.index()] = ResidenceId(0);
  plan.served_by[evicted.index()] = ResidenceId(1);
  plan.copies = {{CopyKind::kPrefetch, ResidenceId(0), copy, use, 0, 32768},
                 {CopyKind::kEviction, ResidenceId(1), leaves + 1, leaves + 2, 0, 32768}};
  plan.copies[0].replaces = copy;
  const PhaseModule shared = WithOneAt(Unassigned(m), 3, 1);
  const int64_t known = AssignmentOf(shared).logical_buffers_size();
  const absl::StatusOr<WrittenPlan> written = WritePlan(*program, plan, UnitHardware(), shared);
  INFO(written.status());
  REQUIRE(written.ok());
  CHECK(ReadBack(*program, shared, written->module).served_by == plan.served_by);
  const hlo::BufferAssignmentProto assignment = AssignmentOf(written->module);
  const std::map<int64_t, int64_t> offset_of = OffsetsIn(assignment);
  int64_t brought = 0;  // what the eviction brings to main memory
  for (const auto& buffer : assignment.logical_buffers()) {
    if (buffer.id() > known && buffer.color() == 0 && buffer.size() == 32768) brought = buffer.id();
  }
  REQUIRE(brought > known);
  CHECK(offset_of.at(brought) != offset_of.at(2));
}

TEST_CASE("what only a copy in the place of an instruction reads is evicted for it") {
  ModuleText m;
  m.Computation("main")
      .Add("x = f32[64,128]{1,0:T(8,128)} parameter()")
      .Add("a = f32[64,128]{1,0:T(8,128)} negate(x)")
      .Add("k = f32[64,128]{1,0:T(8,128)} copy(a)")
      .Add("b = f32[64,128]{1,0:T(8,128)} negate(x)")
      .Add("c = f32[64,128]{1,0:T(8,128)} negate(b)")
      .Add("u = f32[64,128]{1,0:T(8,128)} add(c, k)");
  const std::shared_ptr<const Program> program = Import(m);
  Plan plan = AllMainPlan(*program, UnitHardware());
  const AccessId first = AccessOf(*program, "a", "a"), made = AccessOf(*program, "k", "k"),
                 used = AccessOf(*program, "u", "k");
  const Tick copy = program->access(made).tick, gone = copy + 2, use = program->access(used).tick;
  plan.residences = {{program->access(first).buffer, 0, copy - 1, gone},
                     {program->access(made).buffer, 0, gone, use + 1}};
  plan.served_by[first.index()] = ResidenceId(0);
  plan.served_by[made.index()] = plan.served_by[used.index()] = ResidenceId(1);
  plan.copies = {{CopyKind::kEviction, ResidenceId(0), copy, gone, 0, 32768},
                 {CopyKind::kPrefetch, ResidenceId(1), gone, use, 0, 32768}};
  plan.copies[1].replaces = copy;
  REQUIRE(Validate(*program, UnitHardware(), plan).ok());
  const Plan found = WriteAndRead(*program, plan, Unassigned(m));
  CHECK(found.served_by == plan.served_by);
  REQUIRE(found.copies.size() == 2);
  CHECK((found.copies[0].kind == CopyKind::kEviction && found.copies[0].end == gone));
  CHECK(found.copies[1] == plan.copies[1]);
}

// A permute that runs while `c` is made.
ModuleText PermuteModule() {
  ModuleText m;
  m.Computation("main")
      .Add("x = f32[64,128]{1,0:T(8,128)} parameter()")
      .Add("a = f32[64,128]{1,0:T(8,128)} negate(x)")
      .Add(
          "start = (f32[64,128]{1,0:T(8,128)}, f32[64,128]{1,0:T(8,128)}, u32[]) "
          "collective-permute-start(a)")
      .Add("b = f32[64,128]{1,0:T(8,128)} negate(x)")
      .Add("c = f32[64,128]{1,0:T(8,128)} negate(b)")
      .Add("done = f32[64,128]{1,0:T(8,128)} collective-permute-done(start)")
      .Add("d = f32[64,128]{1,0:T(8,128)} add(c, done)");
  return m;
}

TEST_CASE("what a transfer holds can't leave before it is done") {
  const ModuleText m = PermuteModule();
  const std::shared_ptr<const Program> program = Import(m);
  Plan plan = AllMainPlan(*program, UnitHardware());
  const AccessId a = AccessOf(*program, "a", "a"), sent = AccessOf(*program, "start", "a"),
                 b = AccessOf(*program, "b", "b"), c = AccessOf(*program, "c", "b");
  plan.residences = {
      {program->access(a).buffer, 0, program->access(a).tick, program->access(sent).tick + 1},
      {program->access(b).buffer, 0, program->access(b).tick, program->access(c).tick + 1}};
  plan.served_by[a.index()] = plan.served_by[sent.index()] = ResidenceId(0);
  plan.served_by[b.index()] = plan.served_by[c.index()] = ResidenceId(1);
  const Tick behind = program->access(sent).tick + 1;
  plan.residences[0].end = plan.residences[1].begin = behind;
  plan.copies = {{CopyKind::kEviction, ResidenceId(0), behind, behind, 0, 32768}};
  const absl::Status refused = WritePlan(*program, plan, UnitHardware(), Unassigned(m)).status();
  CHECK_THAT(std::string(refused.message()), Catch::Contains("a transfer begins that holds it"));
  plan.copies.clear();
  plan.residences[0].end = program->access(AccessOf(*program, "done", "a")).tick + 1;
  plan.residences[1].offset = 32768;
  plan.served_by[AccessOf(*program, "done", "a").index()] = ResidenceId(0);
  CHECK(WriteAndRead(*program, plan, Unassigned(m)).served_by == plan.served_by);
}

TEST_CASE("a branch is given one value at the two places where it reads it") {
  constexpr char kArray[] = "f32[64,128]{1,0:T(8,128)}";
  const std::string given = absl::StrCat("(", kArray, ", ", kArray, ")");
  ModuleText m;
  m.Computation("left")
      .Add(absl::StrCat("l = ", given, " parameter()"))
      .Add(absl::StrCat("lx = ", kArray, " get-tuple-element(l)"), "tuple_index: 0")
      .Add(absl::StrCat("lw = ", kArray, " get-tuple-element(l)"), "tuple_index: 1")
      .Add(absl::StrCat("a = ", kArray, " negate(lx)"))
      .Add(absl::StrCat("b = ", kArray, " add(a, lx)"))
      .Add(absl::StrCat("c = ", kArray, " add(b, lw)"));
  m.Computation("right")
      .Add(absl::StrCat("r = ", given, " parameter()"))
      .Add(absl::StrCat("rx = ", kArray, " get-tuple-element(r)"), "tuple_index: 0")
      .Add(absl::StrCat("d = ", kArray, " cosine(rx)"));
  m.Computation("main")
      .Add("which = pred[] parameter()")
      .Add(absl::StrCat("x = ", kArray, " parameter()"))
      .Add(absl::StrCat("w = ", kArray, " parameter()"))
      .Add(absl::StrCat("y = ", kArray, " negate(w)"))
      .Add(absl::StrCat("both = ", given, " tuple(x, w)"))
      .Add(absl::StrCat("chosen = ", kArray, " conditional(which, both, both)"), "",
           {"left", "right"})
      .Add(absl::StrCat("z = ", kArray, " add(chosen, y)"));
  const std::shared_ptr<const Program> program = Import(m);
  Plan plan = AllMainPlan(*program, UnitHardware());
  const AccessId first = AccessOf(*program, "a", "x");
  const Tick made = program->access(AccessOf(*program, "y", "w")).tick,
             used = program->access(first).tick;
  plan.residences = {{program->access(first).buffer, 0, made, used + 1}};
  plan.served_by[first.index()] = ResidenceId(0);
  plan.copies = {{CopyKind::kPrefetch, ResidenceId(0), made, made + 1, 0, 32768}};
  const PhaseModule before = Unassigned(m);
  CHECK(WriteAndRead(*program, plan, before).served_by == plan.served_by);

  // The tuples that the branches are given are there at one time.
  const auto written = WritePlan(*program, plan, UnitHardware(), before);
  hlo::HloModuleProtoWithConfig whole;
  hlo::BufferAssignmentProto assignment;
  REQUIRE(whole.ParseFromString(written->module.module));
  REQUIRE(assignment.ParseFromString(written->module.buffer_assignment));
  std::map<int64_t, std::string> opcodes;  // by instruction
  for (const auto& computation : whole.hlo_module().computations()) {
    for (const auto& instruction : computation.instructions()) {
      opcodes[instruction.id()] = instruction.opcode();
      if (instruction.name() == "l") CHECK(instruction.shape().tuple_shapes_size() == 3);
    }
  }
  std::set<int64_t> offsets, tables;
  for (const auto& buffer : assignment.logical_buffers()) {
    if (opcodes[buffer.defined_at().instruction_id()] == "tuple") tables.insert(buffer.id());
  }
  for (const auto& allocation : assignment.buffer_allocations()) {
    for (const auto& one : allocation.assigned())
      if (tables.contains(one.logical_buffer_id())) offsets.insert(one.offset());
  }
  CHECK(tables.size() >= 2);
  CHECK(offsets.size() == tables.size());
}

TEST_CASE("a branch in a branch is given in main memory what has left fast memory by then") {
  const std::string array = "f32[64,128]{1,0:T(8,128)}",
                    two = absl::StrCat("(", array, ", ", array, ")"),
                    given = absl::StrCat("(", array, ", ", array, ", pred[])");
  const auto element = [&](const std::string& name, const std::string& of) {
    return absl::StrCat(name, " = ", array, " get-tuple-element(", of, ")");
  };
  ModuleText m;
  for (const std::string name : {"inner_left", "inner_right"}) {
    m.Computation(name)
        .Add(absl::StrCat(name, ".p = ", two, " parameter()"))
        .Add(element(name + ".w", name + ".p"), "tuple_index: 1")
        .Add(absl::StrCat(name, ".r = ", array, " cosine(", name, ".w)"));
  }
  m.Computation("left")
      .Add(absl::StrCat("l = ", given, " parameter()"))
      .Add(element("lx", "l"), "tuple_index: 0")
      .Add(element("lw", "l"), "tuple_index: 1")
      .Add("lp = pred[] get-tuple-element(l)", "tuple_index: 2")
      .Add(absl::StrCat("a = ", array, " negate(lx)"))
      .Add(absl::StrCat("pair = ", two, " tuple(lx, lw)"))
      .Add(absl::StrCat("b = ", array, " conditional(lp, pair, pair)"), "",
           {"inner_left", "inner_right"})
      .Add(absl::StrCat("c = ", array, " add(a, b)"));
  m.Computation("right")
      .Add(absl::StrCat("r = ", given, " parameter()"))
      .Add(element("rx", "r"), "tuple_index: 0")
      .Add(absl::StrCat("d = ", array, " cosine(rx)"));
  m.Computation("main")
      .Add("which = pred[] parameter()")
      .Add(absl::StrCat("x = ", array, " parameter()"))
      .Add(absl::StrCat("w = ", array, " parameter()"))
      .Add(absl::StrCat("y = ", array, " negate(w)"))
      .Add(absl::StrCat("all = ", given, " tuple(x, w, which)"))
      .Add(absl::StrCat("chosen = ", array, " conditional(which, all, all)"), "", {"left", "right"})
      .Add(absl::StrCat("z = ", array, " add(chosen, y)"));
  const std::shared_ptr<const Program> program = Import(m);
  Plan plan = AllMainPlan(*program, UnitHardware());
  const AccessId only = AccessOf(*program, "a", "x");
  const Tick made = program->access(AccessOf(*program, "y", "w")).tick;
  plan.residences = {{program->access(only).buffer, 0, made, program->access(only).tick + 1}};
  plan.served_by[only.index()] = ResidenceId(0);
  plan.copies = {{CopyKind::kPrefetch, ResidenceId(0), made, made + 1, 0, 32768}};
  const auto written = WritePlan(*program, plan, UnitHardware(), Unassigned(m));
  INFO(written.status());
  REQUIRE(written.ok());
  hlo::HloModuleProtoWithConfig whole;
  REQUIRE(whole.ParseFromString(written->module.module));
  std::map<std::string, int64_t> spaces;  // of the first element of parameters
  for (const auto& computation : whole.hlo_module().computations()) {
    for (const auto& one : computation.instructions()) {
      if (one.opcode() == "parameter" && one.shape().element_type() == hlo::TUPLE)
        spaces[one.name()] = one.shape().tuple_shapes(0).layout().memory_space();
    }
  }
  CHECK(spaces.at("l") == 1);
  CHECK(spaces.at("inner_left.p") == 0);
  CHECK(spaces.at("inner_right.p") == 0);
}

TEST_CASE("the plan with everything in main memory adds nothing") {
  const ModuleText m = LoopModule();
  const std::shared_ptr<const Program> program = Import(m);
  const Plan plan = AllMainPlan(*program, UnitHardware());
  const absl::StatusOr<WrittenPlan> written =
      WritePlan(*program, plan, UnitHardware(), Unassigned(m));
  INFO(written.status());
  REQUIRE(written.ok());
  hlo::HloModuleProtoWithConfig whole;
  REQUIRE(whole.ParseFromString(written->module.module));
  for (const auto& computation : whole.hlo_module().computations()) {
    for (const auto& instruction : computation.instructions())
      CHECK(!absl::EndsWith(instruction.opcode(), "-start"));
  }
}

TEST_CASE("a program without results is written") {
  ModuleText m;
  m.Computation("main").Add("x = f32[64,128]{1,0:T(8,128)} parameter()").Add("r = () tuple()");
  const std::shared_ptr<const Program> program = Import(m);
  const Plan plan = AllMainPlan(*program, UnitHardware());
  CHECK(WriteAndRead(*program, plan, Unassigned(m)) == plan);
}

TEST_CASE("what a loop carries lies in one place in fast memory") {
  const ModuleText m = LoopModule();
  const std::shared_ptr<const Program> program = Import(m);
  Plan plan = AllMainPlan(*program, UnitHardware());
  const Loop& loop = program->loops()[0];
  const BufferId space = program->access(AccessOf(*program, "put", "space")).buffer;
  plan.residences = {{space, 4096, loop.entry, program->ticks()}};
  for (const AccessId a : program->accesses_of(space)) plan.served_by[a.index()] = ResidenceId(0);
  CHECK(WriteAndRead(*program, plan, Unassigned(m)).served_by == plan.served_by);
}

TEST_CASE("a plan that breaks a rule, and messages that are damaged, are refused") {
  const ModuleText m = ChainModule();
  const std::shared_ptr<const Program> program = Import(m);
  Plan plan = ChainPlan(*program);
  const auto refusal = [&](const PhaseModule& unassigned) {
    return WritePlan(*program, plan, UnitHardware(), unassigned).status();
  };
  PhaseModule cut = Unassigned(m);
  cut.buffer_assignment.clear();
  CHECK(RefusalOf(refusal(cut)).rule == "readable");
  CHECK(refusal({"", Unassigned(m).buffer_assignment}).code() ==
        absl::StatusCode::kInvalidArgument);
  CHECK(RefusalOf(refusal(Unassigned(LoopModule()))).rule == "other-program");
  plan.residences[1].offset = 0;
  CHECK(RefusalOf(refusal(Unassigned(m))).rule == "space");
}

}  // namespace
}  // namespace mallocgame
