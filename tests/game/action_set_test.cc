// A set of actions against std::set.
#include "mallocgame/game/action_set.h"

#include <bit>
#include <set>
#include <vector>

#include "mallocgame/base/rng.h"
#include "tests/catch.h"

namespace mallocgame {
namespace {

TEST_CASE("a set of actions has what was added, in rising order") {
  Rng rng(1);
  for (int round = 0; round < 200; ++round) {
    ActionSet set;
    std::set<int> expected;
    for (uint32_t adds = rng.Below(40); adds > 0; --adds) {
      const auto first = static_cast<int>(rng.Below(ActionSet::kMaxActions));
      auto bits = static_cast<uint8_t>(rng.Below(256));
      while (first + std::bit_width(bits) > ActionSet::kMaxActions) bits /= 2;
      set.Add(first, bits);
      for (int bit = 0; bit < 8; ++bit) {
        if ((bits >> bit & 1) != 0) expected.insert(first + bit);
      }
      const auto removed = static_cast<int>(rng.Below(ActionSet::kMaxActions));
      set.Remove(removed);
      expected.erase(removed);
    }
    REQUIRE(std::vector<int>(set.begin(), set.end()) ==
            std::vector<int>(expected.begin(), expected.end()));
    REQUIRE(set.size() == static_cast<int>(expected.size()));
    REQUIRE(set.empty() == expected.empty());
    for (int action = 0; action < ActionSet::kMaxActions; ++action)
      REQUIRE(set.Has(action) == expected.contains(action));
    uint32_t before = 0;
    for (const int action : expected) REQUIRE(set[before++] == action);
  }
}

TEST_CASE("a set of actions can be given by its bits") {
  const ActionSet set(0b1010);
  REQUIRE(std::vector<int>(set.begin(), set.end()) == std::vector<int>{1, 3});
  REQUIRE(set != ActionSet());
}

}  // namespace
}  // namespace mallocgame
