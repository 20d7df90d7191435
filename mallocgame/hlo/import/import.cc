// Takes the steps from a serialized module to a Program.
#include "mallocgame/hlo/import/import.h"

#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "mallocgame/base/error.h"
#include "mallocgame/base/refusal.h"
#include "mallocgame/hlo/import/accesses.h"
#include "mallocgame/hlo/import/buffers.h"
#include "mallocgame/hlo/import/cost_import.h"
#include "mallocgame/hlo/import/dependences.h"
#include "mallocgame/hlo/import/pins.h"
#include "mallocgame/hlo/import/scratch.h"
#include "mallocgame/hlo/import/unassigned_module.h"
#include "mallocgame/hlo/import/window.h"
#include "mallocgame/hlo/module/hlo.pb.h"
#include "mallocgame/hlo/module/module.h"
#include "mallocgame/hlo/module/opcodes.h"
#include "mallocgame/hlo/module/schedule.h"
#include "mallocgame/hlo/module/shape_size.h"
#include "mallocgame/plan/pinned.h"
#include "mallocgame/program/cost_model.h"

namespace mallocgame {
namespace {

absl::StatusOr<int64_t> ArgumentBytes(const hlo::Module& module) {
  int64_t sum = 0;
  for (const int32_t parameter : module.computation(module.entry()).parameters) {
    const absl::StatusOr<int64_t> bytes =
        hlo::UnpaddedBytes(module.instruction(parameter).proto->shape(), hlo::kMaxArrayBytes);
    if (!bytes.ok()) {
      return module.InvalidAt(parameter, bytes.status().message());
    }
    sum += *bytes;
  }
  return sum;
}

void Reserve(const hlo::Module& module, const hlo::Schedule& schedule, const Hardware& hardware,
             ProgramData& data) {
  for (size_t t = 0; t < schedule.ticks.size(); ++t) {
    const hlo::HloInstruction& of = module.instruction(schedule.ticks[t].instruction);
    if (hlo::MovesNothing(of)) continue;
    const std::optional<hlo::Scratch> scratch =
        hlo::ScratchOf(of.proto->backend_config(), hardware.fast_memory_space);
    if (scratch) data.instructions[t].reserved_bytes = scratch->size_bytes;
  }
}

// Whether the compiler for this chip makes results in fast memory by loop fusions only. It does for
// v5p: its allocator gives all else that makes an array a required assignment in main memory, as
// its log tells (libtpu 0.0.51).
bool OnlyLoopFusionsMakeFastResults(const Hardware& hardware) {
  return absl::StartsWith(hardware.name, "tpu_v5p");
}

void KeepResultsInMain(const hlo::Module& module, const hlo::Schedule& schedule,
                       ProgramData& data) {
  for (size_t t = 0; t < schedule.ticks.size(); ++t) {
    if (schedule.ticks[t].kind != InstructionKind::kOrdinary) continue;
    const hlo::HloInstruction& of = module.instruction(schedule.ticks[t].instruction);
    data.instructions[t].results_in_main =
        !hlo::MovesNothing(of) && of.proto->fusion_kind() != "kLoop";
  }
}

absl::Status InModule(const absl::Status& status) {
  if (status.ok()) return status;
  return Prefixed("module", status);
}

// What kernels pin to fast memory has its place for the order of the module. Whether it has one in
// other orders isn't known, so none is legal.
void KeepOrderOfPins(ProgramData& data) {
  if (absl::c_none_of(data.accesses, [](const Access& a) { return a.pin == Pin::kFast; })) return;
  data.has_dependences = false;
  data.dependences.clear();
}

// Makes the program, with fewer trips where a run would take too long to be played: a loop that
// counts to the largest integer may do so, or end otherwise.
absl::StatusOr<std::shared_ptr<const Program>> WithinTime(ProgramData data,
                                                          const Hardware& hardware) {
  MG_ASSIGN_OR_RETURN(std::shared_ptr<const Program> program, Program::Create(std::move(data)));
  for (int64_t most = kMaxTrips; most > 1 && !RunFits(CostModel(program, hardware));) {
    most /= 16;
    ProgramData shorter = program->data();
    hlo::SetTrips(most, shorter.regions, shorter.loops);
    MG_ASSIGN_OR_RETURN(program, Program::Create(std::move(shorter)));
  }
  return program;
}

}  // namespace

absl::StatusOr<Imported> ImportHlo(const ImportInput& input, const Hardware& hardware,
                                   const ImportOptions& options) {
  MG_RETURN_IF_ERROR(ValidateHardware(hardware));
  MG_ASSIGN_OR_RETURN(const hlo::UnassignedModule unassigned,
                      hlo::ParseUnassigned(input.module, hardware.fast_memory_space));
  const hlo::Module* const module = unassigned.module.get();
  MG_RETURN_IF_ERROR(hlo::CheckOpcodes(*module));
  const int64_t fast = hardware.fast_memory_space;
  MG_RETURN_IF_ERROR(InModule(hlo::CheckFastMemorySpace(*module, fast)));
  MG_ASSIGN_OR_RETURN(
      const hlo::Schedule schedule,
      hlo::Flatten(*module, {options.default_trips, options.trips, options.requires_schedule}));
  MG_ASSIGN_OR_RETURN(hlo::BufferTable table, hlo::BuildBuffers(*module, schedule, fast));
  MG_RETURN_IF_ERROR(InModule(hlo::CheckBeforeAssignment(*module, schedule, table.of_array, fast)));
  ProgramData data;
  data.name = options.name.empty() ? module->module().name() : options.name;
  MG_ASSIGN_OR_RETURN(data.argument_bytes, ArgumentBytes(*module));
  data.window_bytes = hlo::WindowBytes(*module);
  const std::vector<int32_t> of_array = table.of_array;
  hlo::BuildAccesses(*module, schedule, std::move(table), data);
  MG_RETURN_IF_ERROR(InModule(hlo::PinAccesses(*module, schedule, of_array, fast, data)));

  Reserve(*module, schedule, hardware, data);
  if (OnlyLoopFusionsMakeFastResults(hardware)) KeepResultsInMain(*module, schedule, data);

  Imported imported;
  const std::optional<Links> links = options.links ? options.links : LinksOf(hardware.name);
  if (links && (links->bytes_per_second < 1 || links->hop_ps < 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("links: bytes_per_second is ", links->bytes_per_second, " and hop_ps ",
                     links->hop_ps, "; allowed are at least 1 and at least 0"));
  }
  MG_ASSIGN_OR_RETURN(imported.summary,
                      hlo::BuildCost({*module, schedule, input, hardware, links}, data));
  hlo::BuildDependences(*module, schedule, of_array, data);
  KeepOrderOfPins(data);
  for (size_t t = 0; t < data.instructions.size(); ++t) {
    if (data.regions[data.instructions[t].region].trips == 0)
      data.cost.instructions[t] = InstructionCost();
  }
  MG_ASSIGN_OR_RETURN(imported.program, WithinTime(std::move(data), hardware));
  MG_RETURN_IF_ERROR(CheckPinsFit(*imported.program, hardware));
  for (const Loop& loop : imported.program->loops())
    imported.summary.unknown_trip_counts += loop.trips_known ? 0 : 1;
  imported.summary.unscheduled_computations = schedule.unscheduled_computations;
  imported.summary.unassigned_arrays = unassigned.arrays;
  imported.summary.unassigned_copies = unassigned.copies;
  imported.summary.kept_copies = unassigned.kept_copies;
  return imported;
}

}  // namespace mallocgame
