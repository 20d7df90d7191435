// CheckOffsets on solutions that can be drawn, and against looking at each pair at each time.
#include "mallocgame/plan/offset_check.h"

#include <limits>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "mallocgame/base/rng.h"
#include "tests/catch.h"

namespace mallocgame {
namespace {

OffsetVerdict Judged(const OffsetProblem& problem, const std::vector<int64_t>& offsets) {
  const auto verdict = CheckOffsets(problem, offsets);
  INFO(verdict.status());
  REQUIRE(verdict.ok());
  CHECK(verdict->ok() == verdict->message.empty());
  return *verdict;
}

//   time   0  1  2  3  4  5
//   5         b  b  b
//   3      a  a  a  c  c  c     two high each
//   1      d  d  d  d  d  d
OffsetProblem Drawn() {
  return {{{0, 3, 2}, {1, 4, 2}, {3, 6, 2}, {0, 6, 2}}, 6, 1, {"a", "b", "c", "d"}};
}

TEST_CASE("a solution is valid, and its height is the highest end") {
  const OffsetVerdict verdict = Judged(Drawn(), {2, 4, 2, 0});
  CHECK(verdict.ok());
  CHECK(verdict.height == 6);
  CHECK(Judged({}, {}).height == 0);
}

TEST_CASE("two that share a byte are named, with when and where") {
  const OffsetVerdict verdict = Judged(Drawn(), {2, 4, 3, 0});
  CHECK(verdict.rule == OffsetRule::kOverlap);
  CHECK((verdict.first == 1 && verdict.second == 2));
  CHECK((verdict.begin == 3 && verdict.end == 4));
  CHECK((verdict.low == 4 && verdict.high == 5));
  CHECK(verdict.height == 6);
  CHECK(verdict.message ==
        "b takes the bytes [4, 6), and c the bytes [3, 5) over the same time [3, 4)");
  CHECK(Judged(Drawn(), {2, 4, 2, 3}).first == 0);   // the first in time: a and d
  CHECK(Judged(Drawn(), {2, 2, 2, 2}).second == 3);  // of these the first in order
}

TEST_CASE("offsets out of bounds, unaligned or not as given") {
  OffsetProblem problem = Drawn();
  const int64_t most = std::numeric_limits<int64_t>::max();
  const OffsetVerdict below = Judged(problem, {2, 4, -1, 0});
  CHECK((below.rule == OffsetRule::kBounds && below.first == 2));
  CHECK(Judged(problem, {2, 5, 2, 0}).message ==
        "b: found bytes [5, 7), allowed: an end up to the capacity 6");
  const OffsetVerdict far = Judged(problem, {2, most, 2, 0});
  CHECK((far.rule == OffsetRule::kBounds && far.height == most));
  CHECK(Judged(problem, {-most - 1, 4, 2, 0}).rule == OffsetRule::kBounds);
  problem.intervals[3].min_offset = 1;
  CHECK(Judged(problem, {2, 4, 2, 0}).first == 3);
  problem = Drawn();
  problem.intervals[1].alignment = 3;
  const OffsetVerdict unaligned = Judged(problem, {2, 4, 2, 0});
  CHECK((unaligned.rule == OffsetRule::kAlignment && unaligned.first == 1));
  problem.alignment = 2;  // together a multiple of 6
  CHECK_THAT(Judged(problem, {2, 4, 2, 0}).message, Catch::Contains("a multiple of 6"));
  problem = Drawn();
  problem.intervals[0].given = 3;
  const OffsetVerdict moved = Judged(problem, {2, 4, 2, 0});
  CHECK((moved.rule == OffsetRule::kGiven && moved.first == 0));
  CHECK(std::string(OffsetRuleName(moved.rule)) == "given");
}

TEST_CASE("gaps leave their bytes to others, but for their windows") {
  OffsetProblem problem = {{{0, 10, 2}, {5, 15, 2}}, 2};
  problem.intervals[0].gaps = {{1, 8}};
  problem.intervals[1].gaps = {{8, 14}};
  CHECK(Judged(problem, {0, 0}).ok());
  problem.intervals[1].gaps = {{9, 14}};
  const OffsetVerdict late = Judged(problem, {0, 0});
  CHECK((late.begin == 8 && late.end == 9));
  problem = {{{0, 10, 4}, {2, 4, 2}}, 4};
  problem.intervals[0].gaps = {{2, 4, 2, 4}};
  CHECK(Judged(problem, {0, 0}).ok());
  CHECK(Judged(problem, {0, 1}).low == 2);
  problem.intervals[1].size = 0;  // takes nothing anywhere
  CHECK(Judged(problem, {0, 3}).ok());
}

TEST_CASE("it says what looking at each pair at each time says") {
  Rng rng(3);
  int valid = 0, overlaps = 0;
  for (int round = 0; round < 20000; ++round) {
    OffsetProblem problem;
    problem.capacity = 100;
    std::vector<int64_t> offsets;
    bool shared[8][8] = {};
    bool taken[8][12][16] = {};
    const int count = 2 + static_cast<int>(rng.Below(3));
    for (int i = 0; i < count; ++i) {
      OffsetInterval interval;
      interval.begin = rng.Below(6);
      interval.end = interval.begin + rng.Below(7);
      interval.size = rng.Below(5);
      for (int64_t t = rng.Below(4); t < 11; t += 2 + rng.Below(4)) {
        OffsetGap gap = {t, t + rng.Below(3)};
        if (rng.Below(2) == 0) {
          gap.low = rng.Below(static_cast<uint32_t>(interval.size) + 1);
          gap.high = gap.low + rng.Below(static_cast<uint32_t>(interval.size - gap.low) + 1);
        }
        interval.gaps.push_back(gap);
      }
      offsets.push_back(rng.Below(10));
      for (int64_t t = interval.begin; t < interval.end; ++t) {
        int64_t low = 0, high = interval.size;
        for (const OffsetGap& gap : interval.gaps) {
          if (gap.begin <= t && t < gap.end) std::tie(low, high) = std::pair(gap.low, gap.high);
        }
        for (int64_t b = low; b < high; ++b) taken[i][t][offsets.back() + b] = true;
      }
      problem.intervals.push_back(std::move(interval));
    }
    bool any = false;
    for (int i = 0; i < count; ++i) {
      for (int j = i + 1; j < count; ++j) {
        for (int t = 0; t < 12; ++t) {
          for (int b = 0; b < 16; ++b) shared[i][j] |= taken[i][t][b] && taken[j][t][b];
        }
        any = any || shared[i][j];
      }
    }
    const OffsetVerdict verdict = Judged(problem, offsets);
    REQUIRE(verdict.ok() != any);
    if (any) {
      REQUIRE(verdict.rule == OffsetRule::kOverlap);
      REQUIRE(shared[verdict.first][verdict.second]);
      for (int64_t t = verdict.begin; t < verdict.end; ++t) {
        for (int64_t b = verdict.low; b < verdict.high; ++b)
          REQUIRE((taken[verdict.first][t][b] && taken[verdict.second][t][b]));
      }
      REQUIRE((verdict.begin < verdict.end && verdict.low < verdict.high));
    }
    ++(any ? overlaps : valid);
  }
  CHECK(valid > 2000);
  CHECK(overlaps > 2000);
}

TEST_CASE("another number of offsets, or a malformed problem, is refused") {
  const auto few = CheckOffsets(Drawn(), {0, 1});
  REQUIRE_FALSE(few.ok());
  CHECK_THAT(std::string(few.status().message()), Catch::Contains("found 2, allowed: 4"));
  CHECK_FALSE(CheckOffsets({{{3, 2, 1}}, 4}, {0}).ok());
}

}  // namespace
}  // namespace mallocgame
