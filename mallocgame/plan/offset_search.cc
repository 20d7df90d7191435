// Items are placed from the bottom up, in the order of (offset, rank), each resting on something.
// So the search meets every solution that cannot be pushed down once. This idea is M. Moffitt's
// ("canonical" solutions in MiniMalloc, ASPLOS 2023), as are leaving dominated offsets out and
// solving parts on their own. The following is new here. At each moment the items yet to be placed
// form a one-machine scheduling problem whose release dates are their lowest offsets; it bounds the
// height. Items that cannot be next at some moment, and those that were passed over, must wait for
// another one below them, which raises their release dates. And the order learns from dead ends.
#include "mallocgame/plan/offset_search.h"

#include <algorithm>
#include <limits>

namespace mallocgame {
namespace {

// Higher than every offset.
constexpr int64_t kNowhere = std::numeric_limits<int64_t>::max();

// The orders are tried in turn with more and more nodes each: where one order misses a solution by
// little, another finds it at once.
constexpr OffsetOrder kOrders[] = {
    {OffsetCriterion::kLoad, OffsetCriterion::kWidth, OffsetCriterion::kArea},
    {OffsetCriterion::kFailures, OffsetCriterion::kCells, OffsetCriterion::kArea},
    {OffsetCriterion::kLoad, OffsetCriterion::kCells, OffsetCriterion::kArea},
    {OffsetCriterion::kFailures, OffsetCriterion::kArea, OffsetCriterion::kWidth},
};
// The limit of the first run of each order; each later run has twice as many.
constexpr int64_t kNodesPerItem = 16;
// More rounds raise more release dates. Beyond three they did not pay on the instances of
// docs/offsets.md.
constexpr int kRaiseRounds = 3;

// Insertion sort: keys change little from node to node and from round to round.
template <class Key>
void SortNearlySorted(std::vector<Key>& keys) {
  for (size_t k = 1; k < keys.size(); ++k) {
    const Key key = keys[k];
    size_t to = k;
    for (; to > 0 && key < keys[to - 1]; --to) keys[to] = keys[to - 1];
    keys[to] = key;
  }
}

double Largest(const std::vector<int64_t>& by_moment, const OffsetItem& item) {
  return static_cast<double>(
      *std::max_element(by_moment.begin() + item.begin, by_moment.begin() + item.end));
}

}  // namespace

int64_t OffsetItem::HeightUnder(const OffsetItem& above) const {
  const int32_t first = std::max(begin, above.begin), last = std::min(end, above.end) - 1;
  if (depths.empty() && above.depths.empty()) return heights[last - begin];
  int64_t most = 0;
  for (int32_t m = first; m <= last; ++m) {
    const int64_t here = heights[m - begin], there = above.heights[m - above.begin];
    if (here == 0 || there == 0) continue;
    const int64_t under = depths.empty() ? 0 : depths[m - begin];
    const int64_t over = above.depths.empty() ? 0 : above.depths[m - above.begin];
    most = std::max(most, here - under + over);
  }
  return most;
}

OffsetSearch::OffsetSearch(const OffsetInstance& instance, OffsetBudget& budget)
    : instance_(instance), budget_(budget), placed_(instance.items.size()),
      offset_(instance.items.size()), rank_(instance.items.size()), failures_(instance.moments),
      open_(instance.moments), top_(instance.moments), lowest_(instance.moments),
      reach_(instance.moments), sort_keys_(instance.items.size()) {}

OffsetStatus OffsetSearch::Solve(absl::Span<const int32_t> ids, std::vector<int64_t>& offsets) {
  for (auto nodes = kNodesPerItem * static_cast<int64_t>(ids.size());; nodes *= 2) {
    for (const OffsetOrder& order : kOrders) {
      if (budget_.Exhausted()) return OffsetStatus::kStopped;
      for (const int32_t i : ids) {
        placed_[i] = false;
        offset_[i] = instance_.items[i].min_offset;
      }
      trail_.clear();
      aborted_ = false;
      node_limit_ = budget_.nodes + nodes;
      order_ = order;
      std::vector<int32_t> ranked(ids.begin(), ids.end());
      Rank(ranked);
      if (SolveAll(ranked, {})) {
        for (const int32_t i : ids) offsets[i] = offset_[i];
        return OffsetStatus::kFeasible;
      }
      if (!aborted_) return OffsetStatus::kInfeasible;
    }
  }
}

void OffsetSearch::Sort(const OffsetOrder& order, std::vector<int32_t>& ids) {
  for (const int32_t i : ids) {
    const OffsetItem& item = instance_.items[i];
    std::fill(open_.begin() + item.begin, open_.begin() + item.end, 0);
  }
  for (const int32_t i : ids) {
    const OffsetItem& item = instance_.items[i];
    for (int32_t m = item.begin; m < item.end; ++m) open_[m] += item.heights[m - item.begin];
  }
  for (const int32_t i : ids) {
    const OffsetItem& item = instance_.items[i];
    for (size_t k = 0; k < order.size(); ++k) {
      double& key = sort_keys_[i][k];
      const auto height = static_cast<double>(item.height);
      switch (order[k]) {
        case OffsetCriterion::kLoad: key = Largest(open_, item); break;
        case OffsetCriterion::kWidth: key = item.width; break;
        case OffsetCriterion::kArea: key = item.width * height; break;
        case OffsetCriterion::kCells: key = (item.end - item.begin) * height; break;
        case OffsetCriterion::kFailures: key = Largest(failures_, item); break;
      }
    }
  }
  std::sort(ids.begin(), ids.end(), [this](int32_t a, int32_t b) {
    return sort_keys_[a] != sort_keys_[b] ? sort_keys_[a] > sort_keys_[b] : a < b;
  });
}

void OffsetSearch::Rank(std::vector<int32_t>& ids) {
  Sort(order_, ids);
  for (size_t k = 0; k < ids.size(); ++k) rank_[ids[k]] = static_cast<int32_t>(k);
}

// `ids` are all that is yet to be placed at their moments, in any order.
bool OffsetSearch::SolveAll(const std::vector<int32_t>& ids, Position last) {
  if (ids.empty()) return true;
  if (ids.size() == 1) {
    if (offset_[ids[0]] > instance_.items[ids[0]].max_offset) return false;
    PlaceItem(ids[0]);
    return true;
  }
  std::vector<std::vector<int32_t>> parts = Split(ids);
  return parts.empty() ? Branch(ids, last) : SolveParts(std::move(parts), last);
}

// The parts of `ids` that share no moment; none if there is only one.
std::vector<std::vector<int32_t>> OffsetSearch::Split(const std::vector<int32_t>& ids) {
  int32_t begin = instance_.moments, end = 0;
  for (const int32_t i : ids) {
    begin = std::min(begin, instance_.items[i].begin);
    end = std::max(end, instance_.items[i].end);
  }
  std::fill(reach_.begin() + begin, reach_.begin() + end, 0);
  for (const int32_t i : ids) {
    const OffsetItem& item = instance_.items[i];
    reach_[item.begin] = std::max(reach_[item.begin], item.end);
  }
  std::vector<int32_t> ends;  // of the parts
  int32_t reached = reach_[begin];
  for (int32_t m = begin + 1; m < end; ++m) {
    if (reach_[m] > 0 && m >= reached) ends.push_back(reached);
    reached = std::max(reached, reach_[m]);
  }
  if (ends.empty()) return {};
  ends.push_back(end);
  std::vector<std::vector<int32_t>> parts(ends.size());
  for (const int32_t i : ids) {
    const auto part = std::upper_bound(ends.begin(), ends.end(), instance_.items[i].begin);
    parts[part - ends.begin()].push_back(i);
  }
  return parts;
}

// Solves large parts first, as they fail more often. Each part is ranked anew, by what is left.
bool OffsetSearch::SolveParts(std::vector<std::vector<int32_t>> parts, Position last) {
  std::stable_sort(parts.begin(), parts.end(),
                   [](const auto& a, const auto& b) { return a.size() > b.size(); });
  std::vector<std::pair<int32_t, int32_t>> old_ranks;
  for (std::vector<int32_t>& part : parts) {
    for (const int32_t i : part) old_ranks.emplace_back(i, rank_[i]);
    Rank(part);
    if (SolveAll(part, {last.offset, -1})) continue;
    for (const auto& [item, rank] : old_ranks) rank_[item] = rank;
    return false;
  }
  return true;
}

bool OffsetSearch::Branch(const std::vector<int32_t>& ids, Position last) {
  ++budget_.nodes;
  if (budget_.nodes > node_limit_ || budget_.Exhausted()) {
    aborted_ = true;
    return false;
  }
  std::vector<Key> keys;
  const bool bounded =
      instance_.shaped() ? Bound<true>(ids, last, keys) : Bound<false>(ids, last, keys);
  if (!bounded) return false;
  // In a solution that cannot be pushed down, no item fits wholly below the next one: the next one
  // is below the lowest end.
  int64_t lowest_end = kNowhere;
  for (const int32_t i : ids)
    lowest_end = std::min(lowest_end, offset_[i] + instance_.items[i].height);
  std::vector<int32_t> next;
  for (const Key& key : keys) {
    if (key.earliest >= lowest_end) break;
    if (key.earliest == offset_[key.item] && CanBeNext(key.item)) next.push_back(key.item);
  }
  std::vector<int32_t> rest;
  rest.reserve(ids.size());
  for (const int32_t i : next) {
    const size_t mark = trail_.size();
    PlaceItem(i);
    rest.clear();
    for (const Key& key : keys) {
      if (key.item != i) rest.push_back(key.item);
    }
    if (SolveAll(rest, {offset_[i], rank_[i]})) return true;
    Undo(mark);
    if (aborted_) return false;
  }
  return false;
}

// Makes the keys of the items. False if there is no solution below this node.
template <bool kShaped>
bool OffsetSearch::Bound(const std::vector<int32_t>& ids, Position last, std::vector<Key>& keys) {
  int32_t begin = instance_.moments, end = 0;
  for (const int32_t i : ids) {
    const OffsetItem& item = instance_.items[i];
    // It fits wholly below the last one, so it should have been placed before it.
    if (offset_[i] + item.height <= last.offset) return false;
    begin = std::min(begin, item.begin);
    end = std::max(end, item.end);
  }
  keys.reserve(ids.size());
  for (const int32_t i : ids) {
    int64_t earliest = offset_[i];
    if (Blocked(i, last)) {  // it can only lie on top of another one yet to be placed
      earliest = kNowhere;
      const std::vector<OffsetNeighbor>& neighbors = instance_.neighbors[i];
      for (size_t k = 0; k < neighbors.size(); ++k) {
        if (placed_[neighbors[k].item]) continue;
        earliest = std::min(
            earliest, std::max(offset_[neighbors[k].item], last.offset) + instance_.LiftOver(i, k));
      }
      if (earliest == kNowhere) return false;
    }
    keys.push_back({earliest, rank_[i], i});
  }
  std::fill(open_.begin() + begin, open_.begin() + end, 0);
  for (const int32_t i : ids) {
    const OffsetItem& item = instance_.items[i];
    for (int32_t m = item.begin; m < item.end; ++m) open_[m] += item.heights[m - item.begin];
  }
  bool raised = true;
  for (int round = 0; raised; ++round) {
    SortNearlySorted(keys);
    if (!Stack<kShaped>(keys, begin, end)) return false;
    if (round == kRaiseRounds) break;
    if (!RaiseWhatIsNotNext<kShaped>(keys, begin, end, raised)) return false;
  }
  return true;
}

// Whether the item was passed over: it could have been placed before the last one, and was not.
bool OffsetSearch::Blocked(int32_t item, Position last) const {
  return offset_[item] < last.offset || (offset_[item] == last.offset && rank_[item] < last.rank);
}

// Piles the items up at each moment, in the order of their release dates, so that no pile of them
// is lower. False if one is too high. Items with depths may begin below their release dates, which
// at such a moment are all taken to be lower by the largest depth, so that their order stays.
template <bool kShaped>
bool OffsetSearch::Stack(const std::vector<Key>& keys, int32_t begin, int32_t end) {
  std::fill(top_.begin() + begin, top_.begin() + end, 0);
  for (const Key& key : keys) {
    const OffsetItem& item = instance_.items[key.item];
    if (key.earliest > item.max_offset) {
      ++failures_[item.begin];
      return false;
    }
    for (int32_t m = item.begin; m < item.end; ++m) {
      const int64_t height = item.heights[m - item.begin];
      int64_t bottom = key.earliest;
      if constexpr (kShaped) {
        if (height == 0) continue;
        bottom -= instance_.depths[m];
      }
      top_[m] = std::max(top_[m], bottom) + height;
    }
  }
  for (int32_t m = begin; m < end; ++m) {
    if (top_[m] > instance_.capacity) {
      ++failures_[m];
      return false;
    }
  }
  return true;
}

// If what is open at one of an item's moments does not fit above the item's lowest unit, the item
// is not the next one there, but rests on another one: it is not lower than the lowest end of the
// others. False if there is no solution.
template <bool kShaped>
bool OffsetSearch::RaiseWhatIsNotNext(std::vector<Key>& keys, int32_t begin, int32_t end,
                                      bool& raised) {
  raised = false;
  std::fill(lowest_.begin() + begin, lowest_.begin() + end, Lowest{kNowhere, kNowhere, -1});
  for (const Key& key : keys) {
    const OffsetItem& item = instance_.items[key.item];
    for (int32_t m = item.begin; m < item.end; ++m) {
      int64_t item_end = key.earliest + item.heights[m - item.begin];
      if constexpr (kShaped) {
        if (item.heights[m - item.begin] == 0) continue;
        if (!item.depths.empty()) item_end -= item.depths[m - item.begin];
      }
      Lowest& lowest = lowest_[m];
      if (item_end < lowest.end) {
        lowest = {item_end, lowest.end, key.item};
      } else {
        lowest.second = std::min(lowest.second, item_end);
      }
    }
  }
  for (Key& key : keys) {
    const OffsetItem& item = instance_.items[key.item];
    int64_t earliest = key.earliest;
    for (int32_t m = item.begin; m < item.end; ++m) {
      int64_t depth = 0;
      if constexpr (kShaped) {
        if (item.heights[m - item.begin] == 0) continue;
        if (!item.depths.empty()) depth = item.depths[m - item.begin];
      }
      if (key.earliest - depth + open_[m] <= instance_.capacity) continue;
      const int64_t other = lowest_[m].item == key.item ? lowest_[m].second : lowest_[m].end;
      if (other == kNowhere) {
        ++failures_[m];
        return false;
      }
      earliest = std::max(earliest, other + depth);
    }
    if (instance_.aligned) earliest = item.Aligned(earliest);
    raised = raised || earliest > key.earliest;
    key.earliest = earliest;
  }
  return true;
}

bool OffsetSearch::CanBeNext(int32_t i) const {
  const OffsetItem& item = instance_.items[i];
  for (int32_t m = item.begin; m < item.end; ++m) {
    int64_t lowest = offset_[i];
    if (!item.depths.empty()) {
      if (item.heights[m - item.begin] == 0) continue;
      lowest -= item.depths[m - item.begin];
    }
    if (lowest + open_[m] > instance_.capacity) return false;
  }
  return true;
}

void OffsetSearch::PlaceItem(int32_t i) {
  placed_[i] = true;
  trail_.push_back({i, -1});
  for (const OffsetNeighbor& n : instance_.neighbors[i]) {
    int64_t above = offset_[i] + n.height;
    if (placed_[n.item] || offset_[n.item] >= above) continue;
    if (instance_.aligned) above = instance_.items[n.item].Aligned(above);
    trail_.push_back({n.item, offset_[n.item]});
    offset_[n.item] = above;
  }
}

void OffsetSearch::Undo(size_t mark) {
  for (; trail_.size() > mark; trail_.pop_back()) {
    const Change& change = trail_.back();
    if (change.offset < 0) {
      placed_[change.item] = false;
    } else {
      offset_[change.item] = change.offset;
    }
  }
}

}  // namespace mallocgame
