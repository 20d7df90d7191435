// Offset allocation: intervals of known time and size get offsets such that no two share a byte at
// the same time. Heuristics give a first answer; if it is too high, an exact search finds offsets
// within the capacity or proves that there are none. CheckOffsets (offset_check.h) judges offsets.
// Only RepairOffsets, which does this for a plan, knows of programs.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "mallocgame/hardware/hardware.h"
#include "mallocgame/plan/plan.h"
#include "mallocgame/program/program.h"

namespace mallocgame {

// A step of an interval that is filled bit by bit: from time `begin` on it takes the bytes [offset,
// offset + size).
struct OffsetStep {
  int64_t begin = 0;
  int64_t size = 0;
  friend bool operator==(const OffsetStep&, const OffsetStep&) = default;
};

// A time in which an interval takes the bytes [offset + low, offset + high) only; none if low ==
// high. MiniMalloc calls these bytes the window of the gap.
struct OffsetGap {
  int64_t begin = 0;
  int64_t end = 0;  // >= begin; what lies outside the interval says nothing
  int64_t low = 0;  // 0 <= low <= high <= the interval's size
  int64_t high = 0;
  friend bool operator==(const OffsetGap&, const OffsetGap&) = default;
};

// It takes the bytes [offset, offset + size) over the time [begin, end), but for its steps and
// gaps; offset >= min_offset.
struct OffsetInterval {
  int64_t begin = 0;
  int64_t end = 0;         // >= begin; it takes nothing if both are the same time
  int64_t size = 0;        // bytes, >= 0
  int64_t min_offset = 0;  // >= 0; need not be aligned
  // If not empty, how it comes to take all its bytes: the first step begins at `begin`, begins and
  // sizes rise, and the last size is `size`.
  std::vector<OffsetStep> steps = {};
  int64_t alignment = 1;             // its offset is a multiple of it and of the problem's
  std::vector<OffsetGap> gaps = {};  // in any order; no two share a time within [begin, end)
  std::optional<int64_t> given = std::nullopt;  // if set, the offset that it keeps; >= 0
  friend bool operator==(const OffsetInterval&, const OffsetInterval&) = default;
};

struct OffsetProblem {
  std::vector<OffsetInterval> intervals;
  int64_t capacity = 0;   // bytes in [0, 2^44]; every interval must end at or below it
  int64_t alignment = 1;  // every offset is a multiple of it; in [1, 2^44]
  std::vector<std::string> names = {};  // what messages call the intervals; if empty, by number
};

struct OffsetLimits {
  double seconds = 10;  // wall time; no limit if <= 0
  // The most nodes that the search looks at; no limit if 0. With this limit and without `seconds`,
  // the answer depends on the problem only.
  int64_t nodes = 0;
  const std::atomic<bool>* cancel = nullptr;  // another thread sets it to stop the search soon
};

enum class OffsetStatus : uint8_t {
  kFeasible,    // the offsets fit
  kInfeasible,  // it is proven that no offsets fit
  // Limits or `cancel` ended the search, or the problem is too large for it; nothing is proven.
  kStopped,
};
const char* OffsetStatusName(OffsetStatus status);  // "feasible" ...

struct OffsetResult {
  OffsetStatus status = OffsetStatus::kStopped;
  // One for each interval, in order; no two intervals conflict. They are within the capacity if and
  // only if feasible; else they are the lowest that the heuristics found.
  std::vector<int64_t> offsets;
  int64_t height = 0;  // the highest end of an interval at these offsets; 0 without intervals
  int64_t bound = 0;   // no offsets have a lower height; if it is `height`, that is the least
  int64_t nodes = 0;   // the nodes that the search looked at; 0 if heuristics were enough
};

// Uses one thread, and many threads may call it at the same time. It is deterministic but for the
// clock. InvalidArgument names the interval and what is wrong with it; also of given offsets that
// CheckOffsets refuses by themselves. ResourceExhausted: there are more than 2^16 intervals, more
// than 2^24 overlapping pairs, or more than 2^24 pairs of an interval and a time within it at which
// others begin and end. Intervals that overlap, directly or through others, form a part; parts of
// more than 2,000 intervals are given to the heuristics only, because the search recurses as deep
// as there are intervals.
//
// An interval that takes bytes in one gap that lie wholly below those of another gap counts, in the
// former, as if it took all up to and with the first byte of the latter. Where such an interval is
// among them, kInfeasible becomes kStopped.
absl::StatusOr<OffsetResult> SolveOffsets(const OffsetProblem& problem,
                                          const OffsetLimits& limits = {});

// The same, but the offsets become as low as the limits allow, whether or not the search has to be
// used to fit the capacity. Capacities are tried from the bound up, with more and more nodes each;
// without limits it ends when the height is proven to be the least.
absl::StatusOr<OffsetResult> MinimizeHeight(const OffsetProblem& problem,
                                            const OffsetLimits& limits = {});

// The lowest multiple of `alignment` from `from` on at which `size` bytes are free. `taken` has
// pairs of a first byte and an end, in any order.
int64_t LowestFreeOffset(std::vector<std::pair<int64_t, int64_t>> taken, int64_t size, int64_t from,
                         int64_t alignment);

// Finds all offsets of a plan anew: above what instructions reserve for themselves, aligned, inside
// fast memory. The intervals of its residences, their copies and the accesses they serve stay. A
// residence that a prefetch fills in slices takes, as long as not all slices have begun, only the
// bytes up to the end of the last one that has. The plan is changed only if the result is
// kFeasible; if nothing but its offsets was wrong, it is valid then. InvalidArgument: the plan is
// not well formed (CheckWellFormed, which does not look at offsets). ResourceExhausted: as above.
absl::StatusOr<OffsetResult> RepairOffsets(const Program& program, const Hardware& hardware,
                                           Plan& plan, const OffsetLimits& limits = {});

}  // namespace mallocgame
