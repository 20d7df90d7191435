// Offset problems and solutions as text, in MiniMalloc's CSV: a header `id,lower,upper,size`, with
// `offset` behind in a solution, and a line an interval of time [lower, upper).
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
  // one an interval; any text without comma, quote and line break, distinct, not empty
  std::vector<std::string> ids;
  // without min_offset and steps, which the format doesn't have
  std::vector<OffsetInterval> intervals;
  std::vector<int64_t> offsets;  // one an interval, or none at all
};

// InvalidArgument with the line and what is wrong: other columns, a field too many or too few, no
// integer, one beyond 64 bits, an id twice, lower >= upper, size <= 0, offset < 0. Lines may end in
// CR LF; the last one need not end. ResourceExhausted: more than 2^20 intervals.
absl::StatusOr<OffsetTable> OffsetsFromCsv(absl::string_view text);

// With the column `offset` if there are offsets.
std::string OffsetsToCsv(const OffsetTable& table);

}  // namespace mallocgame

#endif  // MALLOCGAME_PLAN_OFFSETS_CSV_H_
