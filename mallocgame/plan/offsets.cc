// Checks a problem, converts it into whole units, places each part with heuristics, and gives the
// parts for which that is too high to the search.
#include "mallocgame/plan/offsets.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "mallocgame/base/error.h"
#include "mallocgame/base/rounding.h"
#include "mallocgame/plan/offset_check.h"
#include "mallocgame/plan/offset_instance.h"
#include "mallocgame/plan/offset_problem.h"
#include "mallocgame/plan/offset_search.h"

namespace mallocgame {
namespace {

constexpr size_t kMaxIntervals = size_t{1} << 16;
constexpr size_t kMaxSearched = 2000;
// The nodes that each attempt at a height may look at in each part, in the first round of attempts.
// In each later round it is four times as many.
constexpr int64_t kRoundNodes = 4096;

constexpr OffsetOrder kHeuristicOrders[] = {
    {OffsetCriterion::kLoad, OffsetCriterion::kCells, OffsetCriterion::kArea},
    {OffsetCriterion::kArea, OffsetCriterion::kWidth, OffsetCriterion::kLoad},
    {OffsetCriterion::kWidth, OffsetCriterion::kArea, OffsetCriterion::kLoad},
    {OffsetCriterion::kCells, OffsetCriterion::kArea, OffsetCriterion::kLoad},
};

// Given offsets must be a solution by themselves.
absl::Status CheckGiven(const OffsetProblem& problem) {
  OffsetProblem given;
  std::vector<int64_t> offsets;
  for (size_t i = 0; i < problem.intervals.size(); ++i) {
    if (!problem.intervals[i].given) continue;
    given.intervals.push_back(problem.intervals[i]);
    given.names.push_back(NameOf(problem, i));
    offsets.push_back(*problem.intervals[i].given);
  }
  if (offsets.empty()) return absl::OkStatus();
  given.capacity = problem.capacity;
  given.alignment = problem.alignment;
  MG_ASSIGN_OR_RETURN(const OffsetVerdict verdict, CheckOffsets(given, offsets));
  if (verdict.ok()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("given offsets: ", verdict.message));
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
// Of no item with depths.
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
      offset = item.Aligned(top);
      lifted = item.heights.front() != item.height;
    }
  }
  return offset;
}

// A neighbor that is placed: an item lies above it from `top` on, and below it if it has at least
// `height` from its own offset to that of the neighbor.
struct Obstacle {
  int64_t offset = 0, top = 0, height = 0;
};

// The same for any item.
int64_t LowestOffset(const OffsetItem& item, std::vector<Obstacle>& obstacles) {
  std::sort(obstacles.begin(), obstacles.end(),
            [](const Obstacle& a, const Obstacle& b) { return a.offset < b.offset; });
  int64_t offset = item.min_offset;
  for (bool lifted = true; lifted;) {
    lifted = false;
    for (const Obstacle& o : obstacles) {
      if (o.offset >= offset + item.height) break;
      if (offset >= o.top || offset + o.height <= o.offset) continue;
      offset = item.Aligned(o.top);
      lifted = true;
    }
  }
  return offset;
}

// Places each item of `ranked` in turn as low as possible, holes included, and those first whose
// offset is given. These stay there: that they conflict may only seem so, because an item can be
// wider than its interval (OffsetModel::widened). For few items it is quicker to look at all that
// are placed, in order, than to collect those that share a moment.
void FirstFit(const OffsetInstance& instance, std::vector<int32_t>& ranked,
              std::vector<int64_t>& offsets) {
  std::stable_partition(ranked.begin(), ranked.end(),
                        [&](int32_t i) { return instance.items[i].given; });
  for (const int32_t i : ranked) offsets[i] = -1;
  if (ranked.size() > kMaxSearched || instance.shaped()) {
    std::vector<Obstacle> obstacles;
    for (const int32_t i : ranked) {
      if (instance.items[i].given) {
        offsets[i] = instance.items[i].min_offset;
        continue;
      }
      obstacles.clear();
      const std::vector<OffsetNeighbor>& neighbors = instance.neighbors[i];
      for (size_t k = 0; k < neighbors.size(); ++k) {
        const int64_t offset = offsets[neighbors[k].item];
        if (offset < 0) continue;
        obstacles.push_back({offset, offset + instance.LiftOver(i, k), neighbors[k].height});
      }
      offsets[i] = LowestOffset(instance.items[i], obstacles);
    }
    return;
  }
  std::vector<Placed> placed;
  for (const int32_t i : ranked) {
    const OffsetItem& item = instance.items[i];
    offsets[i] = LowestOffset(instance.items, item, placed);
    const Placed now = {item.begin, item.end, i, offsets[i]};
    placed.insert(
        std::upper_bound(placed.begin(), placed.end(), now,
                         [](const Placed& a, const Placed& b) { return a.offset < b.offset; }),
        now);
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

OffsetStatus Worse(OffsetStatus a, OffsetStatus b) {
  for (const OffsetStatus status : {OffsetStatus::kInfeasible, OffsetStatus::kStopped}) {
    if (a == status || b == status) return status;
  }
  return OffsetStatus::kFeasible;
}

absl::StatusOr<OffsetModel> MakeModel(const OffsetProblem& problem) {
  MG_RETURN_IF_ERROR(CheckProblem(problem));
  if (problem.intervals.size() > kMaxIntervals) {
    return absl::ResourceExhaustedError(
        absl::StrCat("found ", problem.intervals.size(), " intervals, allowed: ", kMaxIntervals));
  }
  MG_RETURN_IF_ERROR(CheckGiven(problem));
  return OffsetModel::Create(problem);
}

struct Tried {
  OffsetResult result;     // its status and bound are those of the items
  bool cut_short = false;  // a search may find more with more nodes
};

// Finds offsets within a capacity. `nodes` of the search are allowed in each part; no limit if 0.
Tried Try(const OffsetProblem& problem, OffsetModel& model, int64_t capacity, int64_t nodes,
          OffsetBudget& budget) {
  model.SetCapacity(capacity);
  const OffsetInstance& instance = model.instance();
  OffsetSearch search(instance, budget);
  Tried tried;
  OffsetResult& result = tried.result;
  result.status = model.bound() <= capacity ? OffsetStatus::kFeasible : OffsetStatus::kInfeasible;
  std::vector<int64_t> offsets(instance.items.size()), working(offsets.size());
  for (const std::vector<int32_t>& part : Parts(instance)) {
    budget.BeginAttempt(nodes);
    if (PlaceQuickly(instance, part, search, budget, working, offsets)) continue;
    if (result.status == OffsetStatus::kInfeasible) continue;
    OffsetStatus status = OffsetStatus::kStopped;
    if (part.size() <= kMaxSearched) {
      status = search.Solve(part, offsets);
      tried.cut_short = tried.cut_short || status == OffsetStatus::kStopped;
    }
    result.status = Worse(result.status, status);
  }
  result.offsets = model.Offsets(offsets);
  for (size_t i = 0; i < result.offsets.size(); ++i)
    result.height = std::max(result.height, result.offsets[i] + problem.intervals[i].size);
  result.bound = model.bound();
  if (result.status == OffsetStatus::kInfeasible)
    result.bound = std::max(result.bound, model.NextHeight(capacity + 1));
  result.nodes = budget.nodes;
  return tried;
}

// What is true of the intervals, given what is true of the items.
OffsetResult Concluded(const OffsetModel& model, int64_t capacity, OffsetResult result) {
  if (model.widened()) result.bound = model.bound();
  result.status = result.height <= capacity ? OffsetStatus::kFeasible
                  : result.bound > capacity ? OffsetStatus::kInfeasible
                                            : OffsetStatus::kStopped;
  return result;
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

int64_t LowestFreeOffset(std::vector<std::pair<int64_t, int64_t>> taken, int64_t size, int64_t from,
                         int64_t alignment) {
  std::sort(taken.begin(), taken.end());
  int64_t offset = RoundUp(from, alignment);
  for (const auto& [begin, end] : taken) {
    if (begin - offset >= size) break;
    offset = std::max(offset, RoundUp(end, alignment));
  }
  return offset;
}

absl::StatusOr<OffsetResult> SolveOffsets(const OffsetProblem& problem,
                                          const OffsetLimits& limits) {
  MG_ASSIGN_OR_RETURN(OffsetModel model, MakeModel(problem));
  OffsetBudget budget(limits);
  OffsetResult result = Try(problem, model, problem.capacity, /*nodes=*/0, budget).result;
  return Concluded(model, problem.capacity, std::move(result));
}

absl::StatusOr<OffsetResult> MinimizeHeight(const OffsetProblem& problem,
                                            const OffsetLimits& limits) {
  MG_ASSIGN_OR_RETURN(OffsetModel model, MakeModel(problem));
  OffsetBudget budget(limits);
  OffsetResult best;
  int64_t bound = model.bound();  // no offsets of the items are lower
  best.height = std::numeric_limits<int64_t>::max();
  // In each round the bound is tried first, as it often is the least height, and then heights
  // half-way between what was tried in vain and the best.
  bool cut_short = true;
  for (int64_t nodes = kRoundNodes; cut_short && bound < best.height; nodes *= 4) {
    cut_short = false;
    int64_t from = bound;
    for (bool first = true; from < best.height && (first || !budget.Spent()); first = false) {
      int64_t height = first ? from : model.NextHeight(from + (best.height - from) / 2);
      if (height >= best.height) height = from;
      Tried tried = Try(problem, model, height, nodes, budget);
      OffsetResult& result = tried.result;
      cut_short = cut_short || tried.cut_short;
      bound = std::max(bound, result.bound);
      if (result.status != OffsetStatus::kFeasible) from = model.NextHeight(height + 1);
      if (result.height < best.height) best = std::move(result);
    }
    if (budget.Spent()) break;
  }
  best.bound = bound;
  best.nodes = budget.nodes;
  return Concluded(model, problem.capacity, std::move(best));
}

}  // namespace mallocgame
