#include "tests/hlo/written_plans.h"

#include "absl/strings/match.h"
#include "mallocgame/hlo/import/import.h"
#include "mallocgame/hlo/module/hlo.pb.h"
#include "mallocgame/hlo/write/write_plan.h"
#include "mallocgame/plan/validate.h"
#include "tests/catch.h"

namespace mallocgame::hlo_test {

PhaseModule Unassigned(ModuleText m) {
  hlo::HloModuleProtoWithConfig whole;
  *whole.mutable_hlo_module() = m.proto().hlo_module();
  whole.mutable_config()->mutable_entry_computation_layout()->add_parameter_names("kept");
  hlo::BufferAssignmentProto assignment;
  hlo::BufferAllocationProto& heap = *assignment.add_buffer_allocations();
  for (const auto& computation : m.proto().hlo_module().computations()) {
    for (const auto& instruction : computation.instructions()) {
      const bool starts = absl::EndsWith(instruction.opcode(), "-start");
      if (instruction.shape().element_type() == hlo::TUPLE && !starts) continue;
      if (absl::EndsWith(instruction.opcode(), "-done")) continue;  // it gives what was started
      hlo::LogicalBufferProto& buffer = *assignment.add_logical_buffers();
      buffer.set_id(assignment.logical_buffers_size());
      buffer.set_size(32768);
      buffer.mutable_defined_at()->set_instruction_id(instruction.id());
      if (starts) buffer.mutable_defined_at()->add_shape_index(1);
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
  const absl::StatusOr<WrittenPlan> written = WritePlan(program, plan, UnitHardware(), before);
  INFO(written.status());
  REQUIRE(written.ok());
  return ReadBack(program, before, written->module);
}

}  // namespace mallocgame::hlo_test
