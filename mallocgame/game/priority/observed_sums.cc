// The sums that a PriorityObserver follows from look to look.
#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "absl/hash/hash.h"
#include "mallocgame/game/priority/priority_observation.h"

namespace mallocgame {
namespace {

// What is remembered of positions, by each thread.
constexpr size_t kRememberedSums = 64;

// Adds `height` over the stretch [begin, end) of a line of cells of length 1, which lie `stride`
// apart: the sum of the first steps is the mean height in a cell. The negative height takes exactly
// that back.
void AddStretch(double begin, double end, int64_t height, int cells, int stride, int64_t* steps) {
  const auto add = [&](double at, int64_t step) {
    const int cell = std::min(static_cast<int>(at), cells - 1);
    const int64_t inside = std::llround(std::min(1.0, at - cell) * static_cast<double>(step));
    steps[cell * stride] += step - inside;
    if (cell + 1 < cells) steps[(cell + 1) * stride] += inside;
  };
  add(begin, height);
  add(end, -height);
}

}  // namespace

int64_t PriorityObserver::UnitsOf(int32_t buffer) const {
  return std::llround(static_cast<double>(ShareOfMemory(buffer)) * kUnits);
}

// Visits the columns in which a tick has a share of its time, with that share.
template <class Visit>
void PriorityObserver::VisitColumns(Tick tick, const Visit& visit) const {
  const int columns = options_.columns();
  const double begin = position_[tick] * columns, end = position_[tick + 1] * columns;
  int column = std::min(static_cast<int>(begin), columns - 1);
  if (end <= column + 1 || column + 1 == columns) {
    visit(column, 1.0);
    return;
  }
  for (double from = begin; from < end && column < columns; ++column) {
    const double to = std::min(end, static_cast<double>(column + 1));
    visit(column, (to - from) / (end - begin));
    from = to;
  }
}

void PriorityObserver::MakeIdleTicks() {
  for (Tick t = 0; t < game_.program().ticks(); ++t) {
    VisitColumns(t, [&](int column, double share) {
      const bool goes_on = !idle_ticks_.empty() && idle_ticks_.back().column == column &&
                           idle_ticks_.back().share == share && share == 1 &&
                           tables_.segment_of[t - 1] == tables_.segment_of[t];
      if (goes_on) {
        idle_ticks_.back().end = t + 1;
      } else {
        idle_ticks_.push_back({column, t, t + 1, share});
      }
    });
  }
}

// The sums of a position, which are followed from look to look. Whoever looks at a game step by
// step, or at the positions of a search, sees much of the last one again.
const PriorityObserver::Sums& PriorityObserver::SumsOf(const PriorityState& state) const {
  static thread_local std::vector<Sums> memory(kRememberedSums);
  const absl::Span<const uint64_t> stamps = state.arrangement().stamps();
  const uint64_t lineage = stamps.empty() ? 0 : stamps[0];
  Sums& sums = memory[absl::HashOf(id_, lineage) % kRememberedSums];
  if (sums.observer != id_ || sums.lineage != lineage) {
    const size_t columns = options_.columns();
    sums.observer = id_;
    sums.lineage = lineage;
    sums.placed.clear();
    sums.pressure.fill(0);
    sums.open.assign(state.open().size(), 0);
    sums.occupancy.assign(columns * options_.address_cells, 0);
    for (auto* of_columns : {&sums.taken, &sums.due, &sums.wanted}) of_columns->assign(columns, 0);
  }
  FollowResidences(state, sums);
  if (options_.columns() > 0) FollowOpenRuns(state, sums);
  return sums;
}

// Residences come and go at the end of the list, so those before one that is there still are too.
void PriorityObserver::FollowResidences(const PriorityState& state, Sums& sums) const {
  const absl::Span<const uint64_t> stamps = state.arrangement().stamps();
  const absl::Span<const PlannedResidence> placed = state.arrangement().placed();
  size_t same = std::min(sums.placed.size(), stamps.size());
  while (same > 0 && sums.placed[same - 1].stamp != stamps[same - 1]) --same;
  for (; sums.placed.size() > same; sums.placed.pop_back()) Add(sums.placed.back(), -1, sums);
  for (size_t r = same; r < placed.size(); ++r) {
    const PlannedResidence& one = placed[r];
    sums.placed.push_back({stamps[r], one.buffer, one.begin, one.end,
                           one.fetched ? PriorityState::DueAt(one) : -1, state.EvictionDueAt(one),
                           one.offset});
    Add(sums.placed.back(), 1, sums);
  }
}

void PriorityObserver::FollowOpenRuns(const PriorityState& state, Sums& sums) const {
  const int columns = options_.columns();
  for (size_t word = 0; word < sums.open.size(); ++word) {
    for (uint64_t bits = state.open()[word] ^ sums.open[word]; bits != 0; bits &= bits - 1) {
      const auto r = static_cast<int32_t>(64 * word) + std::countr_zero(bits);
      const Run& run = tables_.runs[r];
      if (!run.placeable && !run.preloadable) continue;
      const Tick begin = run.placeable ? run.planned.latest_fetch : 0;
      const Tick end = run.placeable ? run.planned.end : run.preloaded.end;
      AddStretch(position_[begin] * columns, position_[end] * columns,
                 (state.IsOpen(r) ? 1 : -1) * UnitsOf(run.buffer), columns, 1, sums.wanted.data());
    }
    sums.open[word] = state.open()[word];
  }
}

void PriorityObserver::Add(const Sums::Placed& placed, int sign, Sums& sums) const {
  const double begin = position_[placed.begin], end = position_[placed.end];
  const int64_t units = sign * UnitsOf(placed.buffer);
  AddStretch(begin * kPieces, end * kPieces, units, kPieces, 1, sums.pressure.data());
  const int columns = options_.columns(), cells = options_.address_cells;
  if (columns == 0) return;
  AddStretch(begin * columns, end * columns, units, columns, 1, sums.taken.data());
  AddDue(placed.buffer, placed.fetch_due, sign, sums);
  AddDue(placed.buffer, placed.eviction_due, sign, sums);
  const double per_cell = cells / static_cast<double>(std::max<int64_t>(1, game_.usable_bytes()));
  const int64_t size = game_.tables().buffers[placed.buffer].size_bytes;
  const double low = static_cast<double>(placed.offset) * per_cell,
               high = low + static_cast<double>(size) * per_cell;
  for (int cell = static_cast<int>(low); cell < cells && cell < high; ++cell) {
    const double part = std::min(high, cell + 1.0) - std::max(low, static_cast<double>(cell));
    AddStretch(begin * columns, end * columns, sign * std::llround(part * kUnits), columns, cells,
               sums.occupancy.data() + cell);
  }
}

void PriorityObserver::AddDue(int32_t buffer, Tick tick, int sign, Sums& sums) const {
  if (tick < 0 || tick >= game_.program().ticks()) return;
  const int64_t ps =
      sign * game_.tables().buffers[buffer].copy_ps * tables_.arrangement.passes[tick];
  VisitColumns(tick, [&](int column, double share) {
    sums.due[column] += share == 1 ? ps : std::llround(share * static_cast<double>(ps));
  });
}

}  // namespace mallocgame
