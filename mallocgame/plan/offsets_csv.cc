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

enum class Column : uint8_t { kId, kLower, kUpper, kSize, kAlignment, kHint, kGaps, kOffset };
constexpr int kColumns = 8, kRequiredColumns = 4;

struct ColumnName {
  absl::string_view name;
  Column column;
  bool inclusive = false;  // whether it says which time is the last, not which is the next
};
// The first name of each column is the one that is written.
constexpr ColumnName kNames[] = {
    {"id", Column::kId},           {"lower", Column::kLower},         {"upper", Column::kUpper},
    {"size", Column::kSize},       {"alignment", Column::kAlignment}, {"hint", Column::kHint},
    {"gaps", Column::kGaps},       {"offset", Column::kOffset},       {"buffer", Column::kId},
    {"buffer_id", Column::kId},    {"begin", Column::kLower},         {"start", Column::kLower},
    {"end", Column::kUpper, true},
};
constexpr absl::string_view kAllowed =
    "id (or buffer, buffer_id), lower (begin, start), upper (or end, inclusive), size, "
    "and alignment, gaps, hint, offset";

const ColumnName* KnownColumn(absl::string_view name) {
  const auto* found = std::find_if(std::begin(kNames), std::end(kNames),
                                   [name](const ColumnName& known) { return known.name == name; });
  return found == std::end(kNames) ? nullptr : found;
}

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
  std::vector<const ColumnName*> columns;  // null: it says nothing
  std::optional<size_t> of[kColumns];      // which of them is that column
  bool inclusive = false;

  bool Has(Column column) const { return of[static_cast<int>(column)].has_value(); }
  // The column's name as it stands there.
  const std::string& NameOf(Column column) const { return names[*of[static_cast<int>(column)]]; }
};

absl::StatusOr<Header> ReadHeader(absl::string_view row, size_t line) {
  Header header;
  absl::flat_hash_set<absl::string_view> seen;
  for (absl::string_view field : absl::StrSplit(row, ',')) {
    do field = absl::StripAsciiWhitespace(field);
    while (absl::ConsumePrefix(&field, kByteOrderMark));
    if (!seen.insert(field).second) {
      return Bad(line, "the column ", Shown(field), " stands there twice");
    }
    const ColumnName* known = KnownColumn(field);
    if (known != nullptr) {
      std::optional<size_t>& at = header.of[static_cast<int>(known->column)];
      if (at.has_value()) {
        return Bad(line, "the columns '", header.names[*at], "' and '", field,
                   "' are two names for the same");
      }
      at = header.names.size();
      header.inclusive = header.inclusive || known->inclusive;
    }
    header.names.emplace_back(field);
    header.columns.push_back(known);
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
    return header_.Has(column) ? fields_[*header_.of[static_cast<int>(column)]]
                               : absl::string_view();
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
    return row.Bad(Column::kGaps, ", allowed: times LOWER-UPPER or LOWER-UPPER@LOW:HIGH");
  }
  OffsetGap gap = {.begin = *lower, .low = *low, .high = *high};
  MG_ASSIGN_OR_RETURN(gap.end, After(row, Column::kGaps, *upper, inclusive));
  return gap;
}

absl::StatusOr<OffsetInterval> ReadInterval(const Header& header, const Row& row, size_t line) {
  OffsetInterval interval;
  MG_ASSIGN_OR_RETURN(interval.begin, row.Integer(Column::kLower));
  MG_ASSIGN_OR_RETURN(const int64_t upper, row.Integer(Column::kUpper));
  MG_ASSIGN_OR_RETURN(interval.end, After(row, Column::kUpper, upper, header.inclusive));
  MG_ASSIGN_OR_RETURN(interval.size, row.Integer(Column::kSize));
  if (interval.begin > interval.end) {
    return Bad(line, header.NameOf(Column::kLower), " ", interval.begin, " is above ",
               header.NameOf(Column::kUpper), " ", upper);
  }
  if (interval.size < 0) return row.Bad(Column::kSize, ", allowed: 0 and above");
  MG_ASSIGN_OR_RETURN(interval.alignment, row.Integer(Column::kAlignment, 1));
  if (interval.alignment < 1) return row.Bad(Column::kAlignment, ", allowed: 1 and above");
  MG_ASSIGN_OR_RETURN(const int64_t offset, row.Integer(Column::kOffset, -1));
  if (offset < -1) return row.Bad(Column::kOffset, ", allowed: 0 and above, or -1 for none");
  if (offset >= 0) interval.given = offset;
  for (const absl::string_view text :
       absl::StrSplit(row.Text(Column::kGaps), absl::ByAnyChar(kSpaces), absl::SkipEmpty())) {
    MG_ASSIGN_OR_RETURN(const OffsetGap gap, ReadGap(row, text, header.inclusive));
    interval.gaps.push_back(gap);
  }
  if (absl::Status status = CheckGaps(interval); !status.ok())
    return Bad(line, header.NameOf(Column::kGaps), ": ", status.message());
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

std::string GapText(const OffsetGap& gap, bool inclusive) {
  std::string text = absl::StrCat(gap.begin, "-", gap.end - (inclusive ? 1 : 0));
  if (gap.low != 0 || gap.high != 0) absl::StrAppend(&text, "@", gap.low, ":", gap.high);
  return text;
}

// The names of the columns that a table needs which was not read.
std::vector<std::string> NeededColumns(const OffsetTable& table) {
  const auto any = [&table](auto has) {
    return std::any_of(table.intervals.begin(), table.intervals.end(), has);
  };
  std::vector<std::string> names;
  for (int c = 0; c < kRequiredColumns; ++c) names.emplace_back(kNames[c].name);
  if (any([](const OffsetInterval& i) { return i.alignment != 1; }))
    names.emplace_back("alignment");
  if (!table.hints.empty()) names.emplace_back("hint");
  if (any([](const OffsetInterval& i) { return !i.gaps.empty(); })) names.emplace_back("gaps");
  if (any([](const OffsetInterval& i) { return i.given.has_value(); }))
    names.emplace_back("offset");
  return names;
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
    const absl::string_view id = row.Text(Column::kId);
    if (id.empty()) return row.Bad(Column::kId, ", allowed: a text");
    if (!ids.insert(id).second) return Bad(line, "id ", Shown(id), " stands there twice");
    MG_ASSIGN_OR_RETURN(OffsetInterval interval, ReadInterval(*header, row, line));
    if (header->Has(Column::kHint)) {
      MG_ASSIGN_OR_RETURN(const int64_t hint, row.Integer(Column::kHint, -1));
      table.hints.push_back(std::max<int64_t>(hint, -1));
    }
    for (size_t f = 0; f < columns; ++f) {
      if (header->columns[f] == nullptr) table.others.emplace_back(fields[f]);
    }
    table.ids.emplace_back(id);
    table.intervals.push_back(std::move(interval));
    table.lines.push_back(line);
  }
  if (!header.has_value()) return Bad(1, "found no header; allowed: ", kAllowed);
  table.columns = std::move(header->names);
  return table;
}

std::string OffsetsToCsv(const OffsetTable& table, absl::Span<const int64_t> offsets) {
  MG_CHECK(offsets.empty() || offsets.size() == table.intervals.size());
  std::vector<std::string> names = table.columns.empty() ? NeededColumns(table) : table.columns;
  if (!offsets.empty() && std::find(names.begin(), names.end(), "offset") == names.end())
    names.emplace_back("offset");
  std::vector<const ColumnName*> columns;
  bool inclusive = false;
  for (const std::string& name : names) {
    columns.push_back(KnownColumn(name));
    inclusive = inclusive || (columns.back() != nullptr && columns.back()->inclusive);
  }
  std::string text = absl::StrCat(absl::StrJoin(names, ","), "\n");
  size_t other = 0;
  for (size_t i = 0; i < table.intervals.size(); ++i) {
    const OffsetInterval& interval = table.intervals[i];
    for (size_t c = 0; c < columns.size(); ++c) {
      if (c > 0) text += ',';
      if (columns[c] == nullptr) {
        text += table.others[other++];
        continue;
      }
      switch (columns[c]->column) {
        case Column::kId: text += table.ids[i]; break;
        case Column::kLower: absl::StrAppend(&text, interval.begin); break;
        case Column::kUpper: absl::StrAppend(&text, interval.end - (inclusive ? 1 : 0)); break;
        case Column::kSize: absl::StrAppend(&text, interval.size); break;
        case Column::kAlignment: absl::StrAppend(&text, interval.alignment); break;
        case Column::kHint:
          absl::StrAppend(&text, table.hints.empty() ? -1 : table.hints[i]);
          break;
        case Column::kGaps:
          absl::StrAppend(
              &text, absl::StrJoin(interval.gaps, " ", [&](std::string* out, const OffsetGap& gap) {
                absl::StrAppend(out, GapText(gap, inclusive));
              }));
          break;
        case Column::kOffset:
          if (!offsets.empty()) {
            absl::StrAppend(&text, offsets[i]);
          } else if (interval.given.has_value()) {
            absl::StrAppend(&text, *interval.given);
          }
          break;
      }
    }
    text += '\n';
  }
  return text;
}

std::vector<std::string> OtherColumns(const OffsetTable& table) {
  std::vector<std::string> others;
  for (const std::string& name : table.columns) {
    if (KnownColumn(name) == nullptr) others.push_back(name);
  }
  return others;
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
