// Numbers, strings and lists as bytes: they come back in order, and bytes that end early are
// refused.
#include "agents/training/bytes.h"

#include "tests/catch.h"

namespace mallocgame::training {
namespace {

TEST_CASE("what was written is read back in order, and nothing is left") {
  std::string bytes;
  WriteBytes(int32_t{-7}, bytes);
  WriteBytes(absl::string_view("two\0words", 9), bytes);
  WriteBytes(std::vector<double>{0.1, -2e300}, bytes);
  WriteBytes(std::vector<uint8_t>{}, bytes);
  absl::string_view in = bytes;
  int32_t number = 0;
  std::string text;
  std::vector<double> list;
  std::vector<uint8_t> empty = {1};
  REQUIRE(ReadBytes(in, number).ok());
  REQUIRE(ReadBytes(in, text).ok());
  REQUIRE(ReadBytes(in, list).ok());
  REQUIRE(ReadBytes(in, empty).ok());
  REQUIRE(number == -7);
  REQUIRE(text == std::string("two\0words", 9));
  REQUIRE(list == std::vector<double>{0.1, -2e300});
  REQUIRE(empty.empty());
  REQUIRE(in.empty());
}

TEST_CASE("numbers are little-endian, and strings are preceded by their size") {
  std::string bytes;
  WriteBytes(uint16_t{0x0102}, bytes);
  WriteBytes(absl::string_view("ab"), bytes);
  REQUIRE(bytes == std::string("\x02\x01\x02\0\0\0\0\0\0\0ab", 12));
}

TEST_CASE("bytes that end early, or a size that cannot be, are refused") {
  std::string bytes;
  WriteBytes(std::vector<float>{1, 2, 3}, bytes);
  for (size_t size = 0; size < bytes.size(); ++size) {
    absl::string_view in = absl::string_view(bytes).substr(0, size);
    std::vector<float> list;
    REQUIRE(ReadBytes(in, list) == CutShort());
  }
  absl::string_view in = bytes;
  std::vector<double> wider;  // 12 bytes are no whole number of these
  REQUIRE(ReadBytes(in, wider) == CutShort());
  std::string huge;
  WriteBytes(~uint64_t{0}, huge);
  in = huge;
  std::string text;
  REQUIRE(ReadBytes(in, text) == CutShort());
}

}  // namespace
}  // namespace mallocgame::training
