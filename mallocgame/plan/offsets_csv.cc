// Reads and writes without a CSV library, as the format has no quoting.
#include "mallocgame/plan/offsets_csv.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <limits>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "mallocgame/base/error.h"
#include "mallocgame/plan/offset_problem.h"

namespace mallocgame {
namespace {

constexpr size_t kMaxRows = size_t{1} << 20;
constexpr absl::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr absl::string_view kSpaces = " \t\r\v\f";

enum Column : uint8_t { kId, kLower, kUpper, kSize, kAlignment, kGaps, kOffset };
constexpr int kColumns = 7, kRequiredColumns = 4;

struct ColumnName {
  absl::string_view name;
  Column column;
  bool inclusive = false;  // whether it says which time is the last, not which is the next
};
// The first name of each column is the one that is written.
constexpr ColumnName kNames[] = {
    {"id", kId},        {"lower", kLower},         {"upper", kUpper},   {"size", kSize},
    {"gaps", kGaps},    {"alignment", kAlignment}, {"offset", kOffset}, {"buffer", kId},
    {"buffer_id", kId}, {"begin", kLower},         {"start", kLower},   {"end", kUpper, true},
};
constexpr absl::string_view kAllowed =
    "id (or buffer, buffer_id), lower (begin, start), upper (or end, inclusive), size, "
    "and alignment, gaps, offset";

template <class... Parts>
absl::Status Bad(size_t line, const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat("line ", line, ": ", parts...));
}

// A field for messages: quoted, without control characters, not too long.
std::string Shown(absl::string_view text) {
  return absl::StrCat("'", absl::CHexEscape(text.substr(0, 60)), text.size() > 60 ? "...'" : "'");
}

// The integer that `text` begins with, which is cut off; a plus sign may precede it.
std::optional<int64_t> TakeInteger(absl::string_view& text) {
  absl::string_view digits = text;
  if (absl::ConsumePrefix(&digits, "+") && (digits.empty() || !absl::ascii_isdigit(digits[0])))
    return std::nullopt;
  int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc()) return std::nullopt;
  text = digits.substr(static_cast<size_t>(end - digits.data()));
  return value;
}

// What the header says.
struct Header {
  std::vector<std::string> names;
  std::optional<size_t> of[kColumns];  // which of them is that column
  bool inclusive = false;

  // The column's name as it stands there.
  const std::string& NameOf(Column column) const { return names[*of[column]]; }
};

absl::StatusOr<Header> ReadHeader(absl::string_view row, size_t line) {
  Header header;
  for (absl::string_view field : absl::StrSplit(row, ',')) {
    do field = absl::StripAsciiWhitespace(field);
    while (absl::ConsumePrefix(&field, kByteOrderMark));
    for (const ColumnName& known : kNames) {
      if (known.name != field) continue;
      std::optional<size_t>& at = header.of[known.column];
      if (at.has_value()) {
        return Bad(line, "the columns '", header.names[*at], "' and '", field,
                   "' are two names for the same");
      }
      at = header.names.size();
      header.inclusive = header.inclusive || known.inclusive;
    }
    header.names.emplace_back(field);
  }
  for (int c = 0; c < kRequiredColumns; ++c) {
    if (header.of[c].has_value()) continue;
    return Bad(line, "found ", Shown(row), ", which lacks the column '", kNames[c].name,
               "'; allowed: ", kAllowed);
  }
  return header;
}

// The fields of a line, by their column.
class Row {
 public:
  Row(const Header& header, const std::vector<absl::string_view>& fields, size_t line)
      : header_(header), fields_(fields), line_(line) {}

  // Empty if there is no such column.
  absl::string_view Text(Column column) const {
    return header_.of[column] ? fields_[*header_.of[column]] : absl::string_view();
  }
  absl::StatusOr<int64_t> Integer(Column column) const {
    absl::string_view rest = Text(column);
    const std::optional<int64_t> value = TakeInteger(rest);
    if (value.has_value() && rest.empty()) return *value;
    return Bad(column, ", allowed: an integer of 64 bits");
  }
  // The same, but `absent` if the field is empty or not there.
  absl::StatusOr<int64_t> Integer(Column column, int64_t absent) const {
    if (Text(column).empty()) return absent;
    return Integer(column);
  }
  template <class... Parts>
  absl::Status Bad(Column column, const Parts&... parts) const {
    return mallocgame::Bad(line_, header_.NameOf(column), ": found ", Shown(Text(column)),
                           parts...);
  }

 private:
  const Header& header_;
  const std::vector<absl::string_view>& fields_;
  size_t line_;
};

// The first time after a last one, if the header says which is the last.
absl::StatusOr<int64_t> After(const Row& row, Column column, int64_t time, bool inclusive) {
  if (!inclusive) return time;
  if (time < std::numeric_limits<int64_t>::max()) return time + 1;
  return row.Bad(column, ", allowed: a time after which there is another one");
}

// LOWER-UPPER, or LOWER-UPPER@LOW:HIGH.
absl::StatusOr<OffsetGap> ReadGap(const Row& row, absl::string_view text, bool inclusive) {
  absl::string_view rest = text;
  const std::optional<int64_t> lower = TakeInteger(rest);
  std::optional<int64_t> upper, low = 0, high = 0;
  if (lower.has_value() && absl::ConsumePrefix(&rest, "-")) upper = TakeInteger(rest);
  if (upper.has_value() && absl::ConsumePrefix(&rest, "@")) {
    low = TakeInteger(rest);
    high = low.has_value() && absl::ConsumePrefix(&rest, ":") ? TakeInteger(rest) : std::nullopt;
  }
  if (!upper.has_value() || !high.has_value() || !rest.empty()) {
    return row.Bad(kGaps, ", allowed: times LOWER-UPPER or LOWER-UPPER@LOW:HIGH");
  }
  OffsetGap gap = {.begin = *lower, .low = *low, .high = *high};
  MG_ASSIGN_OR_RETURN(gap.end, After(row, kGaps, *upper, inclusive));
  return gap;
}

absl::StatusOr<OffsetInterval> ReadInterval(const Header& header, const Row& row, size_t line) {
  OffsetInterval interval;
  MG_ASSIGN_OR_RETURN(interval.begin, row.Integer(kLower));
  MG_ASSIGN_OR_RETURN(const int64_t upper, row.Integer(kUpper));
  MG_ASSIGN_OR_RETURN(interval.end, After(row, kUpper, upper, header.inclusive));
  MG_ASSIGN_OR_RETURN(interval.size, row.Integer(kSize));
  if (interval.begin > interval.end) {
    return Bad(line, header.NameOf(kLower), " ", interval.begin, " is above ",
               header.NameOf(kUpper), " ", upper);
  }
  if (interval.size < 0) return row.Bad(kSize, ", allowed: 0 and above");
  MG_ASSIGN_OR_RETURN(interval.alignment, row.Integer(kAlignment, 1));
  if (interval.alignment < 1) return row.Bad(kAlignment, ", allowed: 1 and above");
  MG_ASSIGN_OR_RETURN(const int64_t offset, row.Integer(kOffset, -1));
  if (offset < -1) return row.Bad(kOffset, ", allowed: 0 and above, or -1 for none");
  if (offset >= 0) interval.given = offset;
  for (const absl::string_view text :
       absl::StrSplit(row.Text(kGaps), absl::ByAnyChar(kSpaces), absl::SkipEmpty())) {
    MG_ASSIGN_OR_RETURN(const OffsetGap gap, ReadGap(row, text, header.inclusive));
    interval.gaps.push_back(gap);
  }
  if (absl::Status status = CheckGaps(interval); !status.ok())
    return Bad(line, header.NameOf(kGaps), ": ", status.message());
  return interval;
}

// Reads `text` up to the end of its line, which is cut off.
absl::string_view TakeLine(absl::string_view& text) {
  const size_t length = std::min(text.find('\n'), text.size());
  const absl::string_view line = text.substr(0, length);
  text.remove_prefix(std::min(length + 1, text.size()));
  return line;
}

bool IsBlank(absl::string_view line) {
  return std::all_of(line.begin(), line.end(),
                     [](char c) { return c == ',' || kSpaces.find(c) != absl::string_view::npos; });
}

void AppendGap(std::string* text, const OffsetGap& gap) {
  absl::StrAppend(text, gap.begin, "-", gap.end);
  if (gap.low != 0 || gap.high != 0) absl::StrAppend(text, "@", gap.low, ":", gap.high);
}

}  // namespace

absl::Status CheckIds(absl::Span<const std::string> ids) {
  absl::flat_hash_set<absl::string_view> seen;
  for (const std::string& id : ids) {
    if (id.empty() || id.find_first_of(",\n") != std::string::npos ||
        absl::StripAsciiWhitespace(id) != id) {
      return absl::InvalidArgumentError(
          absl::StrCat("id: found ", Shown(id),
                       ", allowed: a text without commas, line breaks and spaces at its ends"));
    }
    if (!seen.insert(id).second)
      return absl::InvalidArgumentError(absl::StrCat("id ", Shown(id), " stands there twice"));
  }
  return absl::OkStatus();
}

absl::StatusOr<OffsetTable> OffsetsFromCsv(absl::string_view text) {
  absl::ConsumePrefix(&text, kByteOrderMark);
  OffsetTable table;
  std::optional<Header> header;
  absl::flat_hash_set<absl::string_view> ids;
  for (size_t line = 1; !text.empty(); ++line) {
    const absl::string_view row_text = TakeLine(text);
    if (IsBlank(row_text)) continue;
    if (!header.has_value()) {
      MG_ASSIGN_OR_RETURN(header, ReadHeader(row_text, line));
      continue;
    }
    if (table.ids.size() == kMaxRows) {
      return absl::ResourceExhaustedError(
          absl::StrCat("line ", line, ": allowed are ", kMaxRows, " intervals"));
    }
    // However long a line is, it makes at most one piece too many.
    const size_t columns = header->names.size();
    std::vector<absl::string_view> fields =
        absl::StrSplit(row_text, absl::MaxSplits(',', static_cast<int>(columns)));
    if (fields.size() != columns) {
      return Bad(line, "found ", fields.size() > columns ? "more" : absl::StrCat(fields.size()),
                 " fields, allowed: ", columns, "; quotes do not join fields");
    }
    for (absl::string_view& field : fields) field = absl::StripAsciiWhitespace(field);
    const Row row(*header, fields, line);
    const absl::string_view id = row.Text(kId);
    if (id.empty()) return row.Bad(kId, ", allowed: a text");
    if (!ids.insert(id).second) return Bad(line, "id ", Shown(id), " stands there twice");
    MG_ASSIGN_OR_RETURN(OffsetInterval interval, ReadInterval(*header, row, line));
    table.ids.emplace_back(id);
    table.intervals.push_back(std::move(interval));
    table.lines.push_back(line);
  }
  if (!header.has_value()) return Bad(1, "found no header; allowed: ", kAllowed);
  return table;
}

std::string OffsetsToCsv(const OffsetTable& table, absl::Span<const int64_t> offsets) {
  MG_CHECK(offsets.empty() || offsets.size() == table.intervals.size());
  const auto any = [&table](auto has) {
    return std::any_of(table.intervals.begin(), table.intervals.end(), has);
  };
  const bool aligned = any([](const OffsetInterval& i) { return i.alignment != 1; }),
             gaps = any([](const OffsetInterval& i) { return !i.gaps.empty(); }),
             given = any([](const OffsetInterval& i) { return i.given.has_value(); });
  std::string text =
      absl::StrCat("id,lower,upper,size", aligned ? ",alignment" : "", gaps ? ",gaps" : "",
                   given || !offsets.empty() ? ",offset" : "", "\n");
  for (size_t i = 0; i < table.intervals.size(); ++i) {
    const OffsetInterval& interval = table.intervals[i];
    absl::StrAppend(&text, table.ids[i], ",", interval.begin, ",", interval.end, ",",
                    interval.size);
    if (aligned) absl::StrAppend(&text, ",", interval.alignment);
    if (gaps) absl::StrAppend(&text, ",", absl::StrJoin(interval.gaps, " ", AppendGap));
    if (!offsets.empty()) {
      absl::StrAppend(&text, ",", offsets[i]);
    } else if (given) {
      absl::StrAppend(&text, ",", interval.given ? absl::StrCat(*interval.given) : "");
    }
    text += '\n';
  }
  return text;
}

std::vector<std::string> RowNames(const OffsetTable& table) {
  std::vector<std::string> names;
  for (size_t i = 0; i < table.ids.size(); ++i) {
    names.push_back(table.lines.empty() ? absl::StrCat("interval ", Shown(table.ids[i]))
                                        : absl::StrCat("row ", Shown(table.ids[i]), " (line ",
                                                       table.lines[i], ")"));
  }
  return names;
}

}  // namespace mallocgame
