// What a position asks about, whichever game it is.
#ifndef MALLOCGAME_GAME_ASKED_H_
#define MALLOCGAME_GAME_ASKED_H_

#include <vector>

#include "mallocgame/base/ids.h"
#include "mallocgame/game/position.h"

namespace mallocgame {

// Accesses of one buffer that follow each other, from the first to the last.
struct AccessRun {
  AccessId first, last;
};

// The time game asks about one access. The priority game asks which run to take and how to serve
// it: the result has one element for each candidate, in their order. So does the schedule game once
// the order is decided; the accesses are then of the program of PlannedGame(). Empty before, and at
// the end.
std::vector<AccessRun> AskedAbout(const Position& position);

}  // namespace mallocgame

#endif  // MALLOCGAME_GAME_ASKED_H_
