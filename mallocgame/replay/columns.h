// Tables of structs to columns of numbers and back: how replay.proto stores them. Private to this
// folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "mallocgame/base/error.h"
#include "mallocgame/base/ids.h"
#include "mallocgame/base/utf8.h"

namespace mallocgame::replay {

// The most rows that a table may have. A byte of a hostile file could otherwise become a hundred in
// memory.
inline constexpr size_t kMaxRows = size_t{1} << 22;

// The number that a member is stored as. Masks of 64 bits keep their bits.
template <class T>
int64_t ToNumber(T value) {
  return static_cast<int64_t>(value);
}
template <class Tag>
int64_t ToNumber(Id<Tag> id) {
  return id.value;
}

// The member that was stored as this number; none if a T cannot hold the number. Program::Create
// judges whether the value makes sense. It could not do so for enums, which have ReadEnum.
template <class T>
std::optional<T> FromNumber(int64_t number) {
  const T value = static_cast<T>(number);
  if (ToNumber(value) != number) return std::nullopt;
  return value;
}

// Appends to `field` one value for each row. A number is stored as its difference from the row
// above.
template <class Field, class Row, class Member>
void WriteColumn(const std::vector<Row>& rows, Member Row::* member, Field* field) {
  if constexpr (std::is_same_v<Member, std::string>) {
    for (const Row& row : rows) *field->Add() = row.*member;
  } else {
    uint64_t above = 0;
    field->Reserve(static_cast<int>(rows.size()));
    for (const Row& row : rows) {
      const uint64_t number = ToNumber(row.*member);
      field->Add(static_cast<int64_t>(number - above));
      above = number;
    }
  }
}

// Reads the columns of one table into `rows`, and remembers the first thing that is wrong. The
// first column says how many rows there are.
template <class Row>
class ColumnReader {
 public:
  ColumnReader(const char* table, std::vector<Row>& rows) : table_(table), rows_(rows) {}

  template <class Field, class Member>
  ColumnReader& Read(const char* name, const Field& field, Member Row::* member) {
    if (!Fits(name, field.size())) return *this;
    if constexpr (std::is_same_v<Member, std::string>) {
      for (size_t i = 0; i < rows_.size(); ++i) {
        rows_[i].*member = field.Get(static_cast<int>(i));
        if (!IsUtf8(rows_[i].*member)) return Fail(name, i, "not UTF-8 text");
      }
    } else {
      ReadNumbers(name, field, member, FromNumber<Member>);
    }
    return *this;
  }

  // Reads a column that is absent if all its values are the default.
  template <class Field, class Member>
  ColumnReader& ReadIfAny(const char* name, const Field& field, Member Row::* member) {
    return field.empty() ? *this : Read(name, field, member);
  }

  // Reads a column of an enum whose values are 0 to `last`.
  template <class Field, class Member>
  ColumnReader& ReadEnum(const char* name, const Field& field, Member Row::* member, Member last) {
    if (!Fits(name, field.size())) return *this;
    ReadNumbers(name, field, member, [last](int64_t number) -> std::optional<Member> {
      if (number < 0 || number > static_cast<int64_t>(last)) return std::nullopt;
      return static_cast<Member>(number);
    });
    return *this;
  }

  template <class Field, class Member>
  ColumnReader& ReadEnumIfAny(const char* name, const Field& field, Member Row::* member,
                              Member last) {
    return field.empty() ? *this : ReadEnum(name, field, member, last);
  }

  const absl::Status& status() const { return status_; }

 private:
  bool Fits(const char* name, int size) {
    if (!status_.ok()) return false;
    const size_t count = size;
    if (count > kMaxRows) {
      status_ = absl::InvalidArgumentError(absl::StrCat(table_, ": column ", name, " has ", count,
                                                        " rows; allowed: at most ", kMaxRows));
      return false;
    }
    if (first_) rows_.resize(count);
    first_ = false;
    if (count == rows_.size()) return true;
    status_ = absl::InvalidArgumentError(absl::StrCat(
        table_, ": column ", name, " has ", count, " rows, the first column has ", rows_.size()));
    return false;
  }

  // `convert` gives none for a number that is not allowed.
  template <class Field, class Member, class Convert>
  void ReadNumbers(const char* name, const Field& field, Member Row::* member, Convert convert) {
    uint64_t sum = 0;
    for (size_t i = 0; i < rows_.size(); ++i) {
      sum += static_cast<uint64_t>(field.Get(static_cast<int>(i)));
      const auto number = static_cast<int64_t>(sum);
      const std::optional<Member> value = convert(number);
      if (!value) {
        Fail(name, i, absl::StrCat(number, " is out of range"));
        return;
      }
      rows_[i].*member = *value;
    }
  }

  ColumnReader& Fail(const char* name, size_t row, absl::string_view what) {
    status_ = absl::InvalidArgumentError(
        absl::StrCat(table_, ": column ", name, ", row ", row, ": ", what));
    return *this;
  }

  const char* table_;
  std::vector<Row>& rows_;
  bool first_ = true;
  absl::Status status_;
};

// A list of plain numbers or ids is a table of one column.
template <class T>
struct Cell {
  T value{};
};

template <class T, class Field>
void WriteList(const std::vector<T>& values, Field* field) {
  std::vector<Cell<T>> cells;
  cells.reserve(values.size());
  for (const T& value : values) cells.push_back({value});
  WriteColumn(cells, &Cell<T>::value, field);
}

template <class T, class Field>
absl::StatusOr<std::vector<T>> ReadList(const char* table, const Field& field) {
  std::vector<Cell<T>> cells;
  MG_RETURN_IF_ERROR(
      ColumnReader<Cell<T>>(table, cells).Read("value", field, &Cell<T>::value).status());
  std::vector<T> values;
  values.reserve(cells.size());
  for (const Cell<T>& cell : cells) values.push_back(cell.value);
  return values;
}

}  // namespace mallocgame::replay
