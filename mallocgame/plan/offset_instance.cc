// All offsets are multiples of the grain, which divides all alignments, so sizes are rounded up to
// it. The lowest offsets are sums of sizes, and so multiples of what divides all these.
#include "mallocgame/plan/offset_instance.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "mallocgame/base/error.h"
#include "mallocgame/base/rounding.h"
#include "mallocgame/plan/offset_problem.h"

namespace mallocgame {
namespace {

constexpr int64_t kMaxMeetings = int64_t{1} << 24;

bool Contains(const OffsetPiece& piece, const OffsetPiece& other) {
  return piece.low <= other.low && other.high <= piece.high;
}

// The times that matter: each last begin before an end. All that is there at any other time is
// there at one of these too. A piece that grows does not end.
std::vector<int64_t> Moments(const std::vector<std::vector<OffsetPiece>>& pieces) {
  std::vector<std::pair<int64_t, bool>> events;  // ends before begins
  for (const std::vector<OffsetPiece>& of_item : pieces) {
    for (size_t k = 0; k < of_item.size(); ++k) {
      const bool grows = k + 1 < of_item.size() && of_item[k + 1].begin == of_item[k].end &&
                         Contains(of_item[k + 1], of_item[k]);
      events.emplace_back(of_item[k].begin, true);
      if (!grows) events.emplace_back(of_item[k].end, false);
    }
  }
  std::sort(events.begin(), events.end());
  std::vector<int64_t> moments;
  for (size_t e = 1; e < events.size(); ++e) {
    if (!events[e].second && events[e - 1].second) moments.push_back(events[e - 1].first);
  }
  return moments;
}

// Checks the limits on memory, before anything is allocated that grows faster than the number of
// intervals.
absl::Status CheckMeetings(const std::vector<OffsetItem>& items, int32_t moments) {
  std::vector<int64_t> begun(moments + 1), ended(begun.size());
  int64_t meetings = 0, pairs = 0, active = 0;
  for (const OffsetItem& item : items) {
    meetings += item.end - item.begin;
    ++begun[item.begin];
    ++ended[item.end];
  }
  for (int32_t m = 0; m < moments; ++m) {
    active -= ended[m];
    pairs += begun[m] * active + begun[m] * (begun[m] - 1) / 2;
    active += begun[m];
  }
  if (meetings <= kMaxMeetings && pairs <= kMaxMeetings) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("found ", pairs, " pairs of overlapping intervals, and ", meetings,
                   " meetings of intervals and moments, allowed: ", kMaxMeetings, " each"));
}

// What all offsets, and all lowest bytes of windows, are multiples of.
int64_t GrainOf(const OffsetProblem& problem, const std::vector<size_t>& intervals,
                const std::vector<std::vector<OffsetPiece>>& pieces) {
  int64_t grain = 0;
  for (const size_t i : intervals)
    grain = std::gcd(grain, AlignmentOf(problem, problem.intervals[i]));
  for (const std::vector<OffsetPiece>& of_item : pieces) {
    for (const OffsetPiece& piece : of_item) grain = std::gcd(grain, piece.low);
  }
  return std::max<int64_t>(grain, 1);
}

int64_t OwnLowest(const OffsetProblem& problem, const OffsetInterval& interval) {
  return interval.given ? *interval.given
                        : RoundUp(interval.min_offset, AlignmentOf(problem, interval));
}

// The largest number of bytes that all sizes and least offsets are multiples of, once rounded up to
// the grain, and all alignments that are more than the grain.
int64_t UnitOf(const OffsetProblem& problem, const std::vector<size_t>& intervals,
               const std::vector<std::vector<OffsetPiece>>& pieces, int64_t grain) {
  int64_t unit = 0;
  for (size_t k = 0; k < intervals.size(); ++k) {
    const OffsetInterval& interval = problem.intervals[intervals[k]];
    unit = std::gcd(unit, OwnLowest(problem, interval));
    const int64_t alignment = AlignmentOf(problem, interval);
    if (alignment != grain) unit = std::gcd(unit, alignment);
    for (const OffsetPiece& piece : pieces[k]) {
      unit = std::gcd(unit, RoundUp(piece.high, grain));
      unit = std::gcd(unit, piece.low);
    }
  }
  return std::max(unit, grain);
}

// What is taken at the fullest moment. Only the interval on top need not be rounded up.
int64_t Load(const std::vector<std::vector<OffsetPiece>>& pieces,
             const std::vector<int64_t>& moments, int64_t grain) {
  std::vector<int64_t> load(moments.size()), slack(moments.size());
  for (const std::vector<OffsetPiece>& of_item : pieces) {
    auto m = std::lower_bound(moments.begin(), moments.end(), of_item.front().begin);
    for (const OffsetPiece& piece : of_item) {
      for (; m != moments.end() && *m < piece.begin;) ++m;
      for (; m != moments.end() && *m < piece.end; ++m) {
        const int64_t rounded = RoundUp(piece.high, grain);
        load[m - moments.begin()] += rounded - piece.low;
        slack[m - moments.begin()] = std::max(slack[m - moments.begin()], rounded - piece.high);
      }
    }
  }
  int64_t most = 0;
  for (size_t m = 0; m < moments.size(); ++m) most = std::max(most, load[m] - slack[m]);
  return most;
}

// Fills in what the item takes at its moments, `units` of bytes each. Returns whether it is more
// than the interval takes.
bool Shape(const std::vector<OffsetPiece>& pieces, bool gaps, const std::vector<int64_t>& moments,
           int64_t unit, OffsetItem& item) {
  for (const OffsetPiece& piece : pieces) item.anchor = std::max(item.anchor, piece.low / unit);
  item.heights.assign(item.end - item.begin, 0);
  if (gaps) item.depths.assign(item.end - item.begin, 0);
  bool widened = false;
  size_t k = 0;
  for (int32_t m = item.begin; m < item.end; ++m) {
    while (k + 1 < pieces.size() && pieces[k].end <= moments[m]) ++k;
    const OffsetPiece& piece = pieces[k];
    if (moments[m] < piece.begin) continue;
    const int64_t low = piece.low / unit, high = DivideUp(piece.high, unit);
    widened = widened || high <= item.anchor;
    item.heights[m - item.begin] = std::max(high, item.anchor + 1) - low;
    if (gaps) item.depths[m - item.begin] = item.anchor - low;
  }
  item.height = *std::max_element(item.heights.begin(), item.heights.end());
  return widened;
}

}  // namespace

absl::StatusOr<OffsetModel> OffsetModel::Create(const OffsetProblem& problem) {
  OffsetModel model(problem);
  std::vector<std::vector<OffsetPiece>> pieces;
  model.apart_.assign(problem.intervals.size(), -1);
  for (size_t i = 0; i < problem.intervals.size(); ++i) {
    const OffsetInterval& interval = problem.intervals[i];
    const int64_t lowest = OwnLowest(problem, interval);
    model.bound_ = std::max(model.bound_, lowest + interval.size);
    std::vector<OffsetPiece> taken = PiecesOf(interval);
    if (taken.empty()) {
      model.apart_[i] = lowest;
      model.apart_height_ = std::max(model.apart_height_, lowest + interval.size);
    } else {
      model.intervals_.push_back(i);
      pieces.push_back(std::move(taken));
    }
  }
  OffsetInstance& instance = model.instance_;
  const std::vector<int64_t> moments = Moments(pieces);
  instance.moments = static_cast<int32_t>(moments.size());
  const auto moment_from = [&moments](int64_t time) {
    return static_cast<int32_t>(std::lower_bound(moments.begin(), moments.end(), time) -
                                moments.begin());
  };
  instance.items.resize(pieces.size());
  for (size_t k = 0; k < pieces.size(); ++k) {
    instance.items[k].begin = moment_from(pieces[k].front().begin);
    instance.items[k].end = moment_from(pieces[k].back().end);
  }
  MG_RETURN_IF_ERROR(CheckMeetings(instance.items, instance.moments));
  const int64_t grain = GrainOf(problem, model.intervals_, pieces);
  const int64_t unit = UnitOf(problem, model.intervals_, pieces, grain);
  model.grain_ = grain;
  model.unit_ = unit;
  for (size_t k = 0; k < pieces.size(); ++k) {
    const OffsetInterval& interval = problem.intervals[model.intervals_[k]];
    OffsetItem& item = instance.items[k];
    model.widened_ |= Shape(pieces[k], !interval.gaps.empty(), moments, unit, item);
    item.given = interval.given.has_value();
    const int64_t alignment = AlignmentOf(problem, interval);
    if (alignment != grain) item.alignment = alignment / unit;
    instance.aligned = instance.aligned || item.alignment != 1;
    item.min_offset = OwnLowest(problem, interval) / unit + item.anchor;
    item.width = static_cast<double>(interval.end) - static_cast<double>(interval.begin);
    for (int32_t m = item.begin; m < item.end && !item.depths.empty(); ++m) {
      instance.depths.resize(moments.size());
      instance.depths[m] = std::max(instance.depths[m], item.depths[m - item.begin]);
    }
  }
  model.FindNeighbors();
  model.bound_ = std::max(model.bound_, Load(pieces, moments, grain));
  model.bound_ = model.NextHeight(model.bound_);
  return model;
}

void OffsetModel::FindNeighbors() {
  std::vector<OffsetItem>& items = instance_.items;
  const bool shaped = instance_.shaped();
  std::vector<int32_t> order(items.size()), active;
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&items](int32_t a, int32_t b) {
    return std::pair(items[a].begin, a) < std::pair(items[b].begin, b);
  });
  instance_.neighbors.resize(items.size());
  if (shaped) instance_.lifts.resize(items.size());
  for (const int32_t i : order) {
    active.erase(std::remove_if(active.begin(), active.end(),
                                [&](int32_t j) { return items[j].end <= items[i].begin; }),
                 active.end());
    for (const int32_t j : active) {
      const int64_t under = items[i].HeightUnder(items[j]), over = items[j].HeightUnder(items[i]);
      if (under == 0) continue;
      instance_.neighbors[i].push_back({j, under});
      instance_.neighbors[j].push_back({i, over});
      if (!shaped) continue;
      instance_.lifts[i].push_back(over);
      instance_.lifts[j].push_back(under);
    }
    active.push_back(i);
  }
  if (!shaped) return;
  // What lies above may reach down beside an item.
  for (size_t i = 0; i < items.size(); ++i) {
    for (const OffsetNeighbor& n : instance_.neighbors[i])
      items[i].height = std::max(items[i].height, n.height);
  }
}

void OffsetModel::SetCapacity(int64_t capacity) {
  instance_.capacity = RoundUp(capacity, grain_) / unit_;
  for (size_t k = 0; k < instance_.items.size(); ++k) {
    OffsetItem& item = instance_.items[k];
    const int64_t room = capacity - problem_->intervals[intervals_[k]].size;
    item.max_offset = room < 0 ? -1 : room / unit_ + item.anchor;
    if (item.given) item.max_offset = std::min(item.max_offset, item.min_offset);
  }
}

std::vector<int64_t> OffsetModel::Offsets(const std::vector<int64_t>& item_offsets) const {
  std::vector<int64_t> offsets = apart_;
  for (size_t k = 0; k < item_offsets.size(); ++k)
    offsets[intervals_[k]] = (item_offsets[k] - instance_.items[k].anchor) * unit_;
  return offsets;
}

int64_t OffsetModel::NextHeight(int64_t height) const {
  if (height <= apart_height_) return apart_height_;
  int64_t next = -1;
  for (const size_t i : intervals_) {
    const int64_t size = problem_->intervals[i].size;
    // The end of an interval is its size above a multiple of the unit.
    const int64_t end = height <= size ? size : size + RoundUp(height - size, unit_);
    if (next < 0 || end < next) next = end;
  }
  return next < 0 ? height : next;
}

}  // namespace mallocgame
