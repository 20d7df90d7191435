// Scheduled HLO to a Program, and XLA's own assignment to a Plan. The only folder that knows HLO.
#ifndef MALLOCGAME_HLO_IMPORT_H_
#define MALLOCGAME_HLO_IMPORT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "mallocgame/hardware/hardware.h"
#include "mallocgame/plan/plan.h"
#include "mallocgame/program/program.h"

namespace mallocgame {

struct ImportOptions {
  std::string name;  // of the program; empty: the module's
  // of a loop whose trip count can't be read from the module (XLA's own default)
  int64_t default_trips = 5;
};

// Bytes of the files involved, already decompressed. All are of one program: instruction names tie
// them together.
struct ImportInput {
  absl::string_view module;  // HloProto, scheduled, before memory space assignment
  // HloProtos after code generation, with estimated cycles; profile cost model
  std::vector<absl::string_view> priced;
  // JSON {instruction: [[operands, outputs, cycles], ...]}, may be empty
  absl::string_view profile;
};

struct ImportSummary {
  int64_t priced_instructions = 0;    // by the compiler, pooled
  int64_t unpriced_instructions = 0;  // cost 2 x the bytes they move
  int64_t pools = 0;
  int64_t rows = 0;
  // given up for another price of the same placement in the same pool
  int64_t conflicting_rows = 0;
  int64_t unknown_trip_counts = 0;  // loops given default_trips
  int64_t profile_names_unmatched =
      0;  // instructions of the profile or of a priced module that the module doesn't have
};

struct Imported {
  std::shared_ptr<const Program> program;
  ImportSummary summary;
};

// With `priced` or `profile` given the cost model is profile, else roofline. InvalidArgument names
// what is wrong, and where: damaged or contradictory input, prices of another program (most of the
// instructions priced are not in the module) or of other hardware (by the memory spaces used).
absl::StatusOr<Imported> ImportHlo(const ImportInput& input, const Hardware& hardware,
                                   const ImportOptions& options = {});

// XLA's own answer: `assigned` is the HloProto after memory space assignment, with its
// BufferAssignment, of the program that ImportHlo made of `module`. The plan holds pinned buffers,
// prefetches (whole and sliced), evictions and cross-program prefetches (as preloads) with XLA's
// offsets; but a buffer that XLA puts on a loop-carried one's bytes while that holds nothing gets
// other bytes. InvalidArgument: an input that is damaged, or not of this program or hardware.
absl::StatusOr<Plan> ReadAssignment(const Program& program, absl::string_view module,
                                    absl::string_view assigned, const Hardware& hardware);

}  // namespace mallocgame

#endif  // MALLOCGAME_HLO_IMPORT_H_
