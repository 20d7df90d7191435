// SolveOffsets and MinimizeHeight against brute force, on problems cut from a full rectangle, and
// on input they must refuse.
#include "mallocgame/plan/offsets.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "mallocgame/base/rng.h"
#include "mallocgame/plan/offset_check.h"
#include "tests/catch.h"

namespace mallocgame {
namespace {

struct Bytes {
  int64_t low = 0, high = 0;
};

Bytes TakenAt(const OffsetInterval& interval, int64_t time) {
  if (time < interval.begin || time >= interval.end) return {};
  for (const OffsetGap& gap : interval.gaps) {
    if (gap.begin <= time && time < gap.end) return {gap.low, gap.high};
  }
  int64_t size = interval.steps.empty() ? interval.size : 0;
  for (const OffsetStep& step : interval.steps) {
    if (step.begin <= time) size = step.size;
  }
  return {0, size};
}

// Whether two intervals share a byte. It looks at each time at which one of them changes, and knows
// nothing of the search's moments and neighbors.
bool Conflict(const OffsetInterval& a, int64_t a_offset, const OffsetInterval& b,
              int64_t b_offset) {
  std::vector<int64_t> times = {a.begin, b.begin};
  for (const OffsetInterval* interval : {&a, &b}) {
    for (const OffsetStep& step : interval->steps) times.push_back(step.begin);
    for (const OffsetGap& gap : interval->gaps) {
      times.push_back(gap.begin);
      times.push_back(gap.end);
    }
  }
  return std::any_of(times.begin(), times.end(), [&](int64_t time) {
    const Bytes x = TakenAt(a, time), y = TakenAt(b, time);
    return x.low < x.high && y.low < y.high && a_offset + x.low < b_offset + y.high &&
           b_offset + y.low < a_offset + x.high;
  });
}

bool Allowed(const OffsetProblem& problem, const OffsetInterval& interval, int64_t offset) {
  return offset >= interval.min_offset && offset % problem.alignment == 0 &&
         offset % interval.alignment == 0 && interval.given.value_or(offset) == offset;
}

bool NoConflicts(const OffsetProblem& problem, const std::vector<int64_t>& offsets) {
  for (size_t i = 0; i < offsets.size(); ++i) {
    const OffsetInterval& interval = problem.intervals[i];
    if (!Allowed(problem, interval, offsets[i])) return false;
    for (size_t j = 0; j < i; ++j) {
      if (Conflict(interval, offsets[i], problem.intervals[j], offsets[j])) return false;
    }
  }
  return true;
}

int64_t HeightOf(const OffsetProblem& problem, const std::vector<int64_t>& offsets) {
  int64_t height = 0;
  for (size_t i = 0; i < offsets.size(); ++i)
    height = std::max(height, offsets[i] + problem.intervals[i].size);
  return height;
}

// Checks what must be true of every answer.
void CheckAnswer(const OffsetProblem& problem, const OffsetResult& result) {
  REQUIRE(result.offsets.size() == problem.intervals.size());
  REQUIRE(NoConflicts(problem, result.offsets));
  REQUIRE(result.height == HeightOf(problem, result.offsets));
  REQUIRE((result.status == OffsetStatus::kFeasible) == (result.height <= problem.capacity));
  REQUIRE(result.bound <= result.height);
  REQUIRE((result.status == OffsetStatus::kInfeasible) == (result.bound > problem.capacity));
  const auto verdict = CheckOffsets(problem, result.offsets);
  REQUIRE(verdict.ok());
  REQUIRE(verdict->height == result.height);
  REQUIRE((verdict->ok() ||
           (verdict->rule == OffsetRule::kBounds && result.status != OffsetStatus::kFeasible)));
}

OffsetResult Solved(const OffsetProblem& problem, const OffsetLimits& limits = {.seconds = 0}) {
  const auto result = SolveOffsets(problem, limits);
  INFO(result.status());
  REQUIRE(result.ok());
  CheckAnswer(problem, *result);
  return *result;
}

bool FitsByBruteForce(const OffsetProblem& problem, std::vector<int64_t>& offsets) {
  const size_t i = offsets.size();
  if (i == problem.intervals.size()) return true;
  const OffsetInterval& interval = problem.intervals[i];
  for (int64_t offset = 0; offset + interval.size <= problem.capacity;
       offset += problem.alignment) {
    bool free = Allowed(problem, interval, offset);
    for (size_t j = 0; j < i && free; ++j)
      free = !Conflict(interval, offset, problem.intervals[j], offsets[j]);
    if (!free) continue;
    offsets.push_back(offset);
    if (FitsByBruteForce(problem, offsets)) return true;
    offsets.pop_back();
  }
  return false;
}

OffsetProblem TinyProblem(Rng& rng) {
  OffsetProblem problem;
  problem.alignment = rng.Below(3) == 0 ? 1 + rng.Below(4) : 1;
  problem.capacity = (5 + rng.Below(6)) * (problem.alignment > 1 ? 2 : 1);
  const int64_t scale = problem.alignment > 1 ? 2 : 1;
  const bool floors = rng.Below(3) == 0, steps = rng.Below(3) == 0;
  for (uint32_t count = 4 + rng.Below(5); count > 0; --count) {
    OffsetInterval interval;
    interval.begin = static_cast<int64_t>(rng.Below(7)) - 3;
    interval.end = interval.begin + 1 + rng.Below(4);
    interval.size = 1 + rng.Below(4 * scale);
    if (floors && rng.Below(4) == 0) interval.min_offset = rng.Below(4);
    if (steps && interval.size > 1 && interval.end - interval.begin > 1) {
      interval.steps = {{interval.begin, 1 + rng.Below(interval.size - 1)},
                        {interval.end - 1, interval.size}};
    }
    problem.intervals.push_back(std::move(interval));
  }
  return problem;
}

void CheckTinyProblems(int count) {
  Rng rng(1);
  int feasible = 0, infeasible = 0, searched = 0, found_by_search = 0;
  for (int i = 0; i < count; ++i) {
    const OffsetProblem problem = TinyProblem(rng);
    const OffsetResult result = Solved(problem);
    std::vector<int64_t> offsets;
    const bool fits = FitsByBruteForce(problem, offsets);
    INFO("problem " << i);
    REQUIRE(result.status == (fits ? OffsetStatus::kFeasible : OffsetStatus::kInfeasible));
    ++(fits ? feasible : infeasible);
    searched += result.nodes > 0;
    found_by_search += fits && result.nodes > 0;
  }
  // The test means something only if both answers occur, and both are found by the search.
  CHECK(feasible > count / 10);
  CHECK(infeasible > count / 10);
  CHECK(searched > count / 50);
  CHECK(found_by_search > count / 400);
}

TEST_CASE("brute force says the same of thousands of tiny problems") { CheckTinyProblems(4000); }
TEST_CASE("brute force says the same of many tiny problems", "[weekly]") {
  CheckTinyProblems(40'000);
}

// Cuts a rectangle of time and memory into `count` intervals: it is full, so only a perfect packing
// fits.
OffsetProblem FullRectangle(Rng& rng, int64_t ticks, int64_t capacity, size_t count) {
  struct Piece {
    int64_t begin, end, low, high;
  };
  std::vector<Piece> pieces = {{0, ticks, 0, capacity}};
  while (pieces.size() < count) {
    const size_t at = rng.Below(pieces.size());
    Piece& piece = pieces[at];
    Piece rest = piece;
    if (rng.Below(2) == 0) {
      if (piece.end - piece.begin < 2) continue;
      piece.end = rest.begin = piece.begin + 1 + rng.Below(piece.end - piece.begin - 1);
    } else {
      if (piece.high - piece.low < 2) continue;
      piece.high = rest.low = piece.low + 1 + rng.Below(piece.high - piece.low - 1);
    }
    pieces.push_back(rest);
  }
  OffsetProblem problem;
  problem.capacity = capacity;
  for (const Piece& piece : pieces)
    problem.intervals.push_back({piece.begin, piece.end, piece.high - piece.low});
  return problem;
}

TEST_CASE("a perfect packing is found, and one unit less proven too little") {
  Rng rng(2);
  for (int i = 0; i < 200; ++i) {
    OffsetProblem problem = FullRectangle(rng, 40, 1024, 20);
    CHECK(Solved(problem).status == OffsetStatus::kFeasible);
    --problem.capacity;
    CHECK(Solved(problem).status == OffsetStatus::kInfeasible);
  }
}

// Gives each of some kinds of problem alignments, gaps and given offsets.
OffsetProblem ShapedProblem(Rng& rng) {
  OffsetProblem problem = TinyProblem(rng);
  const bool alignments = rng.Below(2) == 0, gaps = rng.Below(2) == 0, given = rng.Below(3) == 0;
  if (problem.intervals.size() > 6) problem.intervals.resize(6);
  if (rng.Below(2) == 0) problem.capacity -= 3;
  for (OffsetInterval& interval : problem.intervals) {
    if (alignments && rng.Below(2) == 0) interval.alignment = 1 + rng.Below(4);
    if (gaps && rng.Below(2) == 0) {
      for (int64_t at = interval.begin - rng.Below(2); at < interval.end; at += 1 + rng.Below(2)) {
        OffsetGap gap = {at, at + 1};
        if (rng.Below(2) == 0) {
          gap.low = rng.Below(interval.size);
          gap.high = gap.low + rng.Below(interval.size - gap.low + 1);
        }
        interval.gaps.push_back(gap);
        at = gap.end;
      }
    }
    if (rng.Below(12) == 0) {
      interval.size = 0;
      interval.steps.clear();
      interval.gaps.clear();
    }
    if (rng.Below(12) == 0) {
      interval.end = interval.begin;
      interval.steps.clear();
    }
    if (given && rng.Below(4) == 0) {
      const int64_t multiple = problem.alignment * interval.alignment;
      const int64_t room = problem.capacity - interval.size - interval.min_offset;
      if (room >= 2 * multiple) {
        interval.given = (interval.min_offset + multiple - 1) / multiple * multiple;
        if (rng.Below(2) == 0) *interval.given += multiple;
        if (*interval.given + interval.size > problem.capacity) interval.given.reset();
      }
    }
  }
  return problem;
}

void CheckShapedProblems(int count) {
  Rng rng(7);
  int feasible = 0, infeasible = 0, stopped = 0, refused = 0, searched = 0;
  for (int i = 0; i < count; ++i) {
    const OffsetProblem problem = ShapedProblem(rng);
    INFO("problem " << i);
    std::vector<int64_t> offsets;
    const bool fits = FitsByBruteForce(problem, offsets);
    const auto result = SolveOffsets(problem, {.seconds = 0});
    if (!result.ok()) {  // given offsets conflict
      REQUIRE_FALSE(fits);
      ++refused;
      continue;
    }
    CheckAnswer(problem, *result);
    searched += result->nodes > 0;
    switch (result->status) {
      case OffsetStatus::kFeasible:
        REQUIRE(fits);
        ++feasible;
        break;
      case OffsetStatus::kInfeasible:
        REQUIRE_FALSE(fits);
        ++infeasible;
        break;
      case OffsetStatus::kStopped: ++stopped; break;
    }
  }
  CHECK(feasible > count / 10);
  CHECK(infeasible > count / 10);
  CHECK(refused > count / 300);
  CHECK(searched > count / 100);
  CHECK(stopped < count / 100);  // only where an interval has no anchor
}

TEST_CASE("brute force says the same of alignments, gaps, given offsets, sizes and times of zero") {
  CheckShapedProblems(6000);
}
TEST_CASE("brute force says the same of many problems with alignments and the rest", "[weekly]") {
  CheckShapedProblems(60'000);
}

TEST_CASE("the least height is that of brute force") {
  Rng rng(11);
  int above_bound = 0;
  for (int i = 0; i < 2000; ++i) {
    OffsetProblem problem = rng.Below(2) == 0 ? TinyProblem(rng) : ShapedProblem(rng);
    if (problem.intervals.size() > 5) problem.intervals.resize(5);
    problem.capacity = 1000;
    const auto result = MinimizeHeight(problem, {.seconds = 0});
    if (!result.ok()) continue;
    INFO("problem " << i);
    CheckAnswer(problem, *result);
    REQUIRE(result->status == OffsetStatus::kFeasible);
    std::vector<int64_t> offsets;
    problem.capacity = result->height;
    REQUIRE(FitsByBruteForce(problem, offsets));
    offsets.clear();
    problem.capacity = result->bound - 1;
    if (problem.capacity >= 0) REQUIRE_FALSE(FitsByBruteForce(problem, offsets));
    above_bound += result->height > result->bound;
    problem.capacity = result->bound;
    const auto first = SolveOffsets(problem, {.seconds = 0});
    if (result->height == result->bound) CHECK(first->status == OffsetStatus::kFeasible);
  }
  CHECK(above_bound < 40);  // only where an interval has no anchor
}

TEST_CASE("the least height above what is taken at one time") {
  // Seven intervals that load each time with 4 and fit only into 5.
  OffsetProblem problem;
  problem.intervals = {{0, 1, 3}, {0, 3, 1}, {4, 5, 3}, {2, 5, 1}, {1, 2, 2}, {3, 4, 2}, {1, 4, 1}};
  problem.capacity = 100;
  const auto least = MinimizeHeight(problem);
  REQUIRE(least.ok());
  CHECK(least->height == 5);
  CHECK(least->bound == 5);
  CHECK(least->status == OffsetStatus::kFeasible);
  problem.capacity = 4;
  CHECK(MinimizeHeight(problem)->status == OffsetStatus::kInfeasible);
  CHECK(MinimizeHeight(problem)->height == 5);
  const auto nothing = MinimizeHeight({});
  CHECK(nothing->status == OffsetStatus::kFeasible);
  CHECK((nothing->height == 0 && nothing->bound == 0));
}

TEST_CASE("the least height of large problems, within limits and without") {
  Rng rng(5);
  OffsetProblem problem = FullRectangle(rng, 200, 1 << 16, 100);
  problem.capacity = int64_t{1} << 44;
  const OffsetLimits few = {.seconds = 0, .nodes = 20000};
  const auto once = MinimizeHeight(problem, few), again = MinimizeHeight(problem, few);
  REQUIRE(once.ok());
  CheckAnswer(problem, *once);
  CHECK(once->offsets == again->offsets);
  CHECK(once->nodes == again->nodes);
  CHECK(once->nodes <= 20000);
  CHECK(once->bound == 1 << 16);
  const std::atomic<bool> cancel = true;
  const auto cancelled = MinimizeHeight(problem, {.seconds = 0, .cancel = &cancel});
  CheckAnswer(problem, *cancelled);
  CHECK(cancelled->height >= once->height);
  // Too many that are connected for a search: it ends all the same.
  OffsetProblem many;
  for (int64_t i = 0; i < 3000; ++i) many.intervals.push_back({i, i + 20, 1 + i * i % 7});
  many.capacity = 1000;
  const auto heuristic = MinimizeHeight(many, {.seconds = 0});
  CheckAnswer(many, *heuristic);
  CHECK(heuristic->nodes == 0);
}

TEST_CASE("given offsets stay, and what remains goes around them") {
  OffsetProblem problem;
  problem.intervals = {{0, 9, 4}, {0, 9, 2}, {0, 9, 2}, {3, 5, 6}};
  problem.intervals[1].given = 6;
  problem.intervals[3].given = 12;
  problem.capacity = 18;
  const OffsetResult result = Solved(problem);
  CHECK(result.status == OffsetStatus::kFeasible);
  CHECK(result.offsets == std::vector<int64_t>{0, 6, 4, 12});
  problem.intervals[1].given = 5;  // leaves 5 units below and 5 above for 4 and 2
  CHECK(Solved(problem).status == OffsetStatus::kFeasible);
  problem.intervals[1].given = 3;  // 3 below and 7 above
  CHECK(Solved(problem).status == OffsetStatus::kFeasible);
  problem.intervals[3].given = 8;  // 3 below and 3 between: 4 fits nowhere
  problem.capacity = 14;
  CHECK(Solved(problem).status == OffsetStatus::kInfeasible);
}

TEST_CASE("given offsets stay where the search takes their intervals for wider than they are") {
  OffsetProblem problem;
  // The first takes bytes 1 and 2 of its own, then byte 0: there is no byte that it always takes.
  problem.intervals = {{-1, 3, 2}, {2, 6, 4}, {2, 6, 2}};
  problem.intervals[0].gaps = {{-1, 0, 1, 2}, {2, 3, 0, 1}};
  problem.intervals[0].given = 0;
  problem.intervals[1].steps = {{2, 3}, {5, 4}};
  problem.intervals[1].given = 1;
  problem.capacity = 6;
  CHECK(Solved(problem).offsets == std::vector<int64_t>{0, 1, 5});
}

TEST_CASE("windows that stack like stairs") {
  //   time    0..4  5..9
  //   a        01    0 2     a takes its first byte, then both
  //   b       1 3   2 3      b both, then its second
  OffsetProblem problem;
  problem.intervals = {{0, 10, 2}, {0, 10, 2}};
  problem.intervals[0].gaps = {{0, 5, 0, 1}};
  problem.intervals[1].gaps = {{5, 10, 1, 2}};
  problem.capacity = 3;
  CHECK(Solved(problem).offsets == std::vector<int64_t>{0, 1});
  problem.capacity = 2;
  CHECK(Solved(problem).status == OffsetStatus::kInfeasible);
}

TEST_CASE("an interval without a byte that it always takes is only placed, never proven too much") {
  // Where a is, first at byte 0 and then at byte 2, b fits between.
  OffsetProblem problem;
  problem.intervals = {{0, 10, 3}, {0, 10, 1}};
  problem.intervals[0].gaps = {{0, 5, 0, 1}, {5, 10, 2, 3}};
  problem.capacity = 3;
  const OffsetResult result = Solved(problem);
  CHECK(result.status == OffsetStatus::kStopped);
  CHECK(result.bound == 3);
  problem.capacity = 4;
  CHECK(Solved(problem).status == OffsetStatus::kFeasible);
  problem.capacity = 2;
  CHECK(Solved(problem).status == OffsetStatus::kInfeasible);
  problem.capacity = 9;
  const auto least = MinimizeHeight(problem, {.seconds = 0});
  CHECK((least->height == 4 && least->bound == 3));
}

TEST_CASE("what takes no bytes lies at its lowest offset and is in nobody's way") {
  OffsetProblem problem;
  problem.intervals = {{0, 9, 0}, {0, 9, 4}, {2, 3, 0, 3}, {0, 9, 4}, {0, 9, 8}};
  problem.intervals[2].alignment = 4;
  problem.intervals[0].given = 2;
  problem.intervals[4].gaps = {{0, 4}, {4, 9}};  // all its time
  problem.capacity = 8;
  CHECK(Solved(problem).offsets == std::vector<int64_t>{2, 0, 4, 4, 0});
  problem.intervals[4].size = 9;
  CHECK(Solved(problem).status == OffsetStatus::kInfeasible);  // it has to end within all the same
}

TEST_CASE("large sizes, far times, a common divisor and a capacity that is no multiple of it") {
  const int64_t far = std::numeric_limits<int64_t>::max(), mib = 1 << 20;
  OffsetProblem problem;
  problem.intervals = {
      {-far - 1, far, 4 * mib}, {-far, 0, 2 * mib}, {-1, far, 2 * mib}, {1, 2, 6 * mib}};
  problem.capacity = (int64_t{1} << 44) - 1;
  CHECK(Solved(problem).height == 12 * mib);
  problem.capacity = 12 * mib;
  CHECK(Solved(problem).status == OffsetStatus::kFeasible);
  problem.capacity = 12 * mib - 1;
  CHECK(Solved(problem).status == OffsetStatus::kInfeasible);
  problem.alignment = 3 * mib;
  problem.capacity = 14 * mib;  // 6 below, then 6 for 4, and 2 more at 12
  CHECK(Solved(problem).status == OffsetStatus::kFeasible);
}

TEST_CASE("a problem without intervals, and one without room") {
  CHECK(Solved({}).status == OffsetStatus::kFeasible);
  CHECK(Solved({{{0, 1, 5}}, 4, 1}).status == OffsetStatus::kInfeasible);
  CHECK(Solved({{{0, 1, 5, 3}}, 7, 1}).status == OffsetStatus::kInfeasible);
  CHECK(Solved({{{0, 1, 5, 3}}, 8, 1}).offsets == std::vector<int64_t>{3});
}

TEST_CASE("the same problem has the same answer, and limits end the search") {
  Rng rng(3);
  const OffsetProblem problem = FullRectangle(rng, 300, 1 << 20, 150);
  const OffsetLimits few = {.seconds = 0, .nodes = 3000};
  const OffsetResult once = Solved(problem, few), again = Solved(problem, few);
  CHECK(once.status == again.status);
  CHECK(once.offsets == again.offsets);
  CHECK(once.nodes == again.nodes);
  CHECK(once.nodes <= 3000);
  const std::atomic<bool> cancel = true;
  const OffsetResult cancelled = Solved(problem, {.seconds = 0, .cancel = &cancel});
  CHECK(cancelled.status == OffsetStatus::kStopped);
  CHECK(cancelled.nodes == 0);
}

TEST_CASE("many intervals: heuristics where the search would be too deep") {
  OffsetProblem problem;
  for (int64_t i = 0; i < 5000; ++i) problem.intervals.push_back({i, i + 20, 1 + i % 7});
  problem.capacity = 200;
  CHECK(Solved(problem).status == OffsetStatus::kFeasible);
  problem.capacity = 50;
  CHECK(Solved(problem, {.seconds = 0}).status == OffsetStatus::kInfeasible);
}

TEST_CASE("the lowest free offset is aligned, and skips holes that are too small") {
  CHECK(LowestFreeOffset({}, 8, 3, 4) == 4);
  CHECK(LowestFreeOffset({{24, 30}, {0, 5}}, 16, 0, 8) == 8);
  CHECK(LowestFreeOffset({{24, 30}, {0, 5}}, 17, 0, 8) == 32);
  CHECK(LowestFreeOffset({{0, 64}, {8, 16}}, 1, 0, 8) == 64);
}

}  // namespace
}  // namespace mallocgame
