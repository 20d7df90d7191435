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
#define MALLOCGAME_READ_COUNT(name) file.summary.name = wire.name();
  MALLOCGAME_KEPT_COUNTS(MALLOCGAME_READ_COUNT)
#undef MALLOCGAME_READ_COUNT
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
#define MALLOCGAME_WRITE_COUNT(name) wire.set_##name(file.summary.name);
  MALLOCGAME_KEPT_COUNTS(MALLOCGAME_WRITE_COUNT)
#undef MALLOCGAME_WRITE_COUNT
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
