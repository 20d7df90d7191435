// Offset problems and solutions as text, in MiniMalloc's CSV: a header that names the columns, in
// any order, and a line for each interval.
//
//   id         a text of its own for each row, without commas
//   lower      when the interval begins
//   upper      when it ends: the first time at which it is no more; if that is `lower`, it takes
//              nothing, but has an offset within the capacity
//   size       bytes
//   alignment  what its offset is a multiple of (1)
//   gaps       times in which it takes nothing or less, with a space between: 7-9 12-14@2:13 is
//              nothing from 7 on and before 9, and from 12 on and before 14 only its bytes from 2
//              on and before 13
//   offset     where it is given to lie, or -1; in a solution where it lies
//
// The first four have to be there. Where one of the others is empty in a row, it is as if it were
// not there. Older names are buffer and buffer_id for id, begin and start for lower, and end for
// upper; with `end`, the times at which intervals and gaps end are the last ones at which they are.
// Columns of other names, as MiniMalloc's `hint`, say nothing. A quote is a character like any
// other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "mallocgame/plan/offsets.h"

namespace mallocgame {

struct OffsetTable {
  std::vector<std::string> ids;  // one for each interval, as CheckIds asks
  // Without min_offset and steps, which the format does not have.
  std::vector<OffsetInterval> intervals;
  std::vector<size_t> lines = {};  // of the intervals, from 1; empty if it was not read
};

// InvalidArgument: an id occurs twice, is empty, has a comma or a line break, or a space at an end.
absl::Status CheckIds(absl::Span<const std::string> ids);

// Skipped are a byte order mark, spaces around fields, and lines of nothing but spaces and commas.
// Lines may end in CR LF; the last one need not end at all. InvalidArgument names the line and what
// is wrong: a column that is missing or stands there twice, a field too many or too few, a field
// that is no 64-bit integer, an id that occurs twice, lower > upper, gaps that cannot be, a size
// below 0, an alignment below 1, an offset below -1. ResourceExhausted: there are more than 2^20
// intervals.
absl::StatusOr<OffsetTable> OffsetsFromCsv(absl::string_view text);

// The columns that are needed, in the order above; with `offsets`, one for each interval, these in
// the column `offset`. MiniMalloc can read it, as it has no blank lines, spaces or byte order mark.
std::string OffsetsToCsv(const OffsetTable& table, absl::Span<const int64_t> offsets = {});

// What messages call the intervals: `row 'b1' (line 2)`, or `interval 'b1'` if it was not read.
std::vector<std::string> RowNames(const OffsetTable& table);

}  // namespace mallocgame
