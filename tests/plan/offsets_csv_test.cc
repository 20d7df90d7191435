// MiniMalloc's CSV: it comes back as it was, and what is said of malformed text.
#include "mallocgame/plan/offsets_csv.h"

#include <string>
#include <utility>
#include <vector>

#include "tests/catch.h"

namespace mallocgame {
namespace {

TEST_CASE("CSV comes back as it was written") {
  const std::string text = "id,lower,upper,size\nb1,0,3,4\nx y,-3,9,1099511627776\n";
  const auto table = OffsetsFromCsv(text);
  REQUIRE(table.ok());
  CHECK(table->ids == std::vector<std::string>{"b1", "x y"});
  CHECK(table->intervals[1].begin == -3);
  CHECK(table->intervals[1].size == int64_t{1} << 40);
  CHECK(OffsetsToCsv(*table) == text);
  OffsetTable solved = *table;
  solved.offsets = {0, 4};
  const std::string with_offsets = OffsetsToCsv(solved);
  CHECK(with_offsets == "id,lower,upper,size,offset\nb1,0,3,4,0\nx y,-3,9,1099511627776,4\n");
  CHECK(OffsetsFromCsv(with_offsets)->offsets == solved.offsets);
  CHECK(OffsetsFromCsv("id,lower,upper,size\r\nb1,0,3,4\r\nb2,0,3,4")->ids.size() == 2);
  CHECK(OffsetsFromCsv("id,lower,upper,size")->ids.empty());
}

TEST_CASE("malformed CSV is refused, and the message names the line") {
  const std::string header = "id,lower,upper,size\n", solution = "id,lower,upper,size,offset\n";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "line 1"},
      {"\n", "line 1"},
      {"id,lower,upper\n", "line 1"},
      {"id;lower;upper;size\n", "line 1"},
      {std::string("id\0,lower,upper,size\n", 21), "line 1"},
      {header + "a,0,1\n", "line 2: found 3 fields"},
      {header + "a,0,1,2,3\n", "line 2: found more fields"},
      {header + "a,0,1,2\n\nb,0,1,2\n", "line 3: found 1 fields"},
      {header + "a,0,1,\n", "line 2: size: found ''"},
      {header + "a,0,1, 2\n", "line 2: size: found ' 2'"},
      {header + "a,0,1,+2\n", "line 2: size"},
      {header + "a,0,1,2.0\n", "line 2: size"},
      {header + "a,0,1,0x2\n", "line 2: size"},
      {header + "a,0,1,9223372036854775808\n", "line 2: size"},
      {header + "a,0,1,0\n", "line 2: size: found 0"},
      {header + "a,0,1,-5\n", "line 2: size: found -5"},
      {header + "a,1,1,5\n", "line 2: lower 1 is not below upper 1"},
      {header + "a,x,1,5\n", "line 2: lower"},
      {header + ",0,1,5\n", "line 2: id"},
      {header + "\"a,0,1,5\n", "line 2: id"},
      {header + "a,0,1,5\nb,0,1,5\na,0,1,5\n", "line 4: id 'a' stands there twice"},
      {solution + "a,0,1,5\n", "line 2: found 4 fields"},
      {solution + "a,0,1,5,-1\n", "line 2: offset"},
      {header + std::string(1 << 20, ','), "line 2"},
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
