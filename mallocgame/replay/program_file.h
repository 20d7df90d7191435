// A program file (.mgp): what ImportHlo made of a module, the hardware that the module was compiled
// for, and XLA's own answer. It has all that solving, playing and judging need, without HLO.
#ifndef MALLOCGAME_REPLAY_PROGRAM_FILE_H_
#define MALLOCGAME_REPLAY_PROGRAM_FILE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "mallocgame/hardware/hardware.h"
#include "mallocgame/plan/plan.h"
#include "mallocgame/program/program.h"

namespace mallocgame {

struct ProgramFile {
  std::shared_ptr<const Program> program;
  Hardware hardware;
  std::optional<Plan> xla_plan;  // for this program and hardware
  std::string origin;            // free text, such as the source and the compiler's version

  // How the import went. ImportSummary in hlo/import/import.h says what each counts.
  int64_t priced_instructions = 0;
  int64_t unpriced_instructions = 0;
  int64_t modelled_instructions = 0;
  int64_t kernels = 0;
  int64_t kernels_without_estimate = 0;
  int64_t pools = 0;
  int64_t rows = 0;
  int64_t unknown_trip_counts = 0;
  int64_t host_transfers = 0;
  int64_t host_computations = 0;
  int64_t async_computations = 0;
  int64_t opaque_calls = 0;
  int64_t linkless_collectives = 0;
  int64_t unassigned_arrays = 0;
  int64_t unassigned_copies = 0;
  int64_t kept_copies = 0;
  int64_t unscheduled_computations = 0;
  int64_t profile_names_unmatched = 0;
};

// Equal files give equal bytes. `file.program` must not be null. All text must be UTF-8; otherwise
// the bytes cannot be read again.
std::string SerializeProgramFile(const ProgramFile& file);

// The result has passed Program::Create and ValidateHardware. Its plan is well formed, but may
// still break rules that Validate knows. InvalidArgument says what is wrong with the bytes, and
// where.
absl::StatusOr<ProgramFile> ParseProgramFile(absl::string_view bytes);

}  // namespace mallocgame

#endif  // MALLOCGAME_REPLAY_PROGRAM_FILE_H_
