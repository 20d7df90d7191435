// OffsetSearch on items that can be drawn, and against trying all offsets.
#include "mallocgame/plan/offset_search.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <vector>

#include "mallocgame/base/rng.h"
#include "tests/catch.h"

namespace mallocgame {
namespace {

// `heights` at each moment from `begin` on.
OffsetItem Item(int32_t begin, std::vector<int64_t> heights, int64_t capacity) {
  OffsetItem item;
  item.begin = begin;
  item.end = begin + static_cast<int32_t>(heights.size());
  item.height = heights.back();
  item.max_offset = capacity - item.height;
  item.width = static_cast<double>(heights.size());
  item.heights = std::move(heights);
  return item;
}

bool Meet(const OffsetItem& a, const OffsetItem& b) { return a.begin < b.end && b.begin < a.end; }

OffsetInstance Instance(std::vector<OffsetItem> items, int64_t capacity) {
  OffsetInstance instance;
  instance.capacity = capacity;
  instance.neighbors.resize(items.size());
  for (size_t i = 0; i < items.size(); ++i) {
    instance.moments = std::max(instance.moments, items[i].end);
    for (size_t j = 0; j < items.size(); ++j) {
      if (i != j && Meet(items[i], items[j])) {
        instance.neighbors[i].push_back({static_cast<int32_t>(j), items[i].HeightUnder(items[j])});
      }
    }
  }
  instance.items = std::move(items);
  return instance;
}

struct Answer {
  OffsetStatus status;
  std::vector<int64_t> offsets;
};

Answer Search(const OffsetInstance& instance, const OffsetLimits& limits = {.seconds = 0}) {
  OffsetBudget budget(limits);
  OffsetSearch search(instance, budget);
  std::vector<int32_t> ids(instance.items.size());
  std::iota(ids.begin(), ids.end(), 0);
  Answer answer{OffsetStatus::kStopped, std::vector<int64_t>(ids.size(), -1)};
  answer.status = search.Solve(ids, answer.offsets);
  return answer;
}

// Whether the offsets of the first `count` items are within bounds and in nobody's way.
bool Fits(const OffsetInstance& instance, const std::vector<int64_t>& offsets, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const OffsetItem& a = instance.items[i];
    if (offsets[i] < a.min_offset || offsets[i] > a.max_offset) return false;
    for (size_t j = 0; j < i; ++j) {
      const OffsetItem& b = instance.items[j];
      for (int32_t m = std::max(a.begin, b.begin); m < std::min(a.end, b.end); ++m) {
        if (offsets[i] < offsets[j] + b.heights[m - b.begin] &&
            offsets[j] < offsets[i] + a.heights[m - a.begin])
          return false;
      }
    }
  }
  return true;
}

TEST_CASE("what lies above must clear the height where the two meet") {
  const OffsetItem stepped = Item(0, {1, 1, 3}, 9);
  CHECK(stepped.HeightUnder(Item(0, {2}, 9)) == 1);
  CHECK(stepped.HeightUnder(Item(0, {2, 2, 2}, 9)) == 3);
  CHECK(stepped.HeightUnder(Item(2, {2, 2}, 9)) == 3);
}

//   moment  0  1  2  3
//   a       2  2  2  2       4 moments of 2
//   b          5             a moment of 5
//   c             3  3       2 moments of 3
TEST_CASE("items are ranked by the criterion that is named first, then by their index") {
  const OffsetInstance instance =
      Instance({Item(0, {2, 2, 2, 2}, 9), Item(1, {5}, 9), Item(2, {3, 3}, 9)}, 9);
  OffsetBudget budget({.seconds = 0});
  OffsetSearch search(instance, budget);
  const auto sorted = [&](OffsetCriterion first, OffsetCriterion second) {
    std::vector<int32_t> ids = {2, 1, 0};
    search.Sort({first, second, OffsetCriterion::kFailures}, ids);
    return ids;
  };
  using enum OffsetCriterion;
  CHECK(sorted(kWidth, kArea) == std::vector<int32_t>{0, 2, 1});
  CHECK(sorted(kArea, kWidth) == std::vector<int32_t>{0, 2, 1});  // 8, 6 and 5
  // At the fullest moment of a and b lie 7, of c 5.
  CHECK(sorted(kLoad, kWidth) == std::vector<int32_t>{0, 1, 2});
  CHECK(sorted(kFailures, kFailures) == std::vector<int32_t>{0, 1, 2});  // no dead ends yet
}

//   moment  0  1  2
//           a  a  d        2 high each
//           c  b  b
TEST_CASE("the search finds a perfect packing, and proves that one unit less is too little") {
  const auto items = [](int64_t capacity) {
    return std::vector<OffsetItem>{Item(0, {2, 2}, capacity), Item(1, {2, 2}, capacity),
                                   Item(0, {2}, capacity), Item(2, {2}, capacity)};
  };
  const OffsetInstance enough = Instance(items(4), 4);
  const Answer found = Search(enough);
  CHECK(found.status == OffsetStatus::kFeasible);
  CHECK(Fits(enough, found.offsets, 4));
  const Answer refused = Search(Instance(items(3), 3));
  CHECK(refused.status == OffsetStatus::kInfeasible);
  CHECK(refused.offsets == std::vector<int64_t>(4, -1));  // left as they were
}

TEST_CASE("an item that grows leaves its later units to others before") {
  // a takes 1 unit at moment 0 and 3 at moment 1; b, 2 units at moment 0, lies above the one.
  const OffsetInstance instance = Instance({Item(0, {1, 3}, 3), Item(0, {2}, 3)}, 3);
  const Answer answer = Search(instance);
  REQUIRE(answer.status == OffsetStatus::kFeasible);
  CHECK(answer.offsets == std::vector<int64_t>{0, 1});
}

TEST_CASE("offsets stay within an item's own bounds") {
  OffsetItem high = Item(0, {2}, 6), low = Item(0, {2}, 6);
  high.min_offset = 3;
  const OffsetInstance instance = Instance({high, low}, 6);
  const Answer answer = Search(instance);
  REQUIRE(answer.status == OffsetStatus::kFeasible);
  CHECK(Fits(instance, answer.offsets, 2));
  low.min_offset = 3;  // from 3 to 6 there is room for one
  CHECK(Search(Instance({high, low}, 6)).status == OffsetStatus::kInfeasible);
}

TEST_CASE("limits end the search") {
  // Nine items of three moments each with too little room: more than one node is needed.
  std::vector<OffsetItem> items;
  for (int32_t i = 0; i < 9; ++i) items.push_back(Item(i, {2, 2, 3}, 8));
  const OffsetInstance instance = Instance(items, 8);
  CHECK(Search(instance, {.seconds = 0, .nodes = 1}).status == OffsetStatus::kStopped);
  const std::atomic<bool> cancelled = true;
  CHECK(Search(instance, {.seconds = 0, .cancel = &cancelled}).status == OffsetStatus::kStopped);
  OffsetBudget budget({.seconds = 0, .nodes = 2});
  CHECK_FALSE(budget.Exhausted());
  budget.nodes = 2;
  CHECK(budget.Exhausted());
  budget.nodes = 0;
  CHECK(budget.Exhausted());  // and stays so
}

// Whether there are offsets, by trying all.
bool Exists(const OffsetInstance& instance, std::vector<int64_t>& offsets, size_t next) {
  if (next == instance.items.size()) return true;
  for (int64_t offset = 0; offset <= instance.capacity; ++offset) {
    offsets[next] = offset;
    if (Fits(instance, offsets, next + 1) && Exists(instance, offsets, next + 1)) return true;
  }
  return false;
}

TEST_CASE("trying all offsets says the same of thousands of tiny instances") {
  Rng rng(1);
  int feasible = 0, infeasible = 0;
  for (int round = 0; round < 4000; ++round) {
    const int64_t capacity = 3 + rng.Below(4);
    std::vector<OffsetItem> items;
    for (uint32_t n = 2 + rng.Below(5); n > 0; --n) {
      const auto begin = static_cast<int32_t>(rng.Below(4));
      std::vector<int64_t> heights(1 + rng.Below(3), 1 + rng.Below(2));
      for (size_t m = 1; m < heights.size(); ++m)
        heights[m] = heights[m - 1] + (rng.Below(4) == 0 ? 1 : 0);
      items.push_back(Item(begin, heights, capacity));
      if (rng.Below(5) == 0) items.back().min_offset = 1;
    }
    const OffsetInstance instance = Instance(items, capacity);
    std::vector<int64_t> offsets(items.size());
    const bool exists = Exists(instance, offsets, 0);
    const Answer answer = Search(instance);
    REQUIRE(answer.status == (exists ? OffsetStatus::kFeasible : OffsetStatus::kInfeasible));
    if (exists) REQUIRE(Fits(instance, answer.offsets, items.size()));
    ++(exists ? feasible : infeasible);
  }
  CHECK(feasible > 500);
  CHECK(infeasible > 500);
}

}  // namespace
}  // namespace mallocgame
