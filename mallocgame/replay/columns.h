// Tables of structs to columns of numbers and back: how replay.proto stores them. Private to this
// folder.
#ifndef MALLOCGAME_REPLAY_COLUMNS_H_
#define MALLOCGAME_REPLAY_COLUMNS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "mallocgame/base/error.h"
#include "mallocgame/base/ids.h"
#include "mallocgame/base/utf8.h"

namespace mallocgame::replay {

// Rows of a table at most. A byte of a hostile file could otherwise become a hundred in memory.
inline constexpr size_t kMaxRows = size_t{1} << 22;

// The number a member is stored as. Masks of 64 bits keep their bits.
template <class T>
int64_t ToNumber(T value) {
  return static_cast<int64_t>(value);
}
template <class Tag>
int64_t ToNumber(Id<Tag> id) {
  return id.value;
}

// Back; false if the member can't hold the number. Whether the value makes sense is
// Program::Create's business, but for enums, of which it could not even ask.
template <class T>
bool FromNumber(int64_t number, T& value) {
  value = static_cast<T>(number);
  return static_cast<int64_t>(value) == number;
}
template <class Tag>
bool FromNumber(int64_t number, Id<Tag>& id) {
  return FromNumber(number, id.value);
}

// Appends one value a row to `field`, each as the difference from the row above.
template <class Field, class Row, class Member>
void WriteColumn(const std::vector<Row>& rows, Member Row::* member, Field* field) {
  if constexpr (std::is_same_v<Member, std::string>) {
    for (const Row& row : rows) *field->Add() = row.*member;
  } else {
    uint64_t above = 0;
    field->Reserve(static_cast<int>(rows.size()));
    for (const Row& row : rows) {
      const uint64_t number = static_cast<uint64_t>(ToNumber(row.*member));
      field->Add(static_cast<int64_t>(number - above));
      above = number;
    }
  }
}

// Reads the columns of one table; remembers the first thing wrong. Number of rows: that of the
// first column.
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
      ReadNumbers(name, field,
                  [&](size_t i, int64_t number) { return FromNumber(number, rows_[i].*member); });
    }
    return *this;
  }

  // Of an enum whose values are 0 to `last`.
  template <class Field, class Member>
  ColumnReader& ReadEnum(const char* name, const Field& field, Member Row::* member, Member last) {
    if (!Fits(name, field.size())) return *this;
    ReadNumbers(name, field, [&](size_t i, int64_t number) {
      if (number < 0 || number > static_cast<int64_t>(last)) return false;
      rows_[i].*member = static_cast<Member>(number);
      return true;
    });
    return *this;
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

  template <class Field, class Set>
  void ReadNumbers(const char* name, const Field& field, Set set) {
    uint64_t number = 0;
    for (size_t i = 0; i < rows_.size(); ++i) {
      number += static_cast<uint64_t>(field.Get(static_cast<int>(i)));
      if (set(i, static_cast<int64_t>(number))) continue;
      Fail(name, i, absl::StrCat(static_cast<int64_t>(number), " is out of range"));
      return;
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

// Lists of plain numbers and ids are tables of one column.
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
absl::Status ReadList(const char* table, const Field& field, std::vector<T>& values) {
  std::vector<Cell<T>> cells;
  MG_RETURN_IF_ERROR(
      ColumnReader<Cell<T>>(table, cells).Read("value", field, &Cell<T>::value).status());
  values.reserve(cells.size());
  for (const Cell<T>& cell : cells) values.push_back(cell.value);
  return absl::OkStatus();
}

}  // namespace mallocgame::replay

#endif  // MALLOCGAME_REPLAY_COLUMNS_H_
