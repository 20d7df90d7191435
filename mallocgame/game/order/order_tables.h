// What the rules of the order game look up at every step, computed once for a game: the residences
// that it may ask about, in the order of their importance. Private to the folder.
#ifndef MALLOCGAME_GAME_ORDER_ORDER_TABLES_H_
#define MALLOCGAME_GAME_ORDER_ORDER_TABLES_H_

#include <array>
#include <cstdint>
#include <vector>

#include "mallocgame/game/game.h"
#include "mallocgame/game/order/arrangement.h"

namespace mallocgame {

// Accesses of one buffer that follow each other, which one residence may serve. The longest run of
// a buffer has all of its accesses. A run is split where its accesses are farthest apart in time; a
// run that is one loop, entered and carried, is split into the accesses inside.
struct Run {
  int32_t buffer = 0;  // index into GameTables::buffers
  int32_t first = 0, last = 0;
  // What the run is split into, as indices into OrderTables::runs; -1: there is none.
  std::array<int32_t, 2> parts = {-1, -1};
  int32_t parent = -1;     // the run that it is a part of
  bool splits = false;     // it can be split, perhaps into nothing: an empty loop
  bool placeable = false;  // some valid plan has the residence
  PlannedResidence planned;
  // The same with room for its copies: its bytes are held until its write-back has to be done.
  PlannedResidence roomy;
  bool preloadable = false;
  PlannedResidence preloaded;
  // The last tick from which the instructions hide the prefetch if they find all they use in fast
  // memory and the channel does nothing else; not before planned.earliest_fetch.
  Tick late_begin = 0;
  bool required = false;  // the caller wants some access of it served from fast memory
  int64_t saving_ps = 0;  // an estimate of what fast memory saves, alone
  double importance = 0;  // saving_ps for each byte and picosecond held
};

struct OrderTables {
  explicit OrderTables(const Game& game);

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
  void Sort();
  // For each tick, of one run of the program: the time before it with everything in main memory,
  // and the channel's idle time before it with everything in fast memory.
  std::vector<int64_t> all_main_before_, fast_idle_before_;
};

}  // namespace mallocgame

#endif  // MALLOCGAME_GAME_ORDER_ORDER_TABLES_H_
