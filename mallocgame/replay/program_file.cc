// A program file is a container (container.h) around one ProgramFile message.
#include "mallocgame/replay/program_file.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "mallocgame/base/error.h"
#include "mallocgame/plan/validate.h"
#include "mallocgame/replay/container.h"
#include "mallocgame/replay/replay.pb.h"
#include "mallocgame/replay/wire.h"

namespace mallocgame {
namespace {

absl::StatusOr<ProgramFile> FromWire(const replay::ProgramFile& wire) {
  ProgramFile file;
  MG_ASSIGN_OR_RETURN(ProgramData data, replay::ProgramFromWire(wire.program()));
  MG_ASSIGN_OR_RETURN(file.program, Program::Create(std::move(data)));
  MG_ASSIGN_OR_RETURN(file.hardware, replay::HardwareFromWire(wire.hardware()));
  if (wire.has_xla_plan()) {
    MG_ASSIGN_OR_RETURN(file.xla_plan, replay::PlanFromWire(wire.xla_plan()));
    const Verdict verdict = Validate(*file.program, file.hardware, *file.xla_plan);
    if (verdict.rule == Rule::kMalformed) {
      return absl::InvalidArgumentError(absl::StrCat("XLA's plan: ", verdict.message));
    }
  }
  MG_ASSIGN_OR_RETURN(file.origin, replay::ReadText("origin", wire.origin()));
  file.priced_instructions = wire.priced_instructions();
  file.unpriced_instructions = wire.unpriced_instructions();
  file.modelled_instructions = wire.modelled_instructions();
  file.kernels = wire.kernels();
  file.kernels_without_estimate = wire.kernels_without_estimate();
  file.pools = wire.pools();
  file.rows = wire.rows();
  file.unknown_trip_counts = wire.unknown_trip_counts();
  file.host_transfers = wire.host_transfers();
  file.host_computations = wire.host_computations();
  file.async_computations = wire.async_computations();
  file.opaque_calls = wire.opaque_calls();
  file.linkless_collectives = wire.linkless_collectives();
  file.unassigned_arrays = wire.unassigned_arrays();
  file.unassigned_copies = wire.unassigned_copies();
  file.kept_copies = wire.kept_copies();
  file.unscheduled_computations = wire.unscheduled_computations();
  file.profile_names_unmatched = wire.profile_names_unmatched();
  return file;
}

}  // namespace

std::string SerializeProgramFile(const ProgramFile& file) {
  MG_CHECK(file.program != nullptr);
  replay::ProgramFile wire;
  replay::ToWire(file.program->data(), wire.mutable_program());
  replay::ToWire(file.hardware, wire.mutable_hardware());
  if (file.xla_plan.has_value()) replay::ToWire(*file.xla_plan, wire.mutable_xla_plan());
  wire.set_origin(file.origin);
  wire.set_priced_instructions(file.priced_instructions);
  wire.set_unpriced_instructions(file.unpriced_instructions);
  wire.set_modelled_instructions(file.modelled_instructions);
  wire.set_kernels(file.kernels);
  wire.set_kernels_without_estimate(file.kernels_without_estimate);
  wire.set_pools(file.pools);
  wire.set_rows(file.rows);
  wire.set_unknown_trip_counts(file.unknown_trip_counts);
  wire.set_host_transfers(file.host_transfers);
  wire.set_host_computations(file.host_computations);
  wire.set_async_computations(file.async_computations);
  wire.set_opaque_calls(file.opaque_calls);
  wire.set_linkless_collectives(file.linkless_collectives);
  wire.set_unassigned_arrays(file.unassigned_arrays);
  wire.set_unassigned_copies(file.unassigned_copies);
  wire.set_kept_copies(file.kept_copies);
  wire.set_unscheduled_computations(file.unscheduled_computations);
  wire.set_profile_names_unmatched(file.profile_names_unmatched);
  return PackFile(FileKind::kProgram, replay::SerializeMessage(wire));
}

absl::StatusOr<ProgramFile> ParseProgramFile(absl::string_view bytes) {
  MG_ASSIGN_OR_RETURN(const std::string payload, UnpackFile(FileKind::kProgram, bytes));
  replay::ProgramFile wire;
  absl::Status status = replay::ParseMessage(payload, wire);
  if (status.ok()) {
    absl::StatusOr<ProgramFile> file = FromWire(wire);
    if (file.ok()) return file;
    status = file.status();
  }
  return absl::Status(status.code(), absl::StrCat("program file: ", status.message()));
}

}  // namespace mallocgame
