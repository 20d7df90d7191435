// The exact half of SolveOffsets: intervals that hang together in time, in whole units, are given
// offsets by depth-first search. Private to plan/.
#ifndef MALLOCGAME_PLAN_OFFSET_SEARCH_H_
#define MALLOCGAME_PLAN_OFFSET_SEARCH_H_

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "mallocgame/base/deadline.h"
#include "mallocgame/plan/offsets.h"

namespace mallocgame {

// An interval as the search sees it. Time is cut into moments, such that what fits at every moment
// fits always.
struct OffsetItem {
  int32_t begin = 0, end = 0;    // moments, begin < end
  int64_t height = 0;            // units, > 0
  int64_t min_offset = 0;        // units
  int64_t max_offset = 0;        // units; negative if it does not fit at all
  double width = 0;              // length in time
  std::vector<int64_t> heights;  // at each of its moments; rising; the last is `height`

  // What `above`, which shares a moment with it, must be higher by to lie above it.
  int64_t HeightUnder(const OffsetItem& above) const {
    return heights[(end < above.end ? end : above.end) - 1 - begin];
  }
};

struct OffsetNeighbor {
  int32_t item = 0;
  // of the item itself where the two meet: the neighbor is above if its offset is this much higher
  int64_t height = 0;
};

struct OffsetInstance {
  std::vector<OffsetItem> items;
  // of each item, all that share a moment with it, by index
  std::vector<std::vector<OffsetNeighbor>> neighbors;
  int64_t capacity = 0;  // units, of intervals whose heights are rounded up
  int32_t moments = 0;
};

// The limits of one SolveOffsets call while it runs.
class OffsetBudget {
 public:
  explicit OffsetBudget(const OffsetLimits& limits)
      : max_nodes_(limits.nodes), deadline_(limits.seconds, limits.cancel) {}
  // Once it is, it stays so.
  bool Exhausted() {
    if (!exhausted_) exhausted_ = (max_nodes_ > 0 && nodes >= max_nodes_) || deadline_.Passed();
    return exhausted_;
  }
  int64_t nodes = 0;  // that the search has looked at

 private:
  int64_t max_nodes_;  // 0: no limit
  Deadline deadline_;
  bool exhausted_ = false;
};

// What intervals are ranked by: larger first, by the first criterion in which they differ, then the
// lower index.
enum class OffsetCriterion : uint8_t {
  kLoad,      // what is yet to be placed at the fullest of its moments
  kWidth,     // length in time
  kArea,      // length in time by height
  kCells,     // moments by height
  kFailures,  // dead ends met so far at the worst of its moments
};
using OffsetOrder = std::array<OffsetCriterion, 3>;

class OffsetSearch {
 public:
  // Both must outlive the search.
  OffsetSearch(const OffsetInstance& instance, OffsetBudget& budget);

  // Offsets of the items in `ids`, which share no moment with others, in `offsets`. Anything but
  // kFeasible leaves it as is.
  OffsetStatus Solve(absl::Span<const int32_t> ids, std::vector<int64_t>& offsets);

  // Sorts by `order`, given that exactly the items in `ids` are yet to be placed.
  void Sort(const OffsetOrder& order, std::vector<int32_t>& ids);

 private:
  // no item may be placed before this: the next one has a higher offset, or the same and a higher
  // rank
  struct Place {
    int64_t offset = 0;
    int32_t rank = -1;
  };
  struct Key {
    int64_t earliest = 0;  // no solution below this node has the item lower
    int32_t rank = 0;
    int32_t item = 0;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  struct Change {  // for the way back
    int32_t item = 0;
    int64_t offset = 0;  // -1: it was placed
  };

  void Rank(std::vector<int32_t>& ids);
  bool SolveAll(const std::vector<int32_t>& ids, Place last);
  bool Branch(const std::vector<int32_t>& ids, Place last);
  bool SolveParts(std::vector<std::vector<int32_t>> parts, Place last);
  std::vector<std::vector<int32_t>> Split(const std::vector<int32_t>& ids);
  bool Bound(const std::vector<int32_t>& ids, Place last, std::vector<Key>& keys);
  bool Blocked(int32_t item, Place last) const;
  bool Stack(const std::vector<Key>& keys, int32_t begin, int32_t end);
  bool RaiseWhatIsNotNext(std::vector<Key>& keys, int32_t begin, int32_t end, bool& raised);
  bool CanBeNext(int32_t item) const;
  void PlaceItem(int32_t item);
  void Undo(size_t mark);

  const OffsetInstance& instance_;
  OffsetBudget& budget_;
  OffsetOrder order_ = {};
  int64_t node_limit_ = 0;
  bool aborted_ = false;
  std::vector<uint8_t> placed_;
  // of a placed item; else the lowest above all that is placed where it is
  std::vector<int64_t> offset_;
  std::vector<int32_t> rank_;
  std::vector<Change> trail_;

  // By moment.
  std::vector<int64_t> failures_;
  std::vector<int64_t> open_;  // heights not yet placed
  std::vector<int64_t> top_;   // of a stack of them as low as it gets
  // ends that the next item may have, if it is placed as low as it gets
  struct Lowest {
    int64_t end = 0, second = 0;
    int32_t item = -1;
  };
  std::vector<Lowest> lowest_;
  std::vector<int32_t> reach_;  // the latest end of what begins there

  std::vector<std::array<double, 3>> sort_keys_;
};

}  // namespace mallocgame

#endif  // MALLOCGAME_PLAN_OFFSET_SEARCH_H_
