// The exact half of SolveOffsets: a depth-first search for the offsets of intervals that overlap,
// directly or through others. Offsets and heights are in whole units. Private to the folder.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/types/span.h"
#include "mallocgame/base/deadline.h"
#include "mallocgame/plan/offsets.h"

namespace mallocgame {

// An interval as the search sees it. Time is reduced to moments: what fits at every moment fits
// always. Wherever an item takes units, it takes the one at its anchor, so that of two items that
// meet the one with the lower anchor lies below the other at all moments. Here, an item's offset is
// the place of its anchor, which in most items is the lowest unit.
struct OffsetItem {
  int32_t begin = 0, end = 0;    // moments; begin < end
  int64_t height = 0;            // > 0; clears whatever shares a moment and lies above
  int64_t min_offset = 0;        // a valid offset
  int64_t max_offset = 0;        // below min_offset if it does not fit at all
  double width = 0;              // its length in time
  std::vector<int64_t> heights;  // at each of its moments: the units that it takes, in all
  // Of these, how many lie below the anchor. If empty, none do, and the heights rise: none is 0,
  // and the last is `height`.
  std::vector<int64_t> depths = {};
  int64_t anchor = 0;     // above the interval's own offset
  int64_t alignment = 1;  // offset - anchor is a multiple of it
  bool given = false;     // min_offset is its only offset

  // By how much the offset of `above`, which shares a moment with it, must be higher to lie above
  // it; 0 if they never take units at the same moment.
  int64_t HeightUnder(const OffsetItem& above) const;
  // The least of its offsets that is not below `offset`.
  int64_t Aligned(int64_t offset) const {
    if (alignment == 1) return offset;
    const int64_t above_multiple = (offset - anchor) % alignment;
    return above_multiple == 0 ? offset : offset + alignment - above_multiple;
  }
};

// An item that shares a moment with another one. It lies above the other one if its offset is
// higher by at least `height`, the other one's height where the two meet.
struct OffsetNeighbor {
  int32_t item = 0;
  int64_t height = 0;
};

struct OffsetInstance {
  std::vector<OffsetItem> items;
  // For each item, all that share a moment at which both take units.
  std::vector<std::vector<OffsetNeighbor>> neighbors;
  int64_t capacity = 0;  // for intervals whose heights are rounded up
  int32_t moments = 0;
  bool aligned = false;  // some item's alignment is not 1
  // For items with depths; empty if there are none. The heights under each item of its neighbors,
  // in their order; and for each moment the largest depth of an item.
  std::vector<std::vector<int64_t>> lifts = {};
  std::vector<int64_t> depths = {};

  bool shaped() const { return !depths.empty(); }
  // By how much `item` must be higher than its neighbor with that index to lie above it.
  int64_t LiftOver(int32_t item, size_t neighbor) const {
    return shaped() ? lifts[item][neighbor]
                    : items[neighbors[item][neighbor].item].HeightUnder(items[item]);
  }
};

// The limits of one SolveOffsets call and the nodes that it has looked at.
class OffsetBudget {
 public:
  explicit OffsetBudget(const OffsetLimits& limits)
      : max_nodes_(limits.nodes), deadline_(limits.seconds, limits.cancel) {}
  // Whether a limit of the call is reached. Once it is, it stays so.
  bool Spent() {
    if (!spent_) spent_ = (max_nodes_ > 0 && nodes >= max_nodes_) || deadline_.Passed();
    return spent_;
  }
  // Whether that, or the number of nodes of this attempt is reached.
  bool Exhausted() { return Spent() || nodes >= attempt_end_; }
  // Begins an attempt of so many nodes; no limit if 0.
  void BeginAttempt(int64_t attempt_nodes) {
    attempt_end_ = attempt_nodes > 0 ? nodes + attempt_nodes : std::numeric_limits<int64_t>::max();
  }
  int64_t nodes = 0;

 private:
  int64_t max_nodes_;  // no limit if 0
  int64_t attempt_end_ = std::numeric_limits<int64_t>::max();
  Deadline deadline_;
  bool spent_ = false;
};

// What items are ranked by. The first criterion in which two of them differ decides, and the larger
// one comes first; if they differ in none, the one with the lower index.
enum class OffsetCriterion : uint8_t {
  kLoad,      // the height of all that is yet to be placed at the fullest of its moments
  kWidth,     // its length in time
  kArea,      // its length in time times its height
  kCells,     // the number of its moments times its height
  kFailures,  // the dead ends so far at the worst of its moments
};
using OffsetOrder = std::array<OffsetCriterion, 3>;

class OffsetSearch {
 public:
  // Both must outlive the search.
  OffsetSearch(const OffsetInstance& instance, OffsetBudget& budget);

  // Finds the offsets of the items in `ids`, which share no moment with others, and writes them
  // into `offsets` if the result is kFeasible.
  OffsetStatus Solve(absl::Span<const int32_t> ids, std::vector<int64_t>& offsets);

  // Sorts the items in `ids` by `order`, given that exactly these are yet to be placed.
  void Sort(const OffsetOrder& order, std::vector<int32_t>& ids);

 private:
  // Items are placed in the order of their positions.
  struct Position {
    int64_t offset = 0;
    int32_t rank = -1;
  };
  struct Key {
    int64_t earliest = 0;  // a lower bound of the item's offset in all solutions below the node
    int32_t rank = 0;
    int32_t item = 0;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  // What Undo takes back: the item was placed if `offset` is -1, else its offset was raised from
  // it.
  struct Change {
    int32_t item = 0;
    int64_t offset = 0;
  };

  void Rank(std::vector<int32_t>& ids);
  bool SolveAll(const std::vector<int32_t>& ids, Position last);
  bool Branch(const std::vector<int32_t>& ids, Position last);
  bool SolveParts(std::vector<std::vector<int32_t>> parts, Position last);
  std::vector<std::vector<int32_t>> Split(const std::vector<int32_t>& ids);
  // What has `kShaped` is compiled apart for items with depths, which are rare.
  template <bool kShaped>
  bool Bound(const std::vector<int32_t>& ids, Position last, std::vector<Key>& keys);
  bool Blocked(int32_t item, Position last) const;
  template <bool kShaped>
  bool Stack(const std::vector<Key>& keys, int32_t begin, int32_t end);
  template <bool kShaped>
  bool RaiseWhatIsNotNext(std::vector<Key>& keys, int32_t begin, int32_t end, bool& raised);
  bool CanBeNext(int32_t item) const;
  void PlaceItem(int32_t item);
  void Undo(size_t mark);

  const OffsetInstance& instance_;
  OffsetBudget& budget_;
  OffsetOrder order_ = {};
  int64_t node_limit_ = 0;
  bool aborted_ = false;
  // For each item.
  std::vector<uint8_t> placed_;
  // Its offset if it is placed, else the lowest above all placed items that share a moment with it.
  std::vector<int64_t> offset_;
  std::vector<int32_t> rank_;

  std::vector<Change> trail_;

  // For each moment.
  std::vector<int64_t> failures_;
  std::vector<int64_t> open_;  // the sum of the heights that are not placed yet
  std::vector<int64_t> top_;   // the top of the lowest stack of the items that are not placed yet
  // The lowest end that an item there may have, the item that has it, and the next lowest end.
  struct Lowest {
    int64_t end = 0, second = 0;
    int32_t item = -1;
  };
  std::vector<Lowest> lowest_;
  std::vector<int32_t> reach_;  // the latest end of the items that begin there

  std::vector<std::array<double, 3>> sort_keys_;  // for each item
};

}  // namespace mallocgame
