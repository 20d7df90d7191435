// What HLO calls the accesses of a Program, for handing a plan to the compiler: it names a value by
// the operand of the instruction that uses it, or as (part of) the result of the one that defines
// it.
#ifndef MALLOCGAME_HLO_USES_H_
#define MALLOCGAME_HLO_USES_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "mallocgame/base/ids.h"
#include "mallocgame/program/program.h"

namespace mallocgame {

inline constexpr int32_t kResult = -1;

// One place where the access's instruction (Program::instruction(tick).name) names the access's
// buffer. A read has one for each operand that holds the buffer, a write one for each array of the
// result, an update both; a loop's entry one for each element of the tuple that the `while` is
// given.
struct HloUse {
  AccessId access;
  int32_t operand = kResult;  // number of the operand, or kResult
  // of the array in a tuple, outermost first; empty where the operand or result is an array
  std::vector<int32_t> index;
  friend bool operator==(const HloUse&, const HloUse&) = default;
};

// In order of accesses, then operands, the result last. `module`: the HloProto that `program` was
// made of, decompressed; InvalidArgument if it was made of another, or the module is damaged.
absl::StatusOr<std::vector<HloUse>> FindUses(const Program& program, absl::string_view module);

}  // namespace mallocgame

#endif  // MALLOCGAME_HLO_USES_H_
