// What the offset solver and XLA's allocator make of bytes from outside.
#include "tests/fuzz/solver_readers.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "mallocgame/base/deadline.h"
#include "mallocgame/base/error.h"
#include "mallocgame/game/game.h"
#include "mallocgame/plan/offset_check.h"
#include "mallocgame/plan/offsets.h"
#include "mallocgame/plan/offsets_csv.h"
#include "mallocgame/plan/plan.h"
#include "mallocgame/plan/validate.h"
#include "mallocgame/solvers/xla/heuristic.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/readers.h"
#include "tests/fuzz/sample.h"
#include "tests/support/play.h"

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

// Fast memory is required of one access, so that not everything may be skipped.
std::shared_ptr<const Game> SampleGame() {
  static const auto& game = *new std::shared_ptr<const Game>(
      testing::MakeGame(SampleProgram(), SampleHardware(), {.required = {AccessId(0)}}));
  return game;
}

template <class AnyId>
AnyId DrawId(Input& in, size_t count) {
  return AnyId(static_cast<int32_t>(in.Below(count)));
}

// Ids and ticks are of the program, as the callers of PlanLikeXla see to.
XlaRequest RequestOf(absl::string_view bytes, const Program& program) {
  const size_t accesses = program.accesses().size(), buffers = program.buffers().size();
  Input in(bytes);
  XlaRequest request;
  while (!in.empty()) {
    switch (in.Byte() % 5) {
      case 0: request.in_main.push_back(DrawId<AccessId>(in, accesses)); break;
      case 1: request.pinned.push_back(DrawId<BufferId>(in, buffers)); break;
      case 2: request.order.push_back(DrawId<BufferId>(in, buffers)); break;
      case 3:
        if (!request.preloads) request.preloads.emplace();
        request.preloads->push_back(DrawId<BufferId>(in, buffers));
        break;
      case 4:
        request.prefetches.push_back({DrawId<AccessId>(in, accesses),
                                      static_cast<Tick>(in.Below(program.ticks())),
                                      in.Byte() % 2 == 0});
        break;
    }
  }
  return request;
}

}  // namespace

bool ReadOffsets(absl::string_view bytes) {
  const absl::StatusOr<OffsetTable> table = OffsetsFromCsv(bytes);
  if (!table.ok()) return false;
  MG_CHECK(CheckIds(table->ids).ok());
  const auto check = [&table](const std::vector<int64_t>& offsets) {
    const std::string again = OffsetsToCsv(*table, offsets);
    const absl::StatusOr<OffsetTable> back = OffsetsFromCsv(again);
    MG_CHECK(back.ok() && back->ids == table->ids && back->hints == table->hints &&
             back->others == table->others && OffsetsToCsv(*back) == again);
    std::vector<OffsetInterval> intervals = table->intervals;
    for (size_t i = 0; i < offsets.size(); ++i) intervals[i].given = offsets[i];
    MG_CHECK(back->intervals == intervals);
  };
  check({});
  if (table->intervals.size() <= kMaxIntervalsSolved) check(FindOffsets(*table));
  return true;
}

bool ReadXlaRequest(absl::string_view bytes) {
  const Game& game = *SampleGame();
  const XlaRequest request = RequestOf(bytes, game.program());
  const XlaOutcome outcome = PlanLikeXla(game, Deadline(), {.min_sliced_bytes = 8}, request);
  MG_CHECK(Validate(game.program(), game.hardware(), outcome.plan).ok());
  for (const XlaRefusal& refusal : outcome.refused) MG_CHECK(!refusal.reason.empty());
  return true;
}

}  // namespace mallocgame::fuzz
