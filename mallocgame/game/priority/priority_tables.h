// What the rules of the priority game look up at every step, computed once for a game: the
// residences that it may ask about, in the order of their importance. Private to the folder.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "mallocgame/game/priority/arrangement_tables.h"
#include "mallocgame/game/priority/priority_game.h"
#include "mallocgame/game/priority/profile.h"

namespace mallocgame {

// Accesses of one buffer that follow each other, which one residence may serve. The longest run of
// a buffer has all of its accesses. A run is split where a residence would be held longest without
// an access; a run that is one loop, entered and carried, is split into the accesses inside.
struct Run {
  int32_t id = 0;      // its index among the runs before they are sorted: the same in every order
  int32_t buffer = 0;  // index into GameTables::buffers
  int32_t first = 0, last = 0;
  // What the run is split into, as indices into PriorityTables::runs; -1: there is none.
  std::array<int32_t, 2> parts = {-1, -1};
  int32_t parent = -1;     // the run that it is a part of
  bool splits = false;     // it can be split, perhaps into nothing: an empty loop
  bool placeable = false;  // some valid plan has the residence
  PlannedResidence planned;
  // The same with room for its copies: its bytes are held until its eviction has to be done.
  PlannedResidence roomy;
  bool preloadable = false;
  PlannedResidence preloaded;
  int64_t saving_ps = 0;  // an estimate of what fast memory saves, alone
  double importance = 0;  // saving_ps for each byte and picosecond held
  // What it would like to have while it is open, if it can be placed at all: fast memory, in units
  // of 2^-40 of all its bytes over all of the all-main time, and the channel's time, in picoseconds
  // of all trips.
  Profile::Stretch space, copies;
};

struct PriorityTables {
  // `game` must outlive them.
  explicit PriorityTables(const PriorityGame& game);
  // The same runs in another order: `importance` has a number for each, by its id.
  PriorityTables(const PriorityTables& tables, absl::Span<const float> importance);

  static constexpr double kSpaceUnits = 0x1p40;
  // The share of the all-main time that lies before a tick.
  double position(Tick tick) const {
    return static_cast<double>(arrangement.tables.all_main_before[tick]) /
           static_cast<double>(std::max<int64_t>(1, arrangement.game.all_main_ps()));
  }

  const PriorityGameOptions& options;
  ArrangementTables arrangement;
  std::vector<Run> runs;       // by falling importance
  std::vector<int32_t> roots;  // the longest run of each buffer
  // Segments of the time axis (Program::segment_begin), and for each tick the index of its own.
  std::vector<Tick> segment_begin;  // one for each segment, and the program's end
  std::vector<int32_t> segment_of;

 private:
  int32_t AddRun(int32_t buffer, int32_t first, int32_t last);
  void Split(int32_t index);
  Tick ConditionOrBodyEnd(Tick entry, Tick tick) const;
  void Describe(Run& run) const;
  void AddWishes(Run& run) const;
  void Sort();
};

}  // namespace mallocgame
