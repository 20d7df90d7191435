// The residences that a plan can have, wherever they will lie, and what arrangements of one game
// look up.
//
// A residence serves some accesses of its buffer that follow each other. Accesses are the decisions
// of GameTables; here a decision is named by its position among those of its buffer.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "mallocgame/base/ids.h"
#include "mallocgame/game/game.h"
#include "mallocgame/game/tables.h"

namespace mallocgame {

// A residence that serves the decisions [first, last] of a buffer, wherever it will lie.
struct PlannedResidence {
  int32_t buffer = 0;  // index into GameTables::buffers
  int32_t first = 0, last = 0;
  Tick need = 0;            // the first tick that needs all of its bytes
  Tick end = 0;             // the tick after the last one that needs them
  Tick earliest_fetch = 0;  // no prefetch for it may begin before this tick
  // The last tick from which the instructions hide the prefetch if they find all they use in fast
  // memory and the channel does nothing else; not before earliest_fetch. `need` without a prefetch.
  Tick latest_fetch = 0;
  bool fetched = false;  // a prefetch fills it
  bool preload = false;  // it is filled before the program starts
  Tick replaces = -1;    // the plain copy whose place its prefetch takes; -1: none
  // If main memory needs the value that it leaves behind: the ticks between which it is written
  // back, at the latest. -1: it does not.
  Tick written = -1, eviction_deadline = -1;
  int32_t scope = 0;  // of its copies: ArrangementTables::scopes
  // Where it lies, and the tick from which its bytes are reserved for it; set by Place.
  int64_t offset = -1;
  Tick begin = 0;

  bool operator==(const PlannedResidence&) const = default;
};

// What arrangements of one game look up.
struct ArrangementTables {
  // `others`: the same game at the other prices, by which stalls and latencies count too
  // (program/both_prices.h); null: they don't.
  explicit ArrangementTables(const Game& of, const Game* others = nullptr);

  absl::Span<const int32_t> decisions_of(int32_t buffer) const {
    return absl::MakeConstSpan(by_buffer).subspan(first[buffer], first[buffer + 1] - first[buffer]);
  }
  const Decision& decision(int32_t buffer, int32_t position) const {
    return tables.decisions[by_buffer[first[buffer] + position]];
  }
  // The residence that serves these decisions of `buffer`; nothing if no valid plan has it.
  std::optional<PlannedResidence> Plan(int32_t buffer, int32_t first_position,
                                       int32_t last_position, bool preload) const;
  bool CanBePreloaded(int32_t buffer) const;
  // The times at the own prices, and at the others if they count.
  Times CopyPs(int64_t bytes) const {
    return {game.hardware().CopyPs(bytes),
            other_game == nullptr ? 0 : other_game->hardware().CopyPs(bytes)};
  }
  struct TimesAndIdle {
    Times time_ps, idle_ps;
  };
  TimesAndIdle PriceAt(Tick tick, uint64_t placement) const {
    const TimeAndIdle own = tables.PriceAt(game.cost_model(), tick, placement);
    if (other_game == nullptr) return {{own.time_ps}, {own.idle_ps}};
    const TimeAndIdle other =
        other_game->tables().PriceAt(other_game->cost_model(), tick, placement);
    return {{own.time_ps, other.time_ps}, {own.idle_ps, other.idle_ps}};
  }
  // The one number that they count as: the own latency, or BothPrices::Value.
  int64_t Value(const Times& latency) const {
    if (other_game == nullptr) return latency.own;
    return static_cast<int64_t>(program.both()->Value(static_cast<double>(latency.own),
                                                      static_cast<double>(latency.other)));
  }

  const Game& game;
  const Game* other_game;
  const Program& program;
  const GameTables& tables;
  // The decisions of buffer b, as indices into GameTables::decisions, are by_buffer[first[b],
  // first[b + 1]).
  std::vector<int32_t> by_buffer, first;
  std::vector<uint8_t> may_be_fast;  // for each decision of GameTables
  std::vector<uint8_t> replaceable;  // for each tick: a plain copy that a prefetch may replace
  // The next three have one entry for each tick, and one for the program's end. A scope is the
  // innermost loop condition, loop body or branch around a tick, as an index into
  // Program::regions(); the copies of a residence run in the scope that it begins in.
  std::vector<int32_t> scopes;
  std::vector<int64_t> passes;      // how often a wait at this tick happens in one run
  std::vector<uint8_t> scope_ends;  // the scope of the tick before ends here

 private:
  void FindScopes();
  bool Replaceable(Tick tick) const;
  Tick EarliestFetch(const PlannedResidence& planned) const;
  Tick LatestFetch(const PlannedResidence& planned) const;
};

}  // namespace mallocgame
