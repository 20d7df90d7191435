// Offset problems and solutions as text, in MiniMalloc's CSV: a header `id,lower,upper,size`, which
// ends in `,offset` in a solution, and a line for each interval of time [lower, upper).
#ifndef MALLOCGAME_PLAN_OFFSETS_CSV_H_
#define MALLOCGAME_PLAN_OFFSETS_CSV_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "mallocgame/plan/offsets.h"

namespace mallocgame {

struct OffsetTable {
  // One for each interval: distinct texts, not empty, without comma, quote and line break.
  std::vector<std::string> ids;
  // Without min_offset and steps, which the format does not have.
  std::vector<OffsetInterval> intervals;
  std::vector<int64_t> offsets;  // one for each interval, or none at all
};

// InvalidArgument names the line and what is wrong: other columns, a field too many or too few, a
// field that is no 64-bit integer, an id that occurs twice, lower >= upper, size <= 0, offset < 0.
// Lines may end in CR LF; the last one need not end at all. ResourceExhausted: there are more than
// 2^20 intervals.
absl::StatusOr<OffsetTable> OffsetsFromCsv(absl::string_view text);

// The text has the column `offset` if there are offsets.
std::string OffsetsToCsv(const OffsetTable& table);

}  // namespace mallocgame

#endif  // MALLOCGAME_PLAN_OFFSETS_CSV_H_
