// Accepts what the compiler itself assigns, and refuses modules that are broken on purpose, each by
// the rule that it breaks. The modules are those of the compiler's first phase: a loop with copies
// (wavernn), and slices with a preload (mlp_kernel).
#include "mallocgame/hlo/check/check_phase_module.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "mallocgame/base/refusal.h"
#include "mallocgame/hlo/module/hlo.pb.h"
#include "mallocgame/replay/files.h"
#include "tests/catch.h"
#include "tests/hlo/module_text.h"

namespace mallocgame::hlo {
namespace {

constexpr int64_t kFast = 1;

std::string Read(const std::string& name) {
  const auto bytes = ReadFile(absl::StrCat(MALLOCGAME_SOURCE_DIR "/tests/hlo/phase/", name));
  INFO(name);
  REQUIRE(bytes.ok());
  return *bytes;
}

PhaseModule ReadPhase(const std::string& name) {
  return {Read(name + ".opt_hlo.pb.gz"), Read(name + ".buffer_assignment.pb.gz")};
}

// An assigned module to be broken. HloProto keeps the configuration, which it does not know.
class Written {
 public:
  explicit Written(const std::string& program) : original_(ReadPhase(program + "_off")) {
    const PhaseModule assigned = ReadPhase(program + "_on");
    REQUIRE(whole_.ParseFromString(assigned.module));
    REQUIRE(assignment.ParseFromString(assigned.buffer_assignment));
  }

  HloModuleProto& module() { return *whole_.mutable_hlo_module(); }
  HloComputationProto& ComputationOf(const std::string& instruction) {
    for (HloComputationProto& computation : *module().mutable_computations()) {
      for (const HloInstructionProto& i : computation.instructions()) {
        if (i.name() == instruction) return computation;
      }
    }
    FAIL("no instruction " << instruction);
    return *module().mutable_computations(0);
  }
  HloInstructionProto& at(const std::string& name) {
    for (HloInstructionProto& i : *ComputationOf(name).mutable_instructions()) {
      if (i.name() == name) return i;
    }
    return *ComputationOf(name).mutable_instructions(0);
  }
  LogicalBufferProto& Buffer(const std::string& name, const std::vector<int64_t>& index) {
    const int64_t id = at(name).id();
    for (LogicalBufferProto& buffer : *assignment.mutable_logical_buffers()) {
      const auto& found = buffer.defined_at().shape_index();
      if (buffer.defined_at().instruction_id() == id &&
          std::vector<int64_t>(found.begin(), found.end()) == index)
        return buffer;
    }
    FAIL("no logical buffer of " << name);
    return *assignment.mutable_logical_buffers(0);
  }
  BufferAllocationProto::Assigned& Place(const std::string& name,
                                         const std::vector<int64_t>& index = {}) {
    const int64_t id = Buffer(name, index).id();
    for (BufferAllocationProto& allocation : *assignment.mutable_buffer_allocations()) {
      for (auto& assigned : *allocation.mutable_assigned()) {
        if (assigned.logical_buffer_id() == id) return assigned;
      }
    }
    FAIL("no place of " << name);
    return *assignment.mutable_buffer_allocations(0)->mutable_assigned(0);
  }
  // Has one instruction run right behind another one.
  void Move(const std::string& name, const std::string& behind) {
    auto& ids = *(*module().mutable_schedule()->mutable_sequences())[ComputationOf(name).id()]
                     .mutable_instruction_ids();
    std::vector<int64_t> order;
    for (const int64_t id : ids) {
      if (id != at(name).id()) order.push_back(id);
      if (id == at(behind).id()) order.push_back(at(name).id());
    }
    ids.Assign(order.begin(), order.end());
  }

  absl::Status Check() const {
    const auto hardware = HardwarePreset("tpu_v5e");
    REQUIRE(hardware.ok());
    return CheckPhaseModule(original_, {whole_.SerializeAsString(), assignment.SerializeAsString()},
                            *hardware);
  }

  BufferAssignmentProto assignment;

 private:
  PhaseModule original_;
  HloProto whole_;
};

void Remove(int64_t logical_buffer, BufferAllocationProto& allocation) {
  for (int k = allocation.assigned_size(); k-- > 0;) {
    if (allocation.assigned(k).logical_buffer_id() == logical_buffer)
      allocation.mutable_assigned()->DeleteSubrange(k, 1);
  }
}

void RequireRefused(const Written& written, PhaseRule rule) {
  const absl::Status status = written.Check();
  INFO(status);
  REQUIRE(status.code() == absl::StatusCode::kInvalidArgument);
  REQUIRE(RefusalOf(status).rule == PhaseRuleName(rule));
}

TEST_CASE("phase check: the compiler's own assignments are accepted") {
  const auto hardware = HardwarePreset("tpu_v5e");
  REQUIRE(hardware.ok());
  for (const std::string program : {"wavernn", "mlp_kernel"}) {
    const PhaseModule off = ReadPhase(program + "_off");
    REQUIRE(CheckPhaseModule(off, off, *hardware) == absl::OkStatus());
    REQUIRE(Written(program).Check() == absl::OkStatus());
  }
}

TEST_CASE("phase check: an opcode that nobody knows can't be judged") {
  Written written("wavernn");
  written.at("add.77").set_opcode("winograd");
  RequireRefused(written, PhaseRule::kReadable);
  CHECK(RefusalOf(written.Check()).instructions == std::vector<std::string>{"add.77"});
}

TEST_CASE("phase check: values that live at one time lie apart") {
  Written fast("wavernn");
  fast.Place("copy-start.3", {0}).set_offset(fast.Place("copy-start.1", {0}).offset());
  RequireRefused(fast, PhaseRule::kOverlap);

  Written main("wavernn");
  main.Place("iota_reduce_fusion.5", {0}).set_offset(main.Place("add.77").offset());
  RequireRefused(main, PhaseRule::kOverlap);
}

TEST_CASE("phase check: none of the five buffers of what a loop carries is moved alone") {
  const std::vector<std::pair<std::string, std::vector<int64_t>>> leaf = {
      {"custom-call", {}},
      {"wide.wide.arg_tuple.5", {1}},
      {"wide.wide.arg_tuple.0", {1}},
      {"multiply_add_fusion.2", {}},
      {"while.4", {1}}};
  for (const auto& [name, index] : leaf) {
    Written written("wavernn");
    written.Place(name, index).set_offset(written.Place(name, index).offset() + 4096);
    INFO(name);
    RequireRefused(written, PhaseRule::kLoopLeaf);
  }
}

TEST_CASE("phase check: a transfer starts, is done, and is used, in that order") {
  Written early("wavernn");
  early.Move("copy-done.1", "wide.wide.arg_tuple.0");
  RequireRefused(early, PhaseRule::kSchedule);

  Written used("wavernn");
  used.Move("copy-done.1", "iota_reduce_fusion.5");
  RequireRefused(used, PhaseRule::kSchedule);

  Written unused("wavernn");
  unused.at("copy-done.1").set_operand_ids(0, unused.at("copy-start").id());
  RequireRefused(unused, PhaseRule::kTransfer);
}

TEST_CASE("phase check: what a copy reads is not overwritten while it runs") {
  Written written("wavernn");
  // The table of the second copy-start is written while the first copy reads Arg_5.
  const int64_t table = written.Buffer("copy-start.3", {}).id(),
                source = written.Buffer("Arg_5.3", {}).id();
  const auto holds = [](const BufferAllocationProto& allocation, int64_t id) {
    return std::any_of(allocation.assigned().begin(), allocation.assigned().end(),
                       [id](const auto& assigned) { return assigned.logical_buffer_id() == id; });
  };
  BufferAllocationProto::Assigned moved = written.Place("copy-start.3");
  moved.set_offset(0);
  for (auto& allocation : *written.assignment.mutable_buffer_allocations()) {
    if (holds(allocation, table)) Remove(table, allocation);
    if (holds(allocation, source)) *allocation.add_assigned() = moved;
  }
  RequireRefused(written, PhaseRule::kOverlap);
}

TEST_CASE("phase check: each value has one buffer, of its size and memory, aligned, in capacity") {
  Written misaligned("wavernn");
  misaligned.Place("copy-start.1", {0})
      .set_offset(misaligned.Place("copy-start.1", {0}).offset() + 512);
  RequireRefused(misaligned, PhaseRule::kAlignment);

  Written colored("wavernn");
  colored.at("copy.4").mutable_shape()->mutable_layout()->set_memory_space(0);
  RequireRefused(colored, PhaseRule::kMemorySpace);

  Written color("wavernn");
  color.Buffer("copy.4", {}).set_color(0);
  RequireRefused(color, PhaseRule::kColor);

  Written missing("wavernn");
  const int64_t id = missing.Buffer("copy.4", {}).id();
  for (auto& allocation : *missing.assignment.mutable_buffer_allocations()) Remove(id, allocation);
  auto& buffers = *missing.assignment.mutable_logical_buffers();
  for (int k = buffers.size(); k-- > 0;) {
    if (buffers[k].id() == id) buffers.DeleteSubrange(k, 1);
  }
  RequireRefused(missing, PhaseRule::kBuffer);

  Written large("wavernn");
  for (auto& allocation : *large.assignment.mutable_buffer_allocations()) {
    if (allocation.color() == kFast) allocation.set_size(int64_t{1} << 28);
  }
  large.Place("copy-start.1", {0}).set_offset((int64_t{112} << 20) - 4096);
  RequireRefused(large, PhaseRule::kCapacity);
  const Refusal refusal = RefusalOf(large.Check());
  CHECK(refusal.instructions == std::vector<std::string>{"copy-start.1"});
  CHECK(refusal.exceeded_bytes == large.Place("copy-start.1", {0}).size() - 4096);
}

TEST_CASE("phase check: slices and preloads lie where they must") {
  Written slices("mlp_kernel");
  const int64_t offset = slices.Place("slice.1").offset();
  slices.Place("slice.1").set_offset(slices.Place("slice.3").offset());
  slices.Place("slice.3").set_offset(offset);
  RequireRefused(slices, PhaseRule::kSlicePlace);

  Written part("mlp_kernel");
  part.at("slice.3").mutable_slice_dimensions(0)->set_start(0);
  part.at("slice.3").mutable_slice_dimensions(0)->set_limit(512);
  RequireRefused(part, PhaseRule::kComputation);

  Written preload("mlp_kernel");
  preload.Place("copy-start.1", {0}).set_offset(preload.Place("copy-start.1", {0}).offset() + 4096);
  RequireRefused(preload, PhaseRule::kPreload);
}

TEST_CASE("phase check: the module computes what the original computes") {
  Written operand("wavernn");
  auto& tuple = *operand.at("tuple.19").mutable_operand_ids();
  std::swap(tuple[0], tuple[1]);
  RequireRefused(operand, PhaseRule::kComputation);

  Written constant("wavernn");
  constant.at("constant.102..sunk").mutable_literal()->set_s32s(0, 3);
  RequireRefused(constant, PhaseRule::kComputation);

  Written dropped("wavernn");
  dropped.at("fusion.49").set_operand_ids(1, dropped.at("convert_bitcast_fusion.4").id());
  RequireRefused(dropped, PhaseRule::kComputation);

  Written donated("wavernn");
  donated.module().mutable_input_output_alias()->add_entries()->set_kind(1);
  RequireRefused(donated, PhaseRule::kSignature);
}

using Offsets = std::map<std::string, int64_t>;  // by instruction, in arrays

// A module in which every array has 32 KiB of main memory: what `shared` names the same number of
// them, everything else its own.
PhaseModule InMainMemory(hlo_test::ModuleText m, const Offsets& shared) {
  HloModuleProtoWithConfig whole;
  *whole.mutable_hlo_module() = m.proto().hlo_module();
  for (HloComputationProto& computation : *whole.mutable_hlo_module()->mutable_computations()) {
    ProgramShapeProto& shape = *computation.mutable_program_shape();
    for (const HloInstructionProto& instruction : computation.instructions()) {
      if (instruction.opcode() == "parameter") *shape.add_parameters() = instruction.shape();
      if (instruction.id() == computation.root_id()) *shape.mutable_result() = instruction.shape();
    }
  }
  BufferAssignmentProto assignment;
  BufferAllocationProto& heap = *assignment.add_buffer_allocations();
  int64_t next = 100;
  for (const auto& computation : m.proto().hlo_module().computations()) {
    for (const auto& instruction : computation.instructions()) {
      const bool entry = computation.name() == "main";
      if (instruction.opcode() == "parameter" && !entry) continue;  // It is its operand's value.
      const auto found = shared.find(instruction.name());
      LogicalBufferProto& buffer = *assignment.add_logical_buffers();
      buffer.set_id(assignment.logical_buffers_size());
      buffer.set_size(32768);
      buffer.mutable_defined_at()->set_instruction_id(instruction.id());
      auto& assigned = *heap.add_assigned();
      assigned.set_logical_buffer_id(buffer.id());
      assigned.set_offset(32768 * (found == shared.end() ? next++ : found->second));
      assigned.set_size(32768);
      heap.set_size(32768 * next);
    }
  }
  return {whole.SerializeAsString(), assignment.SerializeAsString()};
}

TEST_CASE("phase check: of branches one runs, so what they make may share bytes") {
  const auto check = [](const Offsets& own, const Offsets& shared) {
    hlo_test::ModuleText m;
    m.Computation("left")
        .Add("xl = f32[64,128]{1,0:T(8,128)} parameter()")
        .Add("tl = f32[64,128]{1,0:T(8,128)} negate(xl)")
        .Add("yl = f32[64,128]{1,0:T(8,128)} add(tl, xl)");
    m.Computation("right")
        .Add("xr = f32[64,128]{1,0:T(8,128)} parameter()")
        .Add("tr = f32[64,128]{1,0:T(8,128)} abs(xr)")
        .Add("yr = f32[64,128]{1,0:T(8,128)} negate(tr)");
    m.Computation("main")
        .Add("which = pred[] parameter()")
        .Add("x = f32[64,128]{1,0:T(8,128)} parameter()")
        .Add("p = f32[64,128]{1,0:T(8,128)} negate(x)")
        .Add("c = f32[64,128]{1,0:T(8,128)} conditional(which, p, p)", "", {"left", "right"})
        .Add("d = f32[64,128]{1,0:T(8,128)} negate(c)");
    return CheckPhaseModule(InMainMemory(m, own), InMainMemory(m, shared),
                            hlo_test::UnitHardware());
  };
  const Offsets both = {{"yl", 1}, {"yr", 1}, {"c", 1}, {"p", 2}};
  INFO(check(both, both));
  CHECK(check(both, both).ok());
  // What a branch has read of the operand may be another's there, whatever the others read.
  auto used = both;
  used["yr"] = used["yl"] = used["c"] = 2;
  INFO(check(used, used));
  CHECK(check(used, used).ok());
  used = both;
  used["tr"] = 2;
  INFO(check(used, used));
  CHECK(check(used, used).ok());
  auto over = both;
  over["tl"] = 2;  // while yl still reads xl
  CHECK(RefusalOf(check(both, over)).rule == "overlap");
  const std::vector<std::string> at_fault = RefusalOf(check(both, over)).instructions;
  for (const std::string name : {"p", "tl", "yl"}) CHECK(absl::c_count(at_fault, name) > 0);
  over = both;
  over["c"] = 3;
  CHECK(RefusalOf(check(both, over)).rule == "branch");
}

TEST_CASE("phase check: a result has bytes of an operand only if the compiler gives it those") {
  hlo_test::ModuleText m;
  m.Computation("main")
      .Add("x = f32[64,128]{1,0:T(8,128)} parameter()")
      .Add("p = f32[64,128]{1,0:T(8,128)} negate(x)")
      .Add("q = f32[64,128]{1,0:T(8,128)} abs(p)")
      .Add("r = f32[64,128]{1,0:T(8,128)} add(p, q)")
      .Add("s = f32[64,128]{1,0:T(8,128)} negate(r)");
  const auto rule = [&m](const Offsets& own, const Offsets& shared) {
    const absl::Status status =
        CheckPhaseModule(InMainMemory(m, own), InMainMemory(m, shared), hlo_test::UnitHardware());
    return RefusalOf(status).rule;
  };
  // The second is made by the last reader of the first.
  CHECK(rule({}, {{"p", 1}, {"r", 1}}) == "overlap");
  CHECK(rule({{"p", 1}, {"r", 1}}, {{"p", 2}, {"r", 2}}).empty());
  CHECK(rule({{"p", 1}, {"r", 1}}, {{"q", 2}, {"r", 2}}) == "overlap");
  // The compiler reuses the bytes of what it reads no more. That says nothing of other times.
  CHECK(rule({{"p", 1}, {"s", 1}}, {{"p", 1}, {"q", 1}}) == "overlap");
}

TEST_CASE("phase check: what one branch hands on may be written in another, and is no new value") {
  const auto check = [](const Offsets& shared, bool writes) {
    hlo_test::ModuleText m;
    m.Computation("left").Add("xl = f32[64,128]{1,0:T(8,128)} parameter()");
    m.Computation("right").Add("xr = f32[64,128]{1,0:T(8,128)} parameter()");
    if (writes) m.Add("yr = f32[64,128]{1,0:T(8,128)} abs(xr)");
    m.Computation("main")
        .Add("which = pred[] parameter()")
        .Add("x = f32[64,128]{1,0:T(8,128)} parameter()")
        .Add("p = f32[64,128]{1,0:T(8,128)} negate(x)")
        .Add("c = f32[64,128]{1,0:T(8,128)} conditional(which, p, p)", "", {"left", "right"})
        .Add("d = f32[64,128]{1,0:T(8,128)} negate(c)");
    const PhaseModule module = InMainMemory(m, shared);
    return CheckPhaseModule(module, module, hlo_test::UnitHardware());
  };
  const Offsets one = {{"p", 1}, {"yr", 1}, {"c", 1}};
  INFO(check(one, true));
  CHECK(check(one, true).ok());
  CHECK(RefusalOf(check({{"p", 2}, {"yr", 1}, {"c", 1}}, true)).rule == "branch");
  // Both hand `p` on: `c` is its value, which has one logical buffer.
  CHECK(RefusalOf(check(one, false)).rule == "buffer");
  CHECK(RefusalOf(check(one, false)).instructions[0] == "c");
}

}  // namespace
}  // namespace mallocgame::hlo
