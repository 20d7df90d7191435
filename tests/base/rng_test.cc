// The generator's stream, and its distributions.
#include "mallocgame/base/rng.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "tests/catch.h"

namespace mallocgame {
namespace {

TEST_CASE("the stream of a seed is the same on every machine") {
  // Worked out by another implementation of xoshiro256** and SplitMix64.
  Rng first(0);
  CHECK(first.Next() == 0x422EA740D0977210u);
  CHECK(first.Next() == 0xE062B061B42E2928u);
  CHECK(first.Next() == 0x5A071FC5930841B6u);
  CHECK(Rng(1).Next() == 0x3752BDAF106AFAECu);
  CHECK(Rng(1, 2).Next() == 0xE113D85895FDDBA6u);
}

TEST_CASE("a copy goes on as the original does") {
  Rng rng(3);
  rng.Next();
  Rng copy = rng;
  CHECK(copy.Next() == rng.Next());
}

TEST_CASE("numbers below a count are all met, about as often as each other") {
  Rng rng(4);
  std::array<int, 6> met = {};
  for (int i = 0; i < 60'000; ++i) ++met[rng.Below(6)];
  // 10,000 each; the standard deviation is 91.
  for (const int count : met) CHECK(std::abs(count - 10'000) < 500);
  CHECK(rng.Below(1) == 0);
  // 3 * 2^30 doesn't divide 2^32: without rejection every third number would be drawn twice as
  // often as the others.
  int thirds = 0;
  for (int i = 0; i < 30'000; ++i) thirds += rng.Below(uint64_t{3} << 30) % 3 == 0;
  CHECK(std::abs(thirds - 10'000) < 500);
}

TEST_CASE("uniform numbers lie in [0, 1), half of them below a half") {
  Rng rng(5);
  double least = 1, most = 0;
  int low = 0;
  for (int i = 0; i < 10'000; ++i) {
    const double x = rng.Uniform();
    least = std::min(least, x);
    most = std::max(most, x);
    low += x < 0.5;
  }
  CHECK(least >= 0);
  CHECK(least < 0.01);
  CHECK(most < 1);
  CHECK(most > 0.99);
  CHECK(std::abs(low - 5000) < 300);
}

TEST_CASE("picking gives an element of the container itself") {
  Rng rng(6);
  std::vector<int> items = {0, 0, 0};
  for (int i = 0; i < 300; ++i) ++rng.Pick(items);
  for (const int count : items) CHECK(count > 50);
}

}  // namespace
}  // namespace mallocgame
