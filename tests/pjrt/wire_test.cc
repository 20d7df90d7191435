#include "mallocgame/pjrt/wire.h"

#include "tests/catch.h"

namespace mallocgame::pjrt {
namespace {

TEST_CASE("Fields are taken one by one") {
  std::string message;
  AppendNumber(1, ~uint64_t{0}, &message);
  AppendBytes(300, "text", &message);
  AppendDouble(2, 0.5, &message);
  CHECK(message == std::string("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
                               "\xe2\x12\x04text"
                               "\x11\0\0\0\0\0\0\xe0\x3f",
                               27));
  absl::string_view left = message;
  WireField field;
  REQUIRE(TakeField(&left, &field).ok());
  CHECK((field.number == 1 && !field.has_bytes));
  REQUIRE(TakeField(&left, &field).ok());
  CHECK((field.number == 300 && field.has_bytes && field.bytes == "text"));
  REQUIRE(TakeField(&left, &field).ok());
  CHECK((field.number == 2 && !field.has_bytes && left.empty()));
}

TEST_CASE("A damaged field is refused") {
  for (const absl::string_view damaged :
       {absl::string_view(),
        absl::string_view("\x0a\x05"
                          "abc"),
        absl::string_view("\x09"
                          "abc"),
        absl::string_view("\x0b"), absl::string_view("\x08\xff"),
        absl::string_view("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")}) {
    absl::string_view left = damaged;
    WireField field;
    CHECK(TakeField(&left, &field).code() == absl::StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace mallocgame::pjrt
