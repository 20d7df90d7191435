// A program file (.mgp): what ImportHlo made of a module, the hardware that the module was compiled
// for, and XLA's own answer. It has all that solving, playing and judging need, without HLO.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "mallocgame/hardware/hardware.h"
#include "mallocgame/plan/plan.h"
#include "mallocgame/program/import_summary.h"
#include "mallocgame/program/program.h"

namespace mallocgame {

struct ProgramFile {
  std::shared_ptr<const Program> program;
  Hardware hardware;
  std::optional<Plan> xla_plan;  // for this program and hardware
  std::string origin;            // free text, such as the source and the compiler's version
  ImportSummary summary;         // without rows that were dropped: no file keeps these
};

// Equal files give equal bytes. `file.program` must not be null. All text must be UTF-8; otherwise
// the bytes cannot be read again.
std::string SerializeProgramFile(const ProgramFile& file);

// The result has passed Program::Create and ValidateHardware. Its plan is well formed, but may
// still break rules that Validate knows. InvalidArgument says what is wrong with the bytes, and
// where.
absl::StatusOr<ProgramFile> ParseProgramFile(absl::string_view bytes);

}  // namespace mallocgame
