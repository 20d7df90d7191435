// Walks over the time axis: at each tick the plan's copies, then the instruction with its operands
// at the locations that serve it.
#include "mallocgame/hlo/write/write_plan.h"
#include "mallocgame/hlo/module/collective_steps.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "mallocgame/base/error.h"
#include "mallocgame/base/refusal.h"
#include "mallocgame/hlo/import/pins.h"
#include "mallocgame/hlo/import/scratch.h"
#include "mallocgame/hlo/module/hlo.pb.h"
#include "mallocgame/hlo/module/in_place.h"
#include "mallocgame/hlo/module/memory_spaces.h"
#include "mallocgame/hlo/module/opcodes.h"
#include "mallocgame/hlo/write/pack_main_memory.h"
#include "mallocgame/hlo/write/plan_writer.h"
#include "mallocgame/hlo/write/write_assignment.h"
#include "mallocgame/hlo/write/write_order.h"
#include "mallocgame/plan/validate.h"

namespace mallocgame::hlo {
namespace {

// Whether the result holds what another instruction goes on with, so that nothing may take it
// apart.
bool GoesOn(const HloInstruction& instruction) {
  return instruction.proto->shape().element_type() == TUPLE &&
         (BeginsTransfer(instruction.opcode) || instruction.opcode == kAsyncUpdate);
}

}  // namespace

PlanWriter::PlanWriter(const Program& program, const Plan& plan, const Module& module,
                       const Schedule& schedule, const BufferTable& table, const ValueFlow& flow,
                       ModuleDraft& draft, PlacedValues& values, HloModuleProto& proto)
    : program_(program), plan_(plan), module_(module), of_array_(table.of_array), flow_(flow),
      draft_(draft), values_(values), is_held_(module.array_count(), false),
      is_moving_(module.array_count(), false), newest_(table.buffers.size(), kNone),
      region_of_(module.computations().size(), 0),
      copies_(program, plan, module, schedule, flow, newest_, draft, values, proto) {
  for (const Schedule::Entry& entry : schedule.ticks)
    region_of_[module.instruction(entry.instruction).computation] = entry.region;
}

absl::Status PlanWriter::Run() {
  absl::Status status = WriteEntry();
  Refusal refusal = RefusalOf(status);
  if (status.ok() || !refusal.accesses.empty() || tick_ >= program_.ticks()) return status;
  const Instruction& at = program_.instruction(tick_);
  for (int32_t a = at.first_access; a < at.first_access + at.access_count; ++a) {
    if (plan_.served_by[a].valid()) refusal.accesses.push_back(a);
  }
  return Refused(refusal, status);
}

absl::Status PlanWriter::WriteEntry() {
  const Computation& entry = module_.computation(module_.entry());
  for (const int32_t i : entry.schedule) {
    if (module_.opcode(i) == kParameter) EmitParameter(i, Locations(ArrayCount(i), kMainMemory));
  }
  MG_RETURN_IF_ERROR(copies_.BeginPreloads());
  const Locations result(ArrayCount(entry.root), kMainMemory);
  return WriteComputation(module_.entry(), &result).status();
}

void PlanWriter::EmitParameter(int32_t parameter, const Locations& locations) {
  draft_.Emit(parameter);
  for (int32_t k = 0; k < ArrayCount(parameter); ++k) {
    values_.Define(FirstArray(parameter) + k, locations[k]);
    Renew(FirstArray(parameter) + k);
  }
}

void PlanWriter::Renew(int32_t array) {
  if (BufferOf(array) != kNone) newest_[BufferOf(array)] = array;
}

// Writes a computation whose parameters are emitted already. `result` says where its result has to
// lie; null: where it is needed next. Returns where it lies.
absl::StatusOr<Locations> PlanWriter::WriteComputation(int32_t c, const Locations* result) {
  const Computation& computation = module_.computation(c);
  // Constants have a value before their places in the schedule, and copies of them may begin there.
  for (const int32_t i : computation.schedule) {
    if (module_.opcode(i) == kConstant) Renew(FirstArray(i));
  }
  for (const int32_t i : computation.schedule) {
    const Opcode opcode = module_.opcode(i);
    if (opcode == kWhile) {
      MG_RETURN_IF_ERROR(WriteLoop(i));
    } else if (opcode == kConditional) {
      MG_RETURN_IF_ERROR(WriteBranches(i));
    } else if (opcode == kCall) {
      MG_RETURN_IF_ERROR(WriteCall(i));
    } else {
      MG_RETURN_IF_ERROR(copies_.At(tick_, c));
      MG_RETURN_IF_ERROR(WriteInstruction(i));
      ++tick_;
    }
  }
  MG_RETURN_IF_ERROR(copies_.Finish(c));
  Locations locations = result != nullptr ? *result : NeededFirst(computation.root, tick_, kNever);
  MG_ASSIGN_OR_RETURN(const int32_t root, values_.ResultAt(computation.root, locations));
  draft_.SetRoot(c, root);
  return locations;
}

std::optional<int32_t> PlanWriter::ServedFrom(Tick tick, int32_t array) const {
  if (BufferOf(array) == kNone) return std::nullopt;
  const Instruction& instruction = program_.instruction(tick);
  for (int32_t a = instruction.first_access;
       a < instruction.first_access + instruction.access_count; ++a) {
    if (program_.accesses()[a].buffer.value == BufferOf(array)) return plan_.served_by[a].value;
  }
  return std::nullopt;
}

Locations PlanWriter::LocationsAt(Tick tick, int32_t i) const {
  Locations locations;
  for (int32_t k = 0; k < ArrayCount(i); ++k) {
    const int32_t array = FirstArray(i) + k, value = flow_.ValueOf(array);
    const std::optional<int32_t> served =
        is_held_[value] ? values_.MadeAt(value) : ServedFrom(tick, array);
    locations.push_back(served.value_or(values_.AnyLocationOf(array)));
  }
  return locations;
}

void PlanWriter::SetOperand(int32_t i, size_t k, int32_t operand) {
  draft_.instruction(i).set_operand_ids(static_cast<int>(k), draft_.instruction(operand).id());
}

absl::Status PlanWriter::WriteInstruction(int32_t i) {
  if (module_.opcode(i) == kParameter) return absl::OkStatus();
  if (values_.IsEmittedWhenWanted(i)) {
    if (ArrayCount(i) > 0 && flow_.Before(FirstArray(i)) == kNone) Renew(FirstArray(i));
    return absl::OkStatus();
  }
  if (copies_.IsReplaced(tick_)) {
    Renew(FirstArray(i));
    return absl::OkStatus();
  }
  MG_RETURN_IF_ERROR(WriteOperands(i));
  draft_.Emit(i);
  const std::vector<bool> hands_on = HandsOn(module_, i);
  for (int32_t k = 0; k < ArrayCount(i); ++k) {
    const int32_t array = FirstArray(i) + k;
    values_.Define(array, ServedFrom(tick_, array).value_or(kMainMemory));
    is_held_[array] = hands_on[k];
    if (!hands_on[k]) Renew(array);
  }
  MG_RETURN_IF_ERROR(GoOnWithTransfer(i, hands_on));
  return CheckDone(i);
}

// A transfer that begins in a fusion goes on in others until one ends it. Meanwhile its arrays stay
// where they are: what such a fusion updates is in the plan's place too, or the plan can't be
// carried out.
absl::Status PlanWriter::GoOnWithTransfer(int32_t i, const std::vector<bool>& hands_on) {
  if (module_.opcode(i) != kFusion) return absl::OkStatus();
  if (BeginsCollectiveFusion(module_, i)) {
    for (int32_t k = 0; k < ArrayCount(i); ++k) is_moving_[FirstArray(i) + k] = true;
    return absl::OkStatus();
  }
  MG_ASSIGN_OR_RETURN(const std::vector<InPlacePair> pairs, InPlaceFinder(module_).PairsOf(i));
  for (const InPlacePair& pair : pairs) {
    const int32_t operand = module_.operands(i)[pair.operand];
    const int32_t value = flow_.ValueOf(FirstArray(operand) + pair.operand_array);
    const int32_t array = FirstArray(i) + pair.output_array;
    if (!is_moving_[value]) continue;
    is_moving_[array] = true;
    const std::optional<int32_t> made = values_.MadeAt(value);
    if (!made || values_.MadeAt(array) == made) continue;
    if (hands_on[pair.output_array]) {
      values_.Define(array, *made);
      continue;
    }
    const std::string& from = module_.NameOf(flow_.InstructionOf(value));
    return Held(i, from,
                absl::StrCat(": what is transferred from '", from,
                             "' on would have to move before it is done"));
  }
  return absl::OkStatus();
}

absl::Status PlanWriter::WriteOperands(int32_t i) {
  for (size_t k = 0; k < module_.operands(i).size(); ++k) {
    const int32_t operand = module_.operands(i)[k];
    if (GoesOn(module_.instruction(operand))) {
      for (int32_t n = 0; n < ArrayCount(operand); ++n)
        MG_RETURN_IF_ERROR(CheckHeld(i, FirstArray(operand) + n));
      continue;
    }
    for (int32_t n = 0; n < ArrayCount(operand); ++n) {
      const int32_t value = flow_.ValueOf(FirstArray(operand) + n);
      if (is_held_[value]) MG_RETURN_IF_ERROR(CheckHeld(i, value));
    }
    MG_ASSIGN_OR_RETURN(const int32_t own, values_.ResultAt(operand, LocationsAt(tick_, operand)));
    SetOperand(i, k, own);
  }
  return absl::OkStatus();
}

absl::Status PlanWriter::Held(int32_t i, const std::string& from, absl::string_view what) const {
  return Refused({.rule = "held", .instructions = {module_.NameOf(i), from}},
                 absl::UnimplementedError(absl::StrCat(module_.Where(i), what)));
}

// A transfer holds its arrays where it began with them until it is done.
absl::Status PlanWriter::CheckHeld(int32_t i, int32_t array) {
  const std::optional<int32_t> made = values_.MadeAt(array);
  if (!made) return absl::OkStatus();
  const bool stays = *made == kMainMemory || plan_.residences[*made].end > tick_;
  if (stays && ServedFrom(tick_, array).value_or(*made) == *made) return absl::OkStatus();
  const std::string& from = module_.NameOf(flow_.InstructionOf(array));
  return Held(i, from,
              absl::StrCat(": what '", from, "' has begun to transfer is elsewhere by then"));
}

// The result of a transfer lies where its start has put it.
absl::Status PlanWriter::CheckDone(int32_t i) {
  if (!EndsCollective(module_.opcode(i))) return absl::OkStatus();
  const int32_t start = module_.operands(i)[0];
  const std::optional<HandedOver> handed = HandedOverBy(module_, start);
  for (int32_t k = 0; handed && k < ArrayCount(i); ++k) {
    const int32_t begun = FirstArray(start) + handed->result.first + k;
    if (values_.MadeAt(begun) == values_.MadeAt(FirstArray(i) + k)) continue;
    return Held(
        i, module_.NameOf(start),
        absl::StrCat(": its result lies elsewhere than that of '", module_.NameOf(start), "'"));
  }
  return absl::OkStatus();
}

namespace {

absl::Status CheckUnassigned(const Module& module, const Schedule& schedule,
                             const BufferTable& table, const Hardware& hardware) {
  absl::Status status =
      CheckBeforeAssignment(module, schedule, table.of_array, hardware.fast_memory_space);
  if (status.ok()) return status;
  return Prefixed("module", status);
}

// A plan leaves the lowest bytes to the scratch of instructions. The compiler may have it elsewhere
// (ReadAssignment).
absl::StatusOr<std::vector<int64_t>> OffsetsOf(const Plan& plan, const Module& module,
                                               const Hardware& hardware) {
  const std::vector<int64_t> scratch = ScratchOffsets(module, hardware.fast_memory_space);
  if (scratch.size() > 1) {
    return Refused({.rule = "scratch"},
                   absl::UnimplementedError(absl::StrCat(
                       "module: its instructions have scratch at ", scratch.size(), " offsets")));
  }
  std::vector<int64_t> offsets;
  for (const Residence& residence : plan.residences) {
    const int64_t turned = residence.offset + (scratch.empty() ? 0 : scratch[0]);
    offsets.push_back(turned >= hardware.fast_bytes ? turned - hardware.fast_bytes : turned);
  }
  return offsets;
}

// The same message gives the same bytes, although it has a map.
template <class Message>
std::string Serialize(const Message& message) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream output(&stream);
  output.SetSerializationDeterministic(true);
  message.SerializeToCodedStream(&output);
  output.Trim();
  return bytes;
}

absl::Status Unreadable(absl::string_view what) {
  return Refused({.rule = "readable"}, absl::InvalidArgumentError(what));
}

absl::StatusOr<WrittenPlan> Write(const Program& program, const Plan& plan,
                                  const Hardware& hardware, const PhaseModule& unassigned) {
  HloModuleProtoWithConfig whole;
  BufferAssignmentProto assignment;
  if (!whole.ParseFromString(unassigned.module) || whole.hlo_module().computations().empty())
    return Unreadable("module: no HloModuleProtoWithConfig with computations");
  if (!assignment.ParseFromString(unassigned.buffer_assignment) ||
      assignment.logical_buffers().empty()) {
    return Unreadable("buffer assignment: no BufferAssignmentProto with logical buffers");
  }
  MG_ASSIGN_OR_RETURN(const bool reordered, WriteOrder(program, *whole.mutable_hlo_module()));
  MG_ASSIGN_OR_RETURN(const std::unique_ptr<const Module> module,
                      Module::Parse(reordered ? Serialize(whole) : unassigned.module, "module"));
  MG_ASSIGN_OR_RETURN(const Schedule schedule, Flatten(*module));
  MG_ASSIGN_OR_RETURN(const BufferTable table, BuildBuffers(*module, schedule));
  MG_RETURN_IF_ERROR(CheckMadeOf(program, *module, schedule, table));
  MG_RETURN_IF_ERROR(CheckUnassigned(*module, schedule, table, hardware));
  MG_ASSIGN_OR_RETURN(std::vector<int64_t> offsets, OffsetsOf(plan, *module, hardware));
  HloModuleProto& proto = *whole.mutable_hlo_module();
  MG_ASSIGN_OR_RETURN(ModuleDraft draft, ModuleDraft::Create(*module, schedule, proto));
  const ValueFlow flow(*module, schedule);
  PlacedValues values(*module, flow, draft, hardware.fast_memory_space, std::move(offsets));
  PlanWriter writer(program, plan, *module, schedule, table, flow, draft, values, proto);
  MG_RETURN_IF_ERROR(writer.Run());
  const ChangedPlaces changed = values.TakeChanges();
  const auto write = [&](bool keeps_offsets) {
    return WriteAssignment(assignment, *module, schedule, draft, hardware.fast_memory_space,
                           changed, keeps_offsets);
  };
  absl::StatusOr<BufferAssignmentProto> written = write(/*keeps_offsets=*/!reordered);
  const bool moves = reordered || absl::IsUnimplemented(written.status());
  if (moves) written = write(/*keeps_offsets=*/false);
  MG_RETURN_IF_ERROR(written.status());
  draft.Finish();
  SpreadMemorySpaces(proto);
  PhaseModule result{Serialize(whole), Serialize(*written)};
  if (moves) MG_RETURN_IF_ERROR(PackMainMemory(unassigned, result, hardware.fast_memory_space));
  WrittenPlan made{std::move(result), writer.AsWritten()};
  if (const Verdict verdict = Validate(program, hardware, made.plan); !verdict.ok()) {
    return Refused(
        {.rule = RuleName(verdict.rule)},
        absl::InternalError(absl::StrCat("the plan as written breaks rule '",
                                         RuleName(verdict.rule), "': ", verdict.message)));
  }
  return made;
}

}  // namespace
}  // namespace mallocgame::hlo

namespace mallocgame {

absl::StatusOr<WrittenPlan> WritePlan(const Program& program, const Plan& plan,
                                      const Hardware& hardware, const PhaseModule& unassigned) {
  MG_RETURN_IF_ERROR(ValidateHardware(hardware));
  const Verdict verdict = Validate(program, hardware, plan);
  if (!verdict.ok()) {
    return Refused({.rule = RuleName(verdict.rule)},
                   absl::InvalidArgumentError(absl::StrCat("plan: rule '", RuleName(verdict.rule),
                                                           "': ", verdict.message)));
  }
  return hlo::Write(program, plan, hardware, unassigned);
}

}  // namespace mallocgame
