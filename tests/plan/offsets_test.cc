// SolveOffsets against brute force, on problems cut from a full rectangle, and on input it must
// refuse; and its CSV.
#include "mallocgame/plan/offsets.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "mallocgame/base/rng.h"
#include "mallocgame/plan/offsets_csv.h"
#include "tests/catch.h"

namespace mallocgame {
namespace {

int64_t SizeAt(const OffsetInterval& interval, int64_t time) {
  if (time < interval.begin || time >= interval.end) return 0;
  int64_t size = interval.steps.empty() ? interval.size : 0;
  for (const OffsetStep& step : interval.steps) {
    if (step.begin <= time) size = step.size;
  }
  return size;
}

// Whether two intervals share a byte. It looks at each time at which one of them begins or grows,
// and knows nothing of the search's moments and neighbors.
bool Conflict(const OffsetInterval& a, int64_t a_offset, const OffsetInterval& b,
              int64_t b_offset) {
  std::vector<int64_t> times = {a.begin, b.begin};
  for (const OffsetInterval* interval : {&a, &b}) {
    for (const OffsetStep& step : interval->steps) times.push_back(step.begin);
  }
  return std::any_of(times.begin(), times.end(), [&](int64_t time) {
    const int64_t a_size = SizeAt(a, time), b_size = SizeAt(b, time);
    return a_size > 0 && b_size > 0 && a_offset < b_offset + b_size && b_offset < a_offset + a_size;
  });
}

bool NoConflicts(const OffsetProblem& problem, const std::vector<int64_t>& offsets) {
  for (size_t i = 0; i < offsets.size(); ++i) {
    const OffsetInterval& interval = problem.intervals[i];
    if (offsets[i] < interval.min_offset || offsets[i] % problem.alignment != 0) return false;
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
    bool free = offset >= interval.min_offset;
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

TEST_CASE("brute force says the same of thousands of tiny problems") {
  Rng rng(1);
  int feasible = 0, infeasible = 0, searched = 0, found_by_search = 0;
  for (int i = 0; i < 20000; ++i) {
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
  CHECK(feasible > 2000);
  CHECK(infeasible > 2000);
  CHECK(searched > 500);
  CHECK(found_by_search > 50);
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

void CheckRefused(const OffsetProblem& problem, absl::StatusCode code, const std::string& part) {
  const auto result = SolveOffsets(problem);
  REQUIRE_FALSE(result.ok());
  CHECK(result.status().code() == code);
  CHECK_THAT(std::string(result.status().message()), Catch::Contains(part));
}

TEST_CASE("a malformed problem is refused") {
  const auto bad = absl::StatusCode::kInvalidArgument;
  const int64_t most = std::numeric_limits<int64_t>::max();
  CheckRefused({{}, -1, 1}, bad, "capacity");
  CheckRefused({{}, most, 1}, bad, "capacity");
  CheckRefused({{}, 1, 0}, bad, "alignment");
  CheckRefused({{{0, 1, 1}, {0, 1, 0}}, 1, 1}, bad, "interval 1: size");
  CheckRefused({{{0, 1, most}}, 1, 1}, bad, "interval 0: size");
  CheckRefused({{{0, 1, 1, -1}}, 1, 1}, bad, "min_offset");
  CheckRefused({{{1, 1, 1}}, 1, 1}, bad, "times");
  CheckRefused({{{0, 4, 4, 0, {{0, 2}}}}, 4, 1}, bad, "steps");
  CheckRefused({{{0, 4, 4, 0, {{1, 4}}}}, 4, 1}, bad, "steps");
  CheckRefused({{{0, 4, 4, 0, {{0, 2}, {4, 4}}}}, 4, 1}, bad, "steps");
  CheckRefused({{{0, 4, 4, 0, {{0, 2}, {1, 2}, {2, 4}}}}, 4, 1}, bad, "steps");
  CheckRefused({std::vector<OffsetInterval>(70000, {0, 1, 1}), 1, 1},
               absl::StatusCode::kResourceExhausted, "70000");
  CheckRefused({std::vector<OffsetInterval>(10000, {0, 1, 1}), 1, 1},
               absl::StatusCode::kResourceExhausted, "pairs");
}

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
