// Checks the costs of ProgramData, and has what all checks of it share.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "mallocgame/program/program.h"

namespace mallocgame {

// Limits that no real program comes near. They keep the sums and products of what passes inside 64
// bits, and the simulator's work finite, as it plays each loop body twice.
inline constexpr int64_t kMaxProgramCount = 1 << 26;
inline constexpr int64_t kMaxProgramBytes = int64_t{1} << 48;

template <class... Parts>
absl::Status BrokenProgram(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat("program: ", parts...));
}
inline bool InRange(int64_t value, int64_t least, int64_t most) {
  return value >= least && value <= most;
}
inline std::string AtTick(const ProgramData& data, int64_t tick) {
  return absl::StrCat("tick ", tick, " ('", data.instructions[tick].name, "'): ");
}

// InvalidArgument names the cost. Everything else of `data` has been checked.
absl::Status CheckCosts(const ProgramData& data);

}  // namespace mallocgame
