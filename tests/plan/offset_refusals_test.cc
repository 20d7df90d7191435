// Problems that SolveOffsets must refuse, saying which interval is at fault.
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "mallocgame/plan/offsets.h"
#include "tests/catch.h"

namespace mallocgame {
namespace {

void CheckRefused(const OffsetProblem& problem, absl::StatusCode code, const std::string& part) {
  const auto result = SolveOffsets(problem);
  REQUIRE_FALSE(result.ok());
  CHECK(result.status().code() == code);
  CHECK_THAT(std::string(result.status().message()), Catch::Contains(part));
}

TEST_CASE("given offsets that can't be are refused with the names of the intervals") {
  const auto bad = absl::StatusCode::kInvalidArgument;
  OffsetProblem problem = {{{0, 5, 4}, {0, 9, 4}, {4, 9, 4}}, 12, 2, {"ann", "bob", "cat"}};
  problem.intervals[0].given = 4;
  problem.intervals[2].given = 6;
  CheckRefused(problem, bad,
               "ann takes the bytes [4, 8), and cat the bytes [6, 10) over the same time [4, 5)");
  problem.capacity = 13;
  problem.intervals[2].given = 9;
  CheckRefused(problem, bad, "cat: found offset 9, allowed: a multiple of 2");
  problem.intervals[2].given = 10;
  CheckRefused(problem, bad, "cat: found bytes [10, 14)");
  problem.intervals[2].given = -2;
  CheckRefused(problem, bad, "cat: offset: found -2");
  problem.intervals[2].given = 8;
  CHECK(SolveOffsets(problem, {.seconds = 0})->offsets == std::vector<int64_t>{4, 0, 8});
}

TEST_CASE("a malformed problem is refused") {
  const auto bad = absl::StatusCode::kInvalidArgument;
  const int64_t most = std::numeric_limits<int64_t>::max();
  CheckRefused({{}, -1, 1}, bad, "capacity");
  CheckRefused({{}, most, 1}, bad, "capacity");
  CheckRefused({{}, 1, 0}, bad, "alignment");
  CheckRefused({{{0, 1, 1}, {0, 1, -1}}, 1, 1}, bad, "interval 1: size");
  CheckRefused({{{0, 1, most}}, 1, 1}, bad, "interval 0: size");
  CheckRefused({{{0, 1, 1, -1}}, 1, 1}, bad, "min_offset");
  CheckRefused({{{1, 0, 1}}, 1, 1}, bad, "times");
  CheckRefused({{{0, 4, 4, 0, {{0, 2}}}}, 4, 1}, bad, "steps");
  CheckRefused({{{0, 4, 4, 0, {{1, 4}}}}, 4, 1}, bad, "steps");
  CheckRefused({{{0, 4, 4, 0, {{0, 2}, {4, 4}}}}, 4, 1}, bad, "steps");
  CheckRefused({{{0, 4, 4, 0, {{0, 2}, {1, 2}, {2, 4}}}}, 4, 1}, bad, "steps");
  const OffsetInterval plain = {0, 9, 4};
  const auto with_gaps = [&plain](std::vector<OffsetGap> gaps) {
    OffsetInterval interval = plain;
    interval.gaps = std::move(gaps);
    return OffsetProblem{{interval}, 9, 1};
  };
  CheckRefused(with_gaps({{3, 2}}), bad, "gap over the times [3, 2)");
  CheckRefused(with_gaps({{1, 3, 2, 5}}), bad, "gap that takes the bytes [2, 5)");
  CheckRefused(with_gaps({{1, 3, 2, 1}}), bad, "gap that takes the bytes");
  CheckRefused(with_gaps({{1, 3, -1, 1}}), bad, "gap that takes the bytes");
  CheckRefused(with_gaps({{5, 7}, {1, 6}}), bad, "two gaps at the time 5");
  OffsetInterval aligned = plain;
  aligned.alignment = 0;
  CheckRefused({{aligned}, 9, 1}, bad, "interval 0: alignment");
  aligned.alignment = (int64_t{1} << 44) - 1;
  CheckRefused({{aligned}, 9, 1 << 20}, bad, "common multiple");
  CheckRefused({{plain}, 9, 1, {"a", "b"}}, bad, "names");
  CheckRefused({std::vector<OffsetInterval>(70000, {0, 1, 1}), 1, 1},
               absl::StatusCode::kResourceExhausted, "70000");
  CheckRefused({std::vector<OffsetInterval>(10000, {0, 1, 1}), 1, 1},
               absl::StatusCode::kResourceExhausted, "pairs");
}

}  // namespace
}  // namespace mallocgame
