// Checks a problem, converts it into whole units, places each part with heuristics, and gives the
// parts for which that is too high to the search.
#include "mallocgame/plan/offsets.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "mallocgame/base/error.h"
#include "mallocgame/base/rounding.h"
#include "mallocgame/plan/offset_search.h"

namespace mallocgame {
namespace {

// The sum of 2^16 sizes of this many bytes fits 64 bits.
constexpr int64_t kMaxBytes = int64_t{1} << 44;
constexpr size_t kMaxIntervals = size_t{1} << 16;
constexpr int64_t kMaxMeetings = int64_t{1} << 24;
constexpr size_t kMaxSearched = 2000;

constexpr OffsetOrder kHeuristicOrders[] = {
    {OffsetCriterion::kLoad, OffsetCriterion::kCells, OffsetCriterion::kArea},
    {OffsetCriterion::kArea, OffsetCriterion::kWidth, OffsetCriterion::kLoad},
    {OffsetCriterion::kWidth, OffsetCriterion::kArea, OffsetCriterion::kLoad},
    {OffsetCriterion::kCells, OffsetCriterion::kArea, OffsetCriterion::kLoad},
};

absl::Status CheckSteps(size_t index, const OffsetInterval& interval) {
  const std::vector<OffsetStep>& steps = interval.steps;
  if (steps.empty()) return absl::OkStatus();
  bool good = steps.front().begin == interval.begin && steps.front().size > 0 &&
              steps.back().begin < interval.end && steps.back().size == interval.size;
  for (size_t k = 1; k < steps.size(); ++k) {
    good = good && steps[k].begin > steps[k - 1].begin && steps[k].size > steps[k - 1].size;
  }
  if (good) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "interval ", index, ": its steps must rise from its begin to its size ", interval.size));
}

absl::Status CheckProblem(const OffsetProblem& problem) {
  const auto limited = [](absl::string_view what, int64_t found, int64_t least) -> absl::Status {
    if (found >= least && found <= kMaxBytes) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": found ", found, ", allowed: ", least, " to ", kMaxBytes));
  };
  MG_RETURN_IF_ERROR(limited("capacity", problem.capacity, 0));
  MG_RETURN_IF_ERROR(limited("alignment", problem.alignment, 1));
  if (problem.intervals.size() > kMaxIntervals) {
    return absl::ResourceExhaustedError(
        absl::StrCat("found ", problem.intervals.size(), " intervals, allowed: ", kMaxIntervals));
  }
  for (size_t i = 0; i < problem.intervals.size(); ++i) {
    const OffsetInterval& interval = problem.intervals[i];
    MG_RETURN_IF_ERROR(limited(absl::StrCat("interval ", i, ": size"), interval.size, 1));
    MG_RETURN_IF_ERROR(
        limited(absl::StrCat("interval ", i, ": min_offset"), interval.min_offset, 0));
    if (interval.begin >= interval.end) {
      return absl::InvalidArgumentError(absl::StrCat("interval ", i, ": found times [",
                                                     interval.begin, ", ", interval.end,
                                                     "), allowed: an end above the begin"));
    }
    MG_RETURN_IF_ERROR(CheckSteps(i, interval));
  }
  return absl::OkStatus();
}

// The times that matter: each last begin before an end. All that is there at any other time is
// there at one of these too.
std::vector<int64_t> Moments(const std::vector<OffsetInterval>& intervals) {
  std::vector<std::pair<int64_t, bool>> events;  // ends before begins
  for (const OffsetInterval& interval : intervals) {
    events.emplace_back(interval.begin, true);
    events.emplace_back(interval.end, false);
    for (const OffsetStep& step : interval.steps) events.emplace_back(step.begin, true);
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

// Sizes become multiples of the alignment and then of the largest unit that divides them all.
void Measure(const OffsetProblem& problem, const std::vector<int64_t>& moments, int64_t unit,
             OffsetInstance& instance) {
  const int64_t alignment = problem.alignment;
  for (size_t i = 0; i < problem.intervals.size(); ++i) {
    const OffsetInterval& interval = problem.intervals[i];
    OffsetItem& item = instance.items[i];
    item.height = DivideUp(interval.size, alignment) / unit;
    item.min_offset = DivideUp(interval.min_offset, alignment) / unit;
    item.max_offset = interval.size > problem.capacity
                          ? -1
                          : (problem.capacity - interval.size) / alignment / unit;
    item.width = static_cast<double>(interval.end) - static_cast<double>(interval.begin);
    item.heights.assign(item.end - item.begin, item.height);
    size_t step = 0;
    for (int32_t m = item.begin; m < item.end && !interval.steps.empty(); ++m) {
      while (step + 1 < interval.steps.size() && interval.steps[step + 1].begin <= moments[m])
        ++step;
      item.heights[m - item.begin] = DivideUp(interval.steps[step].size, alignment) / unit;
    }
  }
  instance.capacity = DivideUp(problem.capacity, alignment) / unit;
}

void FindNeighbors(OffsetInstance& instance) {
  const std::vector<OffsetItem>& items = instance.items;
  std::vector<int32_t> order(items.size()), active;
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&items](int32_t a, int32_t b) {
    return std::pair(items[a].begin, a) < std::pair(items[b].begin, b);
  });
  instance.neighbors.resize(items.size());
  for (const int32_t i : order) {
    active.erase(std::remove_if(active.begin(), active.end(),
                                [&](int32_t j) { return items[j].end <= items[i].begin; }),
                 active.end());
    for (const int32_t j : active) {
      instance.neighbors[i].push_back({j, items[i].HeightUnder(items[j])});
      instance.neighbors[j].push_back({i, items[j].HeightUnder(items[i])});
    }
    active.push_back(i);
  }
}

absl::StatusOr<OffsetInstance> MakeInstance(const OffsetProblem& problem, int64_t unit) {
  OffsetInstance instance;
  const std::vector<int64_t> moments = Moments(problem.intervals);
  instance.moments = static_cast<int32_t>(moments.size());
  const auto moment_from = [&moments](int64_t time) {
    return static_cast<int32_t>(std::lower_bound(moments.begin(), moments.end(), time) -
                                moments.begin());
  };
  instance.items.resize(problem.intervals.size());
  for (size_t i = 0; i < problem.intervals.size(); ++i) {
    instance.items[i].begin = moment_from(problem.intervals[i].begin);
    instance.items[i].end = moment_from(problem.intervals[i].end);
  }
  MG_RETURN_IF_ERROR(CheckMeetings(instance.items, instance.moments));
  Measure(problem, moments, unit, instance);
  FindNeighbors(instance);
  return instance;
}

// The largest number that all sizes and least offsets are multiples of, in alignments.
int64_t UnitOf(const OffsetProblem& problem) {
  int64_t unit = 0;
  for (const OffsetInterval& interval : problem.intervals) {
    unit = std::gcd(unit, DivideUp(interval.size, problem.alignment));
    unit = std::gcd(unit, DivideUp(interval.min_offset, problem.alignment));
    for (const OffsetStep& step : interval.steps)
      unit = std::gcd(unit, DivideUp(step.size, problem.alignment));
  }
  return std::max<int64_t>(unit, 1);
}

// The parts of the problem, in time order: sets of items that share no moment with other parts.
std::vector<std::vector<int32_t>> Parts(const OffsetInstance& instance) {
  std::vector<int32_t> order(instance.items.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return instance.items[a].begin < instance.items[b].begin;
  });
  std::vector<std::vector<int32_t>> parts;
  int32_t end = 0;
  for (const int32_t i : order) {
    if (parts.empty() || instance.items[i].begin >= end) parts.emplace_back();
    parts.back().push_back(i);
    end = std::max(end, instance.items[i].end);
  }
  return parts;
}

struct Placed {
  int32_t begin, end, item;  // moments
  int64_t offset;
};

// The lowest offset for the item that conflicts with none of `placed`, which are sorted by offset.
int64_t LowestOffset(const std::vector<OffsetItem>& items, const OffsetItem& item,
                     const std::vector<Placed>& placed) {
  int64_t offset = item.min_offset;
  // An item that is filled step by step may have fit below one, and no longer fit there when
  // another one has lifted it.
  for (bool lifted = true; lifted;) {
    lifted = false;
    for (const Placed& p : placed) {
      if (p.offset >= offset + item.height) break;
      if (p.begin >= item.end || item.begin >= p.end) continue;
      const int64_t top = p.offset + items[p.item].HeightUnder(item);
      if (offset >= top || offset + item.HeightUnder(items[p.item]) <= p.offset) continue;
      offset = top;
      lifted = item.heights.front() != item.height;
    }
  }
  return offset;
}

// Places each item of `ranked` in turn as low as possible, holes included. For few items it is
// quicker to look at all that are placed, in order, than to collect those that share a moment.
void FirstFit(const OffsetInstance& instance, const std::vector<int32_t>& ranked,
              std::vector<int64_t>& offsets) {
  const auto lower = [](const Placed& a, const Placed& b) { return a.offset < b.offset; };
  const bool few = ranked.size() <= kMaxSearched;
  for (const int32_t i : ranked) offsets[i] = -1;
  std::vector<Placed> placed;
  for (const int32_t i : ranked) {
    const OffsetItem& item = instance.items[i];
    if (!few) {
      placed.clear();
      for (const OffsetNeighbor& n : instance.neighbors[i]) {
        const OffsetItem& other = instance.items[n.item];
        if (offsets[n.item] >= 0)
          placed.push_back({other.begin, other.end, n.item, offsets[n.item]});
      }
      std::sort(placed.begin(), placed.end(), lower);
    }
    offsets[i] = LowestOffset(instance.items, item, placed);
    const Placed now = {item.begin, item.end, i, offsets[i]};
    if (few) placed.insert(std::upper_bound(placed.begin(), placed.end(), now, lower), now);
  }
}

// By how much the items in `part` end too high; 0 if they fit.
int64_t Excess(const OffsetInstance& instance, const std::vector<int32_t>& part,
               const std::vector<int64_t>& offsets) {
  int64_t excess = 0;
  for (const int32_t i : part) excess = std::max(excess, offsets[i] - instance.items[i].max_offset);
  return excess;
}

// Gives the items in `part` the lowest offsets that the heuristics find; true if these fit. `tried`
// is working memory, as long as `offsets`.
bool PlaceQuickly(const OffsetInstance& instance, const std::vector<int32_t>& part,
                  OffsetSearch& search, OffsetBudget& budget, std::vector<int64_t>& tried,
                  std::vector<int64_t>& offsets) {
  int64_t least = -1;
  for (const OffsetOrder& order : kHeuristicOrders) {
    if (least >= 0 && budget.Exhausted()) break;
    std::vector<int32_t> ranked = part;
    search.Sort(order, ranked);
    FirstFit(instance, ranked, tried);
    const int64_t excess = Excess(instance, part, tried);
    if (least >= 0 && excess >= least) continue;
    least = excess;
    for (const int32_t i : part) offsets[i] = tried[i];
    if (excess == 0) return true;
  }
  return false;
}

// Whether there is more at one moment than fits, or one item that fits nowhere, so that no search
// is needed.
bool TooMuch(const OffsetInstance& instance) {
  std::vector<int64_t> load(instance.moments);
  bool too_much = false;
  for (const OffsetItem& item : instance.items) {
    too_much = too_much || item.min_offset > item.max_offset;
    for (int32_t m = item.begin; m < item.end; ++m) load[m] += item.heights[m - item.begin];
  }
  return too_much || std::any_of(load.begin(), load.end(),
                                 [&](int64_t sum) { return sum > instance.capacity; });
}

OffsetStatus Worse(OffsetStatus a, OffsetStatus b) {
  for (const OffsetStatus status : {OffsetStatus::kInfeasible, OffsetStatus::kStopped}) {
    if (a == status || b == status) return status;
  }
  return OffsetStatus::kFeasible;
}

}  // namespace

const char* OffsetStatusName(OffsetStatus status) {
  switch (status) {
    case OffsetStatus::kFeasible: return "feasible";
    case OffsetStatus::kInfeasible: return "infeasible";
    case OffsetStatus::kStopped: break;
  }
  return "stopped";
}

absl::StatusOr<OffsetResult> SolveOffsets(const OffsetProblem& problem,
                                          const OffsetLimits& limits) {
  MG_RETURN_IF_ERROR(CheckProblem(problem));
  OffsetBudget budget(limits);
  const int64_t unit = UnitOf(problem);
  MG_ASSIGN_OR_RETURN(const OffsetInstance instance, MakeInstance(problem, unit));
  OffsetSearch search(instance, budget);
  OffsetResult result;
  result.status = TooMuch(instance) ? OffsetStatus::kInfeasible : OffsetStatus::kFeasible;
  result.offsets.resize(instance.items.size());
  std::vector<int64_t> tried(result.offsets.size());
  for (const std::vector<int32_t>& part : Parts(instance)) {
    if (PlaceQuickly(instance, part, search, budget, tried, result.offsets)) continue;
    if (result.status == OffsetStatus::kInfeasible) continue;
    const bool searched = part.size() <= kMaxSearched;
    result.status = Worse(result.status,
                          searched ? search.Solve(part, result.offsets) : OffsetStatus::kStopped);
  }
  for (size_t i = 0; i < result.offsets.size(); ++i) {
    result.offsets[i] *= unit * problem.alignment;
    result.height = std::max(result.height, result.offsets[i] + problem.intervals[i].size);
  }
  result.nodes = budget.nodes;
  return result;
}

}  // namespace mallocgame
