// What libtpu's compile phases answer about the programs that they lower. Phase 2a lowers a whole
// module. It calls the programs of most instructions by their hashes, which phase 2b makes, one of
// each isolated module. All bytes are those of one program, decompressed.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace mallocgame::hlo {

// A program of the format "isa_program_proto".
struct LoweredProgram {
  std::string name;  // the hash by which others call it; those that nobody calls have "<...>"
  // The hash of the program that an instruction calls, by the name of the instruction.
  std::map<std::string, std::string> calls;
};

// InvalidArgument: it is damaged, or is of another format.
absl::StatusOr<LoweredProgram> ReadLoweredProgram(absl::string_view isa_program_proto);

// The compiler's estimate of cycles for the instructions of a program, by name, of a program of the
// format "compiler_metadata". Those that it estimates nothing for are left out. InvalidArgument: it
// is damaged, or is of another format.
absl::StatusOr<std::map<std::string, int64_t>> ReadEstimatedCycles(
    absl::string_view compiler_metadata);

}  // namespace mallocgame::hlo
