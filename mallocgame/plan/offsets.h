// Offset allocation: intervals of known time and size get offsets such that no two share a byte at
// the same time. A first answer comes from heuristics; if it is too high, an exact search finds
// offsets within the capacity or proves that there are none. Knows nothing of programs, but for
// RepairOffsets, which does it for a plan.
#ifndef MALLOCGAME_PLAN_OFFSETS_H_
#define MALLOCGAME_PLAN_OFFSETS_H_

#include <atomic>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "mallocgame/hardware/hardware.h"
#include "mallocgame/plan/plan.h"
#include "mallocgame/program/program.h"

namespace mallocgame {

// An interval that is filled bit by bit: from time `begin` on it takes bytes [offset, offset +
// size).
struct OffsetStep {
  int64_t begin = 0;
  int64_t size = 0;
};

// Bytes [offset, offset + size) over the time [begin, end); offset >= min_offset.
struct OffsetInterval {
  int64_t begin = 0;
  int64_t end = 0;         // > begin
  int64_t size = 0;        // bytes, > 0
  int64_t min_offset = 0;  // >= 0; need not be aligned
  // Empty, or what it takes before it takes all: the first step begins at `begin`, begins and sizes
  // rise, the last size is `size`.
  std::vector<OffsetStep> steps = {};
};

struct OffsetProblem {
  std::vector<OffsetInterval> intervals;
  int64_t capacity = 0;   // bytes in [0, 2^44]; every interval must end at or below it
  int64_t alignment = 1;  // every offset is a multiple of it; in [1, 2^44]
};

struct OffsetLimits {
  double seconds = 10;  // wall time; <= 0: no limit
  // of the search; 0: no limit. With it and without `seconds`, the answer depends on the problem
  // only
  int64_t nodes = 0;
  const std::atomic<bool>* cancel = nullptr;  // set by another thread: stop soon
};

enum class OffsetStatus : uint8_t {
  kFeasible,    // the offsets fit
  kInfeasible,  // proven: no offsets fit
  kStopped,     // limits or `cancel` ended the search, or the problem is beyond it; nothing proven
};
const char* OffsetStatusName(OffsetStatus status);  // "feasible" ...

struct OffsetResult {
  OffsetStatus status = OffsetStatus::kStopped;
  // One an interval, in order; no two intervals conflict. Within the capacity if and only if
  // feasible; else the lowest that the heuristics found.
  std::vector<int64_t> offsets;
  int64_t height = 0;  // of these offsets: the highest end of an interval, 0 without intervals
  int64_t nodes = 0;   // the search looked at; 0 if heuristics were enough
};

// Deterministic but for the clock; one thread; may be called from many at a time. InvalidArgument
// names the interval and what is wrong with it. ResourceExhausted: more than 2^16 intervals, or
// more than 2^24 overlapping pairs, or as many meetings of intervals and moments. Where more than
// 2,000 intervals hang together in time, only the heuristics are tried: recursion must end
// somewhere.
absl::StatusOr<OffsetResult> SolveOffsets(const OffsetProblem& problem,
                                          const OffsetLimits& limits = {});

// Keeps the intervals of a plan's residences, their copies and whom they serve, and finds all
// offsets anew: above what instructions reserve for themselves, aligned, inside fast memory. A
// residence that a prefetch fills in slices takes, as long as not all slices have begun, only the
// bytes up to the end of the last one of those that have. The plan is changed only if the result is
// kFeasible. If only the offsets of the plan were wrong, it is valid then. InvalidArgument: the
// plan is not well formed (CheckWellFormed, which doesn't look at offsets). ResourceExhausted: as
// above.
absl::StatusOr<OffsetResult> RepairOffsets(const Program& program, const Hardware& hardware,
                                           Plan& plan, const OffsetLimits& limits = {});

}  // namespace mallocgame

#endif  // MALLOCGAME_PLAN_OFFSETS_H_
