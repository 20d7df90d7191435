// Columns of numbers: what stands in a field, and what is refused when it is read.
#include "mallocgame/replay/columns.h"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "google/protobuf/repeated_field.h"
#include "tests/catch.h"

namespace mallocgame::replay {
namespace {

enum class Color : uint8_t { kRed, kGreen, kBlue };

struct Row {
  int32_t number = 0;
  uint64_t mask = 0;
  bool flag = false;
  Color color = Color::kRed;
  BufferId id;
  std::string name;
};

using Numbers = google::protobuf::RepeatedField<int64_t>;
using Names = google::protobuf::RepeatedPtrField<std::string>;

template <class Member>
std::vector<int64_t> Written(const std::vector<Row>& rows, Member Row::* member) {
  Numbers field;
  WriteColumn(rows, member, &field);
  return {field.begin(), field.end()};
}

Numbers FieldOf(const std::vector<int64_t>& numbers) { return {numbers.begin(), numbers.end()}; }

template <class Member>
std::string Refusal(const std::vector<int64_t>& numbers, Member Row::* member) {
  std::vector<Row> rows;
  return std::string(
      ColumnReader<Row>("table", rows).Read("column", FieldOf(numbers), member).status().message());
}

std::vector<Row> RowsOf(const std::vector<int32_t>& numbers) {
  std::vector<Row> rows;
  for (const int32_t number : numbers) rows.emplace_back().number = number;
  return rows;
}

TEST_CASE("a column holds the difference of each number from the one above") {
  CHECK(Written(RowsOf({5, 7, 7, 4}), &Row::number) == std::vector<int64_t>{5, 2, 0, -3});
  std::vector<Row> rows;
  REQUIRE(ColumnReader<Row>("table", rows)
              .Read("number", FieldOf({5, 2, 0, -3}), &Row::number)
              .status()
              .ok());
  REQUIRE(rows.size() == 4);
  CHECK(rows[0].number == 5);
  CHECK(rows[2].number == 7);
  CHECK(rows[3].number == 4);
}

TEST_CASE("differences wrap around, so that every mask and every extreme comes back") {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  const std::vector<int64_t> numbers = {kMax, kMin, 0, kMin, kMax};
  Numbers field;
  WriteList(numbers, &field);
  CHECK(field.Get(1) == 1);  // from the largest number, one more is the smallest
  CHECK(*ReadList<int64_t>("numbers", field) == numbers);

  const std::vector<uint64_t> masks = {~uint64_t{0}, 0, uint64_t{1} << 63};
  Numbers mask_field;
  WriteList(masks, &mask_field);
  CHECK(*ReadList<uint64_t>("masks", mask_field) == masks);
}

TEST_CASE("ids are stored as their index, and none as -1") {
  const std::vector<AccessId> ids = {AccessId(3), AccessId(), AccessId(3)};
  Numbers field;
  WriteList(ids, &field);
  CHECK(std::vector<int64_t>(field.begin(), field.end()) == std::vector<int64_t>{3, -4, 4});
  CHECK(*ReadList<AccessId>("ids", field) == ids);
}

TEST_CASE("a number that the member cannot hold is refused, with its row") {
  CHECK(FromNumber<int32_t>(2147483647) == 2147483647);
  CHECK(FromNumber<int32_t>(2147483648) == std::nullopt);
  CHECK(FromNumber<bool>(1) == true);
  CHECK(FromNumber<bool>(2) == std::nullopt);
  CHECK(FromNumber<BufferId>(-2147483649) == std::nullopt);
  // The second row is 2147483647 + 1.
  CHECK(Refusal({2147483647, 1}, &Row::number) ==
        "table: column column, row 1: 2147483648 is out of range");
  CHECK(Refusal({0, 1, 1}, &Row::flag) == "table: column column, row 2: 2 is out of range");
  CHECK(Refusal({int64_t{1} << 40}, &Row::id) ==
        "table: column column, row 0: 1099511627776 is out of range");
}

TEST_CASE("an enum has the values up to its last, and no other") {
  std::vector<Row> rows;
  const auto read = [&rows](const std::vector<int64_t>& numbers) {
    rows.clear();
    return ColumnReader<Row>("table", rows)
        .ReadEnum("color", FieldOf(numbers), &Row::color, Color::kBlue)
        .status();
  };
  REQUIRE(read({2, -1}).ok());
  CHECK(rows[0].color == Color::kBlue);
  CHECK(rows[1].color == Color::kGreen);
  CHECK(read({3}).message() == "table: column color, row 0: 3 is out of range");
  CHECK(read({0, -1}).message() == "table: column color, row 1: -1 is out of range");
}

TEST_CASE("the first column says how many rows there are, and the first error stays") {
  std::vector<Row> rows;
  Names names;
  *names.Add() = "one";
  *names.Add() = "tw\xff";
  ColumnReader<Row> reader("table", rows);
  reader.Read("number", FieldOf({1, 1}), &Row::number).Read("mask", FieldOf({1}), &Row::mask);
  CHECK(reader.status().message() == "table: column mask has 1 rows, the first column has 2");
  reader.Read("name", names, &Row::name);
  CHECK(reader.status().message() == "table: column mask has 1 rows, the first column has 2");

  std::vector<Row> named;
  CHECK(ColumnReader<Row>("table", named).Read("name", names, &Row::name).status().message() ==
        "table: column name, row 1: not UTF-8 text");
  CHECK(named[0].name == "one");
}

TEST_CASE("a table of too many rows is refused before it is made") {
  Numbers field;
  field.Resize(static_cast<int>(kMaxRows) + 1, 0);
  CHECK(ReadList<int64_t>("numbers", field).status().message() ==
        "numbers: column value has 4194305 rows; allowed: at most 4194304");
}

}  // namespace
}  // namespace mallocgame::replay
