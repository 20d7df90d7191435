// How an OffsetProblem becomes an OffsetInstance: bytes become whole units, and time becomes
// moments. Private to the folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "mallocgame/plan/offset_search.h"
#include "mallocgame/plan/offsets.h"

namespace mallocgame {

class OffsetModel {
 public:
  // The problem is well formed and must outlive the model, whose capacity is not set yet.
  // ResourceExhausted: see SolveOffsets.
  static absl::StatusOr<OffsetModel> Create(const OffsetProblem& problem);

  const OffsetInstance& instance() const { return instance_; }
  void SetCapacity(int64_t capacity);

  // The offset of each interval, in bytes, given those of the items.
  std::vector<int64_t> Offsets(const std::vector<int64_t>& item_offsets) const;

  // No offsets have a height below it: at one moment as much is taken, or one interval ends there.
  int64_t bound() const { return bound_; }
  // The least height from `height` on that lowest offsets can have.
  int64_t NextHeight(int64_t height) const;

  // Whether some items take more than their intervals do, because these have no anchor. Then that
  // there are no offsets for the items proves nothing.
  bool widened() const { return widened_; }

 private:
  explicit OffsetModel(const OffsetProblem& problem) : problem_(&problem) {}
  void FindNeighbors();

  const OffsetProblem* problem_;
  OffsetInstance instance_;
  std::vector<size_t> intervals_;  // of the items
  std::vector<int64_t> apart_;     // the offsets of the intervals that take nothing; else -1
  int64_t apart_height_ = 0;       // the highest end of these
  int64_t grain_ = 1;              // bytes that all offsets are multiples of
  int64_t unit_ = 1;               // and the lowest offsets
  int64_t bound_ = 0;
  bool widened_ = false;
};

}  // namespace mallocgame
