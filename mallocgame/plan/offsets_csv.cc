// Reads and writes without a CSV library, as the format has no quoting.
#include "mallocgame/plan/offsets_csv.h"

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "mallocgame/base/error.h"

namespace mallocgame {
namespace {

constexpr absl::string_view kHeader = "id,lower,upper,size";
constexpr absl::string_view kSolutionHeader = "id,lower,upper,size,offset";
constexpr size_t kMaxRows = size_t{1} << 20;

template <class... Parts>
absl::Status Bad(size_t line, const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat("line ", line, ": ", parts...));
}

// A field for messages: quoted, without control characters, not too long.
std::string Shown(absl::string_view text) {
  return absl::StrCat("'", absl::CHexEscape(text.substr(0, 60)), text.size() > 60 ? "...'" : "'");
}

absl::StatusOr<int64_t> Integer(absl::string_view field, size_t line, absl::string_view column) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
  if (error == std::errc() && end == field.data() + field.size()) return value;
  return Bad(line, column, ": found ", Shown(field), ", allowed: an integer of 64 bits");
}

absl::Status AddRow(absl::string_view row, size_t line, bool has_offset, OffsetTable& table) {
  const size_t columns = has_offset ? 5 : 4;
  // However long a line is, it makes at most one piece too many.
  const std::vector<absl::string_view> fields =
      absl::StrSplit(row, absl::MaxSplits(',', static_cast<int>(columns)));
  if (fields.size() != columns) {
    return Bad(line, "found ", fields.size() > columns ? "more" : absl::StrCat(fields.size()),
               " fields, allowed: ", columns);
  }
  if (fields[0].empty() || absl::StrContains(fields[0], '"')) {
    return Bad(line, "id: found ", Shown(fields[0]), ", allowed: text without quotes");
  }
  OffsetInterval interval;
  MG_ASSIGN_OR_RETURN(interval.begin, Integer(fields[1], line, "lower"));
  MG_ASSIGN_OR_RETURN(interval.end, Integer(fields[2], line, "upper"));
  MG_ASSIGN_OR_RETURN(interval.size, Integer(fields[3], line, "size"));
  if (interval.begin >= interval.end)
    return Bad(line, "lower ", interval.begin, " is not below upper ", interval.end);
  if (interval.size <= 0) return Bad(line, "size: found ", interval.size, ", allowed: 1 and above");
  if (has_offset) {
    MG_ASSIGN_OR_RETURN(const int64_t offset, Integer(fields[4], line, "offset"));
    if (offset < 0) return Bad(line, "offset: found ", offset, ", allowed: 0 and above");
    table.offsets.push_back(offset);
  }
  table.ids.emplace_back(fields[0]);
  table.intervals.push_back(std::move(interval));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<OffsetTable> OffsetsFromCsv(absl::string_view text) {
  OffsetTable table;
  absl::flat_hash_set<absl::string_view> ids;
  bool has_offset = false;
  size_t line = 0;
  while (!text.empty() || line == 0) {
    ++line;
    const size_t length = std::min(text.find('\n'), text.size());
    const absl::string_view row = absl::StripSuffix(text.substr(0, length), "\r");
    text.remove_prefix(std::min(length + 1, text.size()));
    if (line == 1) {
      has_offset = row == kSolutionHeader;
      if (!has_offset && row != kHeader) {
        return Bad(line, "found ", Shown(row), ", allowed: '", kHeader, "' or '", kSolutionHeader,
                   "'");
      }
      continue;
    }
    if (table.ids.size() == kMaxRows) {
      return absl::ResourceExhaustedError(
          absl::StrCat("line ", line, ": allowed are ", kMaxRows, " intervals"));
    }
    MG_RETURN_IF_ERROR(AddRow(row, line, has_offset, table));
    if (!ids.insert(row.substr(0, table.ids.back().size())).second) {
      return Bad(line, "id ", Shown(table.ids.back()), " stands there twice");
    }
  }
  return table;
}

std::string OffsetsToCsv(const OffsetTable& table) {
  std::string text = absl::StrCat(table.offsets.empty() ? kHeader : kSolutionHeader, "\n");
  for (size_t i = 0; i < table.intervals.size(); ++i) {
    const OffsetInterval& interval = table.intervals[i];
    absl::StrAppend(&text, table.ids[i], ",", interval.begin, ",", interval.end, ",",
                    interval.size);
    if (!table.offsets.empty()) absl::StrAppend(&text, ",", table.offsets[i]);
    text += '\n';
  }
  return text;
}

}  // namespace mallocgame
