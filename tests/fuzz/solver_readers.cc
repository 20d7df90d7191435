// What the offset solver makes of bytes from outside.
#include "tests/fuzz/solver_readers.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "mallocgame/base/error.h"
#include "mallocgame/plan/offset_check.h"
#include "mallocgame/plan/offsets.h"
#include "mallocgame/plan/offsets_csv.h"
#include "tests/fuzz/readers.h"

namespace mallocgame::fuzz {
namespace {

// Larger problems are read but not solved, because the check below compares all pairs.
constexpr size_t kMaxIntervalsSolved = 300;
constexpr int64_t kMaxNodes = 2000;

// The judge has to agree, and so has looking at all pairs where there are no gaps.
void CheckResult(const OffsetProblem& problem, const OffsetResult& result) {
  MG_CHECK(result.offsets.size() == problem.intervals.size());
  int64_t height = 0;
  for (size_t i = 0; i < result.offsets.size(); ++i) {
    const OffsetInterval& a = problem.intervals[i];
    const int64_t offset = result.offsets[i], end = offset + a.size;
    MG_CHECK(offset >= 0 && offset % problem.alignment == 0 && offset % a.alignment == 0);
    MG_CHECK(a.given.value_or(offset) == offset);
    height = std::max(height, end);
    for (size_t j = 0; j < i; ++j) {
      const OffsetInterval& b = problem.intervals[j];
      if (!a.gaps.empty() || !b.gaps.empty() || a.size == 0 || b.size == 0) continue;
      if (a.begin == a.end || b.begin == b.end) continue;  // they overlap nothing
      const bool at_once = a.begin < b.end && b.begin < a.end;
      MG_CHECK(!at_once || end <= result.offsets[j] || result.offsets[j] + b.size <= offset);
    }
  }
  MG_CHECK(result.height == height && result.bound <= height);
  MG_CHECK((result.status == OffsetStatus::kFeasible) == (height <= problem.capacity));
  MG_CHECK((result.status == OffsetStatus::kInfeasible) == (result.bound > problem.capacity));
  const absl::StatusOr<OffsetVerdict> verdict = CheckOffsets(problem, result.offsets);
  MG_CHECK(verdict.ok() && verdict->height == height);
  MG_CHECK(verdict->rule == OffsetRule::kNone ||
           (verdict->rule == OffsetRule::kBounds && height > problem.capacity));
}

// Finds room for a table without limit, then in a little less than that took, so that the exact
// search works too, and then the least. Returns the last offsets found.
std::vector<int64_t> FindOffsets(const OffsetTable& table) {
  OffsetProblem problem;
  problem.intervals = table.intervals;
  problem.capacity = int64_t{1} << 44;
  problem.alignment = 1 + static_cast<int64_t>(table.intervals.size() % 5);
  problem.names = RowNames(table);
  const OffsetLimits limits = {.seconds = 0, .nodes = kMaxNodes};
  absl::StatusOr<OffsetResult> result = SolveOffsets(problem, limits);
  if (!result.ok()) return {};
  CheckResult(problem, *result);
  if (result->status != OffsetStatus::kFeasible || result->height == 0) return result->offsets;
  problem.capacity = result->height - 1;
  // It may be that given offsets are above it.
  if (const auto lower = SolveOffsets(problem, limits); lower.ok()) CheckResult(problem, *lower);
  problem.capacity = int64_t{1} << 44;
  result = MinimizeHeight(problem, limits);
  MG_CHECK(result.ok());
  CheckResult(problem, *result);
  return result->offsets;
}

}  // namespace

bool ReadOffsets(absl::string_view bytes) {
  const absl::StatusOr<OffsetTable> table = OffsetsFromCsv(bytes);
  if (!table.ok()) return false;
  MG_CHECK(CheckIds(table->ids).ok());
  const auto check = [&table](const std::vector<int64_t>& offsets) {
    const std::string again = OffsetsToCsv(*table, offsets);
    const absl::StatusOr<OffsetTable> back = OffsetsFromCsv(again);
    MG_CHECK(back.ok() && back->ids == table->ids && OffsetsToCsv(*back) == again);
    std::vector<OffsetInterval> intervals = table->intervals;
    for (size_t i = 0; i < offsets.size(); ++i) intervals[i].given = offsets[i];
    MG_CHECK(back->intervals == intervals);
  };
  check({});
  if (table->intervals.size() <= kMaxIntervalsSolved) check(FindOffsets(*table));
  return true;
}

}  // namespace mallocgame::fuzz
