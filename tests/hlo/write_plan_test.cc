// Plans are written into small modules, and read back as the compiler's own assignment is.
#include "mallocgame/hlo/write_plan.h"

#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "mallocgame/hlo/hlo.pb.h"
#include "mallocgame/hlo/import.h"
#include "mallocgame/plan/validate.h"
#include "tests/catch.h"
#include "tests/hlo/imported.h"
#include "tests/hlo/module_text.h"

namespace mallocgame {
namespace {

using hlo_test::Import;
using hlo_test::LoopModule;
using hlo_test::ModuleText;
using hlo_test::UnitHardware;

// Two instructions and a result, with room between for copies.
ModuleText ChainModule() {
  ModuleText m;
  m.Computation("main")
      .Add("w = f32[64,128]{1,0:T(8,128)} parameter()")
      .Add("x = f32[64,128]{1,0:T(8,128)} parameter()")
      .Add("a = f32[64,128]{1,0:T(8,128)} negate(x)")
      .Add("b = f32[64,128]{1,0:T(8,128)} add(a, w)")
      .Add("flat = f32[8192]{0:T(1024)} bitcast(b)")
      .Add("c = f32[8192]{0:T(1024)} negate(flat)")
      .Add("d = f32[64,128]{1,0:T(8,128)} multiply(b, w)")
      .Add("r = (f32[8192]{0:T(1024)}, f32[64,128]{1,0:T(8,128)}) tuple(c, d)");
  return m;
}

// What the first phase gives: every value has bytes of its own in main memory.
PhaseModule Unassigned(ModuleText m) {
  hlo::HloModuleProtoWithConfig whole;
  *whole.mutable_hlo_module() = m.proto().hlo_module();
  whole.mutable_config()->mutable_entry_computation_layout()->add_parameter_names("kept");
  hlo::BufferAssignmentProto assignment;
  hlo::BufferAllocationProto& heap = *assignment.add_buffer_allocations();
  for (const auto& computation : m.proto().hlo_module().computations()) {
    for (const auto& instruction : computation.instructions()) {
      if (instruction.shape().element_type() == hlo::TUPLE) continue;
      hlo::LogicalBufferProto& buffer = *assignment.add_logical_buffers();
      buffer.set_id(assignment.logical_buffers_size());
      buffer.set_size(32768);
      buffer.mutable_defined_at()->set_instruction_id(instruction.id());
      auto& assigned = *heap.add_assigned();
      assigned.set_logical_buffer_id(buffer.id());
      assigned.set_offset(heap.size());
      assigned.set_size(32768);
      heap.set_size(heap.size() + 32768);
    }
  }
  return {whole.SerializeAsString(), assignment.SerializeAsString()};
}

AccessId AccessOf(const Program& program, const std::string& instruction,
                  const std::string& buffer) {
  for (size_t a = 0; a < program.accesses().size(); ++a) {
    const Access& access = program.accesses()[a];
    if (program.instruction(access.tick).name == instruction &&
        program.buffer(access.buffer).name == buffer) {
      return AccessId(a);
    }
  }
  FAIL("no access of " << buffer << " by " << instruction);
  return {};
}

Plan ReadBack(const Program& program, const PhaseModule& before, const PhaseModule& written) {
  hlo::HloProto assigned;
  hlo::HloModuleProtoWithConfig whole;
  REQUIRE(whole.ParseFromString(written.module));
  CHECK(whole.config().entry_computation_layout().parameter_names(0) == "kept");
  *assigned.mutable_hlo_module() = whole.hlo_module();
  REQUIRE(assigned.mutable_buffer_assignment()->ParseFromString(written.buffer_assignment));
  const absl::StatusOr<Plan> plan =
      ReadAssignment(program, before.module, assigned.SerializeAsString(), UnitHardware());
  INFO(plan.status());
  REQUIRE(plan.ok());
  return *plan;
}

Plan WriteAndRead(const Program& program, const Plan& plan, const PhaseModule& before) {
  const Verdict verdict = Validate(program, UnitHardware(), plan);
  INFO(verdict.message);
  REQUIRE(verdict.ok());
  const absl::StatusOr<PhaseModule> written = WritePlan(program, plan, UnitHardware(), before);
  INFO(written.status());
  REQUIRE(written.ok());
  return ReadBack(program, before, *written);
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

TEST_CASE("the plan with everything in main memory adds nothing") {
  const ModuleText m = LoopModule();
  const std::shared_ptr<const Program> program = Import(m);
  const Plan plan = AllMainPlan(*program, UnitHardware());
  const absl::StatusOr<PhaseModule> written =
      WritePlan(*program, plan, UnitHardware(), Unassigned(m));
  INFO(written.status());
  REQUIRE(written.ok());
  hlo::HloModuleProtoWithConfig whole;
  REQUIRE(whole.ParseFromString(written->module));
  for (const auto& computation : whole.hlo_module().computations()) {
    for (const auto& instruction : computation.instructions())
      CHECK(!absl::EndsWith(instruction.opcode(), "-start"));
  }
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
  CHECK(absl::StrContains(refusal(cut).message(), "buffer assignment: no BufferAssignmentProto"));
  CHECK(refusal({"", Unassigned(m).buffer_assignment}).code() ==
        absl::StatusCode::kInvalidArgument);
  CHECK(absl::StrContains(refusal(Unassigned(LoopModule())).message(), "was not made of this"));
  plan.residences[1].offset = 0;
  CHECK(absl::StrContains(refusal(Unassigned(m)).message(), "plan: rule 'space'"));
}

}  // namespace
}  // namespace mallocgame
