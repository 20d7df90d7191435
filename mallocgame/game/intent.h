// What a player wants for a program, whoever decides it then: the one type that every search, agent
// that plays uses for it. An Intent is a list of *segments* of live ranges: accesses of one buffer
// that follow each other, with where they should be served from.
//
// Most intents are dense, with a segment for everything that their decoder asks about:
//
//   a time game       one segment for each access of the program, by AccessId
//   a priority game   one segment for each run, by its index in PriorityTables::runs
//   a schedule game   none: its runs depend on the order of instructions
//
// The others, such as what a game decided, name some segments in the order of their decisions.
// Accesses mean the same in all games of a program, so they say which segment is which.
#pragma once

#include <vector>

#include "mallocgame/base/ids.h"
#include "mallocgame/game/mode.h"

namespace mallocgame {

struct Segment {
  AccessId first, last;  // `last` may be none in an OwnSegment (game/priority/priority_game.h)
  Mode mode = Mode::kOpen;
  // Of what can be decided now, what has the lowest rank is decided first. Not in the time game.
  double rank = 0;

  friend bool operator==(const Segment&, const Segment&) = default;
};
using Intent = std::vector<Segment>;

}  // namespace mallocgame
