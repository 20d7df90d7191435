// How the accesses of a buffer that follow each other should be served.
#pragma once

#include <cstdint>

namespace mallocgame {

// The first five are the actions of the priority game on a run; game/priority/priority_state.h has
// their rules. The others are what a player may want besides (search/intent.h).
enum class Mode : uint8_t {
  kSkip = 0,     // from main memory; in the time game Drop
  kLate = 1,     // by a residence that is filled as late as is hidden; in the time game Copy
  kEarly = 2,    // by a residence whose bytes are reserved as early as possible; CopyEarly
  kPreload = 3,  // by a residence that is filled before the program starts
  kSplit = 4,    // its parts are wanted apart
  // By the residence that serves the access before. In the time game NoCopy: at the first access of
  // an entry parameter also a preload, and at a write the value then stays to the last access.
  kKeep = 5,
  // In the way that saves most where it is decided, by greedy's rule. If none saves anything it is
  // served from main memory (kPaying), or split first if it can be (kOpen). kOpen is what nobody
  // wants anything for.
  kPaying = 6,
  kOpen = 7,
};
inline constexpr int kActionModes = 5;
const char* ModeName(Mode mode);  // of an action: "Skip" ...

}  // namespace mallocgame
