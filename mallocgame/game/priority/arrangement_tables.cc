#include "mallocgame/game/priority/arrangement_tables.h"

#include <algorithm>

namespace mallocgame {

ArrangementTables::ArrangementTables(const Game& of, const Game* others)
    : game(of), other_game(others), program(of.program()), tables(of.tables()),
      may_be_fast(tables.decisions.size(), 1), replaceable(program.ticks(), 0) {
  FindScopes();
  first.assign(tables.buffers.size() + 1, 0);
  for (const Decision& d : tables.decisions) ++first[d.buffer + 1];
  for (size_t b = 1; b < first.size(); ++b) first[b] += first[b - 1];
  by_buffer.resize(tables.decisions.size());
  std::vector<int32_t> next(first.begin(), first.end());
  for (size_t d = 0; d < tables.decisions.size(); ++d) {
    by_buffer[next[tables.decisions[d].buffer]++] = static_cast<int32_t>(d);
    may_be_fast[d] = !tables.decisions[d].forbidden;
  }
  for (size_t d = 0; d < tables.decisions.size(); ++d) {
    const Decision& write = tables.decisions[d];
    if (write.source < 0 || !Replaceable(write.tick)) continue;
    replaceable[write.tick] = 1;
    // The operand is read in main memory, by the prefetch or by the plain copy itself.
    may_be_fast[write.source] = 0;
  }
}

void ArrangementTables::FindScopes() {
  for (Tick t = 0; t <= program.ticks(); ++t) {
    scopes.push_back(program.scope_at(t));
    passes.push_back(program.regions()[program.region_at(t)].trips);
    scope_ends.push_back(t > 0 && program.scope_end(t - 1) == t);
  }
}

// A plain copy of a buffer that is never written can be replaced: a prefetch may fill its result at
// any time.
bool ArrangementTables::Replaceable(Tick tick) const {
  const auto d = std::find_if(tables.decisions.begin() + tables.first_decision[tick],
                              tables.decisions.begin() + tables.first_decision[tick + 1],
                              [](const Decision& write) { return write.source >= 0; });
  const Decision& source = tables.decisions[d->source];
  if (d->forbidden || source.forbidden || tables.buffers[source.buffer].undefined) return false;
  const auto operand = decisions_of(source.buffer);
  return std::none_of(operand.begin(), operand.end(),
                      [this](int32_t i) { return tables.decisions[i].writes; });
}

bool ArrangementTables::CanBePreloaded(int32_t buffer) const {
  const Decision& d = decision(buffer, 0);
  return tables.buffers[buffer].preloadable && d.kind != AccessKind::kWrite;
}

std::optional<PlannedResidence> ArrangementTables::Plan(int32_t buffer, int32_t first_position,
                                                        int32_t last_position, bool preload) const {
  const auto of = decisions_of(buffer);
  PlannedResidence planned;
  planned.buffer = buffer;
  planned.first = first_position;
  planned.last = last_position;
  planned.preload = preload;
  const Decision& from = tables.decisions[of[first_position]];
  const Decision& to = tables.decisions[of[last_position]];
  if (from.held || (preload && (first_position > 0 || !CanBePreloaded(buffer))))
    return std::nullopt;
  planned.need = preload ? 0 : from.tick;
  planned.end = to.tick + 1;
  planned.scope = scopes[planned.need];
  for (int32_t i = first_position; i <= last_position; ++i) {
    const Decision& d = tables.decisions[of[i]];
    if (!may_be_fast[of[i]] || (d.replaced_only && i > first_position)) return std::nullopt;
    planned.end = std::max(planned.end, d.covered_until);
    if (d.writes) planned.written = std::max(planned.written, d.UsedUntil());
    // A residence that lies in a loop's body serves no access behind it, and one that comes from
    // outside enters a loop at its entry only.
    if (i > first_position && d.tick >= program.scope_end(planned.need)) return std::nullopt;
  }
  const Tick scope_end = program.scope_end(planned.need);
  if (planned.end > scope_end) return std::nullopt;
  const auto size = static_cast<int32_t>(of.size());
  if (last_position + 1 < size && tables.decisions[of[last_position + 1]].tick < planned.end)
    return std::nullopt;  // an access that is covered is left out
  if (from.kind == AccessKind::kWrite && !preload) {
    if (replaceable[from.tick] != 0 && from.source >= 0) {
      if (first_position == last_position) return std::nullopt;  // nothing reads the copy
      const Tick need = tables.decisions[of[first_position + 1]].tick;
      if (program.instruction(from.tick).region == program.region_at(need)) {
        planned.replaces = from.tick;
        planned.need = need;
        planned.written = std::max(planned.written, need + 1);  // It is there for that access.
        planned.fetched = true;
      }
    }
    if (from.replaced_only && planned.replaces < 0) return std::nullopt;
  } else if (!preload) {
    planned.fetched = !tables.buffers[buffer].undefined;
    for (int32_t i = 0; i < first_position; ++i) planned.fetched |= tables.decisions[of[i]].writes;
  }
  planned.earliest_fetch = planned.fetched ? EarliestFetch(planned) : planned.need;
  planned.latest_fetch = planned.fetched ? LatestFetch(planned) : planned.need;

  if (planned.written < 0) return planned;
  const bool has_next = last_position + 1 < size;
  const Decision* next = has_next ? &tables.decisions[of[last_position + 1]] : nullptr;
  const BufferId id = tables.buffers[buffer].id;
  if (next != nullptr && next->tick < scope_end) {
    if (next->kind != AccessKind::kWrite) planned.eviction_deadline = next->tick;
  } else if (next != nullptr || CarriedAround(program, id, from.tick)) {
    planned.eviction_deadline = scope_end;
  } else if (program.buffer(id).is_output) {
    planned.eviction_deadline = program.ticks();
  }
  // An eviction must begin in the scope of its residence.
  if (planned.eviction_deadline >= 0 && planned.written >= scope_end && scope_end < program.ticks())
    return std::nullopt;
  return planned;
}

Tick ArrangementTables::EarliestFetch(const PlannedResidence& planned) const {
  const Tick need = planned.need;
  if (need == 0 || scopes[need - 1] != planned.scope) return need;
  const Tick earliest = program.segment_begin(need - 1);
  if (planned.replaces >= 0) {
    return program.instruction(planned.replaces).region == program.instruction(earliest).region
               ? earliest
               : need;
  }
  for (int32_t i = planned.first; i-- > 0;) {
    const Decision& d = decision(planned.buffer, i);
    if (d.writes) return std::min(need, std::max(earliest, d.tick + 1));
  }
  return earliest;
}

Tick ArrangementTables::LatestFetch(const PlannedResidence& planned) const {
  Tick latest = planned.need;
  for (const Game* const priced : {&game, other_game}) {
    if (priced == nullptr) continue;
    const std::vector<int64_t>& idle = priced->tables().fast_idle_before;
    const int64_t copy_ps = priced->tables().buffers[planned.buffer].copy_ps;
    while (latest > planned.earliest_fetch && idle[planned.need] - idle[latest] < copy_ps) --latest;
  }
  return latest;
}

}  // namespace mallocgame
