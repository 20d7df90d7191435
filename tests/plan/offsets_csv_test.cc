// MiniMalloc's CSV: its columns, what is said of malformed text, and that it comes back as it was.
#include "mallocgame/plan/offsets_csv.h"

#include <string>
#include <utility>
#include <vector>

#include "tests/catch.h"

namespace mallocgame {
namespace {

OffsetTable Read(const std::string& text) {
  const auto table = OffsetsFromCsv(text);
  INFO(table.status());
  REQUIRE(table.ok());
  return *table;
}

TEST_CASE("CSV comes back as it was written") {
  const std::string text = "id,lower,upper,size\nb1,0,3,4\nx y,-3,9,1099511627776\n";
  const OffsetTable table = Read(text);
  CHECK(table.ids == std::vector<std::string>{"b1", "x y"});
  CHECK(table.intervals[1].begin == -3);
  CHECK(table.intervals[1].size == int64_t{1} << 40);
  CHECK(OffsetsToCsv(table) == text);
  const std::string with_offsets = OffsetsToCsv(table, {0, 4});
  CHECK(with_offsets == "id,lower,upper,size,offset\nb1,0,3,4,0\nx y,-3,9,1099511627776,4\n");
  CHECK(Read(with_offsets).intervals[1].given == 4);
  CHECK(OffsetsToCsv(Read(with_offsets)) == with_offsets);
  CHECK(Read("id,lower,upper,size").ids.empty());
}

TEST_CASE("columns are found by their names, and others say nothing") {
  const OffsetTable table = Read(
      "size,note,gaps,offset,upper,alignment,id,hint,lower\n"
      "18,first,7-8 9-11@2:13,,12,2,Big,-1,6\n"
      "15,,,40,10,1,Little,x,5\n");
  OffsetInterval big = {6, 12, 18}, little = {5, 10, 15};
  big.alignment = 2;
  big.gaps = {{7, 8}, {9, 11, 2, 13}};
  little.given = 40;
  CHECK(table.ids == std::vector<std::string>{"Big", "Little"});
  CHECK(table.intervals == std::vector<OffsetInterval>{big, little});
  CHECK(table.lines == std::vector<size_t>{2, 3});
  CHECK(RowNames(table)[1] == "row 'Little' (line 3)");
  CHECK(OffsetsToCsv(table) ==
        "id,lower,upper,size,alignment,gaps,offset\n"
        "Big,6,12,18,2,7-8 9-11@2:13,\nLittle,5,10,15,1,,40\n");
  CHECK(OffsetsToCsv(table, {20, 40}) ==
        "id,lower,upper,size,alignment,gaps,offset\n"
        "Big,6,12,18,2,7-8 9-11@2:13,20\nLittle,5,10,15,1,,40\n");
}

TEST_CASE("older names are read, and with `end` all ends are inclusive") {
  const OffsetTable table =
      Read("buffer,begin,end,size,gaps\nw,0,4,2,1-1 3-3@0:1\nx,-4,-4,2,-4--4\ny,4,3,2,\n");
  OffsetInterval w = {0, 5, 2}, x = {-4, -3, 2}, y = {4, 4, 2};  // the last is of no length
  w.gaps = {{1, 2}, {3, 4, 0, 1}};
  x.gaps = {{-4, -3}};
  CHECK(table.intervals == std::vector<OffsetInterval>{w, x, y});
  CHECK(OffsetsToCsv(table) ==
        "id,lower,upper,size,gaps\nw,0,5,2,1-2 3-4@0:1\nx,-4,-3,2,-4--3\ny,4,4,2,\n");
  // It is `end` that makes the difference, not `begin` or `start`.
  CHECK(Read("buffer_id,start,upper,size\na,0,4,2\n").intervals[0].end == 4);
  CHECK(Read("id,lower,end,size\na,4,4,2\n").intervals[0].end == 5);
}

TEST_CASE("what spreadsheets add is passed over") {
  const std::string plain = "id,lower,upper,size,gaps\nb1,0,3,4,\nb 2,0,3,4,1-2\n";
  const OffsetTable table = Read(
      "\xEF\xBB\xBF\r\n id ,lower,\tupper,size,gaps \r\n\r\n  b1, 0, +3 ,4 , \r\n,,,,\r\n   \n"
      "b 2,0,3,4,  1-2 \r\n\n");
  CHECK(table.lines == std::vector<size_t>{4, 7});
  CHECK(OffsetsToCsv(table) == plain);
  // The mark may come after what else is passed over.
  CHECK(Read("\n \xEF\xBB\xBFid,lower,upper,size\n").ids.empty());
  CHECK(Read("id,lower,upper,size\r\nb1,0,3,4\r\nb2,0,3,4").ids.size() == 2);
}

TEST_CASE("a size of zero, empty optional fields, and quotes as part of an id") {
  const OffsetTable table =
      Read("id,lower,upper,size,alignment,offset\n\"a\",0,3,0,,\nb,0,3,1,8,-1\n");
  CHECK(table.ids[0] == "\"a\"");
  CHECK(table.intervals[0] == OffsetInterval{0, 3, 0});
  CHECK(table.intervals[1].alignment == 8);
  CHECK_FALSE(table.intervals[1].given.has_value());
  CHECK(OffsetsToCsv(table) == "id,lower,upper,size,alignment\n\"a\",0,3,0,1\nb,0,3,1,8\n");
}

TEST_CASE("what is written has the columns that it needs") {
  OffsetTable table;
  table.ids = {"a", "b"};
  table.intervals = {{0, 3, 4}, {1, 4, 4}};
  CHECK(OffsetsToCsv(table) == "id,lower,upper,size\na,0,3,4\nb,1,4,4\n");
  CHECK(RowNames(table)[0] == "interval 'a'");
  table.intervals[1].alignment = 2;
  table.intervals[0].gaps = {{1, 2}};
  CHECK(OffsetsToCsv(table, {0, 4}) ==
        "id,lower,upper,size,alignment,gaps,offset\na,0,3,4,1,1-2,0\nb,1,4,4,2,,4\n");
}

TEST_CASE("ids that would not come back are refused") {
  CHECK(CheckIds({"a", "b c", "\""}).ok());
  for (const char* id : {"", " a", "a ", "a,b", "a\nb"}) {
    const absl::Status status = CheckIds({id});
    CHECK(status.code() == absl::StatusCode::kInvalidArgument);
  }
  CHECK_THAT(std::string(CheckIds({"a", "b", "a"}).message()), Catch::Contains("'a' stands there"));
}

TEST_CASE("malformed CSV is refused, and the message names the line") {
  const std::string header = "id,lower,upper,size\n", solution = "id,lower,upper,size,offset\n",
                    gaps = "id,lower,upper,size,gaps\n", old = "id,begin,end,size,gaps\n";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "line 1: found no header"},
      {"\n \r\n,,,\n", "line 1: found no header"},
      {"id,lower,upper\n", "line 1: found 'id,lower,upper', which lacks the column 'size'"},
      {"id;lower;upper;size\n", "line 1"},
      {"ID,lower,upper,size\n", "lacks the column 'id'"},
      {"\"id\",lower,upper,size\n", "lacks the column 'id'"},
      {std::string("id\0,lower,upper,size\n", 21), "line 1"},
      {"\n\nid,lower,upper\n", "line 3"},
      {"id,lower,upper,size,size\n", "line 1: the columns 'size' and 'size' are two names"},
      {"id,lower,start,upper,size\n", "line 1: the columns 'lower' and 'start' are two names"},
      {"id,lower,end,upper,size\n", "line 1: the columns 'end' and 'upper' are two names"},
      {header + "a,0,1\n", "line 2: found 3 fields"},
      {header + "a,0,1,2,3\n", "line 2: found more fields"},
      {header + "\"a,b\",0,1,2\n", "line 2: found more fields"},
      {header + "a,0,1,2\n\nb,0,1\n", "line 4: found 3 fields"},
      {header + "a,0,1,\n", "line 2: size: found ''"},
      {header + "a,0,1,2 2\n", "line 2: size: found '2 2'"},
      {header + "a,0,1,+-2\n", "line 2: size"},
      {header + "a,0,1,+\n", "line 2: size"},
      {header + "a,0,1,2.0\n", "line 2: size"},
      {header + "a,0,1,0x2\n", "line 2: size"},
      {header + "a,0,1,\"2\"\n", "line 2: size"},
      {header + "a,0,1,9223372036854775808\n", "line 2: size"},
      {header + "a,0,1,-5\n", "line 2: size: found '-5'"},
      {header + "a,1,0,5\n", "line 2: lower 1 is above upper 0"},
      {header + "a,x,1,5\n", "line 2: lower"},
      {header + " ,0,1,5\n", "line 2: id"},
      {header + "a,0,1,5\nb,0,1,5\n a,0,1,5\n", "line 4: id 'a' stands there twice"},
      {"buffer,begin,end,size\na,5,3,1\n", "line 2: begin 5 is above end 3"},
      {"id,lower,end,size\na,0,9223372036854775807,5\n", "line 2: end"},
      {"id,lower,upper,size,alignment\na,0,1,5,0\n", "line 2: alignment: found '0'"},
      {solution + "a,0,1,5\n", "line 2: found 4 fields"},
      {solution + "a,0,1,5,-2\n", "line 2: offset: found '-2'"},
      {solution + "a,0,1,5,x\n", "line 2: offset"},
      {gaps + "a,0,9,5,3\n", "line 2: gaps: found '3'"},
      {gaps + "a,0,9,5,3-\n", "line 2: gaps"},
      {gaps + "a,0,9,5,3-4-5\n", "line 2: gaps"},
      {gaps + "a,0,9,5,x-4\n", "line 2: gaps"},
      {gaps + "a,0,9,5,3-4@1\n", "line 2: gaps"},
      {gaps + "a,0,9,5,3-4@1:\n", "line 2: gaps"},
      {gaps + "a,0,9,5,3-4@1:2:3\n", "line 2: gaps"},
      {gaps + "a,0,9,5,3-4 @1:2\n", "line 2: gaps"},
      {gaps + "a,0,9,5,3-2\n", "line 2: gaps: found a gap over the times [3, 2)"},
      {gaps + "a,0,9,5,3-4@2:6\n", "line 2: gaps: found a gap that takes the bytes [2, 6)"},
      {gaps + "a,0,9,5,3-6 5-7\n", "line 2: gaps: found two gaps at the time 5"},
      {old + "a,0,9,5,3-1\n", "line 2: gaps"},
      {old + "a,0,9,5,3-9223372036854775807\n", "line 2: gaps"},
      {header + std::string(1 << 20, 'x'), "line 2"},
      {header + "a" + std::string(1 << 20, ','), "line 2"},
      {header + "a,0,1," + std::string(1 << 20, '9'), "line 2: size"},
  };
  for (const auto& [text, part] : cases) {
    const auto table = OffsetsFromCsv(text);
    INFO(part);
    REQUIRE_FALSE(table.ok());
    CHECK(table.status().code() == absl::StatusCode::kInvalidArgument);
    CHECK_THAT(std::string(table.status().message()), Catch::Contains(part));
    CHECK(table.status().message().size() < 300);
  }
}

}  // namespace
}  // namespace mallocgame
