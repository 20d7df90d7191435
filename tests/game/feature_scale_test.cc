// The scales of observed numbers, by hand.
#include "mallocgame/game/feature_scale.h"

#include <cstdint>

#include "tests/catch.h"

namespace mallocgame {
namespace {

TEST_CASE("the logarithm is exact at powers of two and linear between them") {
  REQUIRE(scale::Log2(-5) == 0.0F);
  REQUIRE(scale::Log2(0) == 0.0F);
  REQUIRE(scale::Log2(1) == 0.0F);
  REQUIRE(scale::Log2(2) == 1.0F);
  REQUIRE(scale::Log2(3) == 1.5F);
  REQUIRE(scale::Log2(4) == 2.0F);
  REQUIRE(scale::Log2(7) == 2.75F);
  REQUIRE(scale::Log2(int64_t{1} << 62) == 62.0F);
}

TEST_CASE("ticks and times keep their sign and end at 1") {
  REQUIRE(scale::Ticks(0) == 0.0F);
  REQUIRE(scale::Ticks(3) == 2.0F / 16);  // log2(3 + 1) / 16
  REQUIRE(scale::Ticks(-3) == -2.0F / 16);
  REQUIRE(scale::Ticks((1 << 16) - 1) == 1.0F);
  REQUIRE(scale::Ticks(-(1 << 20)) == -1.0F);
  REQUIRE(scale::Time(999) == 0.0F);        // less than a nanosecond
  REQUIRE(scale::Time(1000) == 1.0F / 32);  // log2(1 + 1) / 32
  REQUIRE(scale::Time(-3000) == -2.0F / 32);
  REQUIRE(scale::Time(int64_t{1} << 60) == 1.0F);
}

TEST_CASE("bytes count in KiB, counts as they are") {
  REQUIRE(scale::Bytes(1023) == 0.0F);
  REQUIRE(scale::Bytes(1024) == 1.0F / 24);
  REQUIRE(scale::Bytes(int64_t{3} << 10) == 2.0F / 24);
  REQUIRE(scale::Bytes(int64_t{1} << 40) == 1.0F);
  REQUIRE(scale::Count(1) == 0.0F);
  REQUIRE(scale::Count(4) == 2.0F / 16);
  REQUIRE(scale::Count(1 << 20) == 1.0F);
}

TEST_CASE("a ratio is a half where a number is as large as its unit") {
  REQUIRE(scale::Ratio(5, 5) == 0.5F);
  REQUIRE(scale::Ratio(15, 5) == 0.75F);
  REQUIRE(scale::Ratio(-15, 5) == -0.75F);
  REQUIRE(scale::Ratio(3, 0) == 0.75F);  // a unit is at least 1
  REQUIRE(scale::Ratio(0, 0) == 0.0F);
}

TEST_CASE("small shares of space and time are told apart") {
  REQUIRE(scale::Space(0) == 0.0F);
  REQUIRE(scale::Space(0x1p-32) == 1.0F / 32);
  REQUIRE(scale::Space(3 * 0x1p-32) == 2.0F / 32);
  REQUIRE(scale::Space(1) == 1.0F);
}

TEST_CASE("a profit has the sign of what is left of the saving behind the rent") {
  REQUIRE(scale::Profit(0, 0) == 0.0F);
  REQUIRE(scale::Profit(5, 0) == 1.0F);
  REQUIRE(scale::Profit(3, 1) == 0.5F);
  REQUIRE(scale::Profit(1, 3) == -0.5F);
  REQUIRE(scale::Profit(-2, 0) == -1.0F);
  REQUIRE(scale::Price(1e300) == 1.0F);
}

TEST_CASE("a share lies between -1 and 1, and of nothing it is 0") {
  REQUIRE(scale::Share(1, 4) == 0.25F);
  REQUIRE(scale::Share(5, 4) == 1.0F);
  REQUIRE(scale::Share(-5, 4) == -1.0F);
  REQUIRE(scale::Share(1, 0) == 0.0F);
}

}  // namespace
}  // namespace mallocgame
