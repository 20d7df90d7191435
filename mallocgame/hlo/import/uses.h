// What HLO calls the accesses of a Program. The compiler, when it is handed a plan, names a value
// as an operand of the instruction that uses it, or as (a part of) the result of the instruction
// that defines it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "mallocgame/base/ids.h"
#include "mallocgame/program/program.h"

namespace mallocgame {

// One place where the access's instruction (Program::instruction(tick).name) names the access's
// buffer. A read has one use for each operand that holds the buffer, a write has one for each array
// of the result, and an update has both. A loop's entry has one for each element of the tuple that
// the `while` is given.
struct HloUse {
  AccessId access;
  std::optional<int32_t> operand;  // its number; none: the use is the result
  // place of the array in a tuple, outermost first; empty if the operand or result is an array
  std::vector<int32_t> index;
  // the memory space in which it has to lie while the instruction runs; none: in any
  std::optional<int64_t> memory_space = std::nullopt;
  friend bool operator==(const HloUse&, const HloUse&) = default;
};

// The uses in order of accesses, then operands, the result last. `module` is the HloProto that
// `program` was made of, decompressed. InvalidArgument if the program was made of another module,
// or the module is damaged.
absl::StatusOr<std::vector<HloUse>> FindUses(const Program& program, absl::string_view module);

}  // namespace mallocgame
