// CheckOffsets says whether offsets solve an OffsetProblem, and if not, which rule is broken where.
// It shares no code with the solver but what an interval takes at which time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "mallocgame/plan/offsets.h"

namespace mallocgame {

enum class OffsetRule : uint8_t {
  kNone,       // no rule is broken
  kGiven,      // an interval is not where its offset was given
  kBounds,     // an interval begins below its lowest offset or ends above the capacity
  kAlignment,  // an offset is no multiple of an alignment
  kOverlap,    // two intervals share a byte at the same time
};
const char* OffsetRuleName(OffsetRule rule);  // "overlap" ...

struct OffsetVerdict {
  OffsetRule rule = OffsetRule::kNone;
  // What is broken: the first interval of which that is true, or the first overlap in time.
  std::string message;  // with the names of the problem; empty for kNone
  size_t first = 0;     // the interval; for kOverlap the first of the two
  // For kOverlap: the other interval, and a time over which they share bytes, and these bytes.
  size_t second = 0;
  int64_t begin = 0, end = 0;
  int64_t low = 0, high = 0;
  int64_t height = 0;  // the highest end of an interval, also if a rule is broken
  bool ok() const { return rule == OffsetRule::kNone; }
};

// InvalidArgument: the problem is malformed (as SolveOffsets says), or there is not one offset for
// each interval. Offsets may be any numbers.
absl::StatusOr<OffsetVerdict> CheckOffsets(const OffsetProblem& problem,
                                           absl::Span<const int64_t> offsets);

}  // namespace mallocgame
