// What the phases of a compile take and give: xla::PjRtPartialProgramProto.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace mallocgame::pjrt {

struct PartialProgram {
  std::string program;  // decompressed
  // Whether the program is compressed when it is serialized. libtpu 0.0.51 gives and takes
  // compressed programs, 0.0.42.1 plain ones. StableHLO is plain in both.
  bool compressed = false;
  std::string format;                    // of the program
  std::string generating_phase;          // empty: no phase made it
  std::vector<std::string> next_phases;  // that take it
  std::string version;
  std::string name;  // "opt_hlo", "buffer_assignment" ...
};

// InvalidArgument: the bytes or the compressed program in them are damaged. ResourceExhausted: the
// program has more than 2 GiB, which no message of Protobuf's may have.
absl::StatusOr<PartialProgram> ParsePartialProgram(absl::string_view bytes);

std::string SerializePartialProgram(const PartialProgram& partial);

}  // namespace mallocgame::pjrt
