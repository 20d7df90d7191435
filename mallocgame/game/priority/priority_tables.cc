#include "mallocgame/game/priority/priority_tables.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace mallocgame {
namespace {

// What serving one decision from fast memory saves: the mean of when it is the first of its
// instruction to be served so and when it is the last, for an instruction may wait for the slowest
// of its arrays.
int64_t SavingOf(const Game& game, const Decision& d) {
  const GameTables& tables = game.tables();
  const int64_t trips = tables.instructions[d.tick].trips;
  const auto time = [&](uint64_t placement) {
    return tables.PriceAt(game.cost_model(), d.tick, placement).time_ps;
  };
  const uint64_t bit = uint64_t{1} << d.bit, all = tables.AllFast(d.tick);
  return (time(0) - time(bit) + time(all & ~bit) - time(all)) / 2 * trips;
}

// The usual weight is 1, and pow takes time.
double Power(double x, double weight) { return weight == 1 ? x : std::pow(x, weight); }

}  // namespace

PriorityTables::PriorityTables(const PriorityGame& game)
    : options(game.options()), arrangement(game) {
  const GameTables& tables = arrangement.tables;
  const Program& program = arrangement.program;
  for (Tick t = 0; t < program.ticks(); ++t) {
    if (program.segment_begin(t) == t) segment_begin.push_back(t);
    segment_of.push_back(static_cast<int32_t>(segment_begin.size()) - 1);
  }
  segment_begin.push_back(program.ticks());
  // A run of several accesses is cut into two, so there are about twice as many as accesses.
  runs.reserve(2 * tables.decisions.size());
  for (size_t b = 0; b < tables.buffers.size(); ++b) {
    const auto buffer = static_cast<int32_t>(b);
    roots.push_back(
        AddRun(buffer, 0, static_cast<int32_t>(arrangement.decisions_of(buffer).size()) - 1));
  }
  for (size_t r = 0; r < runs.size(); ++r) Split(static_cast<int32_t>(r));
  Sort();
}

PriorityTables::PriorityTables(const PriorityTables& tables, absl::Span<const float> importance)
    : PriorityTables(tables) {
  for (Run& run : runs) run.importance = importance[run.id];
  Sort();
}

int32_t PriorityTables::AddRun(int32_t buffer, int32_t first, int32_t last) {
  Run run;
  run.id = static_cast<int32_t>(runs.size());
  run.buffer = buffer;
  run.first = first;
  run.last = last;
  Describe(run);
  runs.push_back(run);
  return static_cast<int32_t>(runs.size()) - 1;
}

void PriorityTables::Describe(Run& run) const {
  const GameTables& tables = arrangement.tables;
  const Program& program = arrangement.program;
  if (const auto planned = arrangement.Plan(run.buffer, run.first, run.last, false)) {
    run.placeable = true;
    run.planned = run.roomy = *planned;
    run.roomy.end = std::max(
        planned->end, std::min(planned->eviction_deadline, program.scope_end(planned->need)));
  }
  if (run.first == 0) {
    if (const auto planned = arrangement.Plan(run.buffer, run.first, run.last, true)) {
      run.preloadable = true;
      run.preloaded = *planned;
    }
  }
  for (int32_t i = run.first; i <= run.last; ++i)
    run.saving_ps += SavingOf(arrangement.game, arrangement.decision(run.buffer, i));
  const Tick from = arrangement.decision(run.buffer, run.first).tick;
  const Decision& last = arrangement.decision(run.buffer, run.last);
  const Tick end = std::min(program.ticks(), std::max(last.tick + 1, last.covered_until));
  const int64_t copy_ps = tables.buffers[run.buffer].copy_ps;
  const std::vector<int64_t>& all_main = tables.all_main_before;
  // A short residence is held while its bytes come, too.
  int64_t held_ps = all_main[end] - all_main[from];
  if (run.placeable && run.planned.fetched) held_ps += copy_ps;
  run.importance =
      static_cast<double>(run.saving_ps) /
      (Power(static_cast<double>(tables.buffers[run.buffer].size_bytes), options.bytes_weight) *
       Power(static_cast<double>(held_ps + 1), options.time_weight));
  AddWishes(run);
}

void PriorityTables::AddWishes(Run& run) const {
  if (!run.placeable && !run.preloadable) return;
  const GameBuffer& buffer = arrangement.tables.buffers[run.buffer];
  const double begin = run.placeable ? position(run.planned.latest_fetch) : 0,
               end = position(run.placeable ? run.planned.end : run.preloaded.end);
  const double share = static_cast<double>(buffer.size_bytes) /
                       static_cast<double>(std::max<int64_t>(1, arrangement.game.usable_bytes()));
  run.space = Profile::Stretch(begin, end, kSpaceUnits * share * (end - begin));
  if (!run.placeable || !run.planned.fetched) return;
  const Tick need = run.planned.need;
  run.copies = Profile::Stretch(begin, position(need),
                                static_cast<double>(buffer.copy_ps * arrangement.passes[need]));
}

void PriorityTables::Split(int32_t index) {
  const int32_t buffer = runs[index].buffer, first = runs[index].first, last = runs[index].last;
  const auto decision = [&](int32_t i) -> const Decision& {
    return arrangement.decision(buffer, i);
  };
  const std::vector<int64_t>& all_main = arrangement.tables.all_main_before;
  // The accesses of a loop that is entered belong together, and so do those of a transfer.
  int32_t cut = -1;
  int64_t widest = -1;
  Tick covered = 0, until = 0;
  for (int32_t i = first; i <= last; ++i) {
    const Decision& d = decision(i);
    if (i > first && d.tick >= covered) {
      // Where a prefetch takes the place of a plain copy, nothing is held from the copy on.
      const bool replaced = i == first + 1 && arrangement.replaceable[decision(first).tick] != 0;
      const int64_t gap = replaced ? 0 : all_main[d.tick] - all_main[until];
      if (gap > widest) {
        widest = gap;
        cut = i;
      }
    }
    covered = std::max(covered, d.covered_until);
    until = std::max({until, d.tick + 1, std::min(d.covered_until, arrangement.program.ticks())});
  }
  if (cut >= 0) {
    const int32_t left = AddRun(buffer, first, cut - 1), right = AddRun(buffer, cut, last);
    runs[index].parts = {left, right};
    runs[index].splits = true;
  } else if (first < last && !decision(first).holds) {
    // One loop: its condition and its body.
    runs[index].splits = true;
    size_t part = 0;
    for (int32_t i = first + 1; i <= last;) {
      const Tick scope_end = ConditionOrBodyEnd(decision(first).tick, decision(i).tick);
      int32_t end = i;
      while (end <= last && decision(end).tick < scope_end) ++end;
      const int32_t inside = AddRun(buffer, i, end - 1);
      runs[index].parts[part++] = inside;
      i = end;
    }
  }
}

// The end of the condition or body of the loop entered at `entry` that `tick` lies in.
Tick PriorityTables::ConditionOrBodyEnd(Tick entry, Tick tick) const {
  const Program& program = arrangement.program;
  int32_t r = program.region_at(tick);
  while (program.regions()[r].parent != program.region_at(entry)) r = program.regions()[r].parent;
  return program.regions()[r].end;
}

void PriorityTables::Sort() {
  // By falling importance, then as they stand. The keys stand apart, because runs are large.
  std::vector<std::pair<double, int32_t>> keys;
  keys.reserve(runs.size());
  for (size_t r = 0; r < runs.size(); ++r)
    keys.emplace_back(-runs[r].importance, static_cast<int32_t>(r));
  std::sort(keys.begin(), keys.end());
  std::vector<int32_t> order, place(runs.size());
  order.reserve(runs.size());
  for (const auto& [importance, run] : keys) order.push_back(run);
  for (size_t i = 0; i < order.size(); ++i) place[order[i]] = static_cast<int32_t>(i);
  std::vector<Run> sorted;
  sorted.reserve(runs.size());
  for (const int32_t r : order) sorted.push_back(runs[r]);
  for (size_t r = 0; r < sorted.size(); ++r) {
    for (int32_t& part : sorted[r].parts) {
      if (part < 0) continue;
      part = place[part];
      sorted[part].parent = static_cast<int32_t>(r);
    }
  }
  for (int32_t& root : roots) root = place[root];
  runs = std::move(sorted);
}

}  // namespace mallocgame
