// Shadow prices of a priority game, found in a millisecond: what a tick of fast memory and of the
// channel is worth if every buffer takes the cheapest of its ways.
//
// Each buffer is a tree of runs. At given prices a run is worth what it saves less what its bytes
// and its copies pay, or what its parts are worth, or nothing. Prices rise where more is chosen
// than there is, and fall elsewhere, step by step, as in a Lagrangian relaxation. They bound
// nothing: the dual of solvers/lagrangian does that, and takes seconds.
#pragma once

#include <vector>

#include "mallocgame/game/priority/priority_tables.h"

namespace mallocgame {

struct RunPrices {
  explicit RunPrices(const PriorityTables& tables);

  // Each has an entry for each run, in the order of PriorityTables::runs.
  std::vector<float> pays;   // ps, for the bytes and the copies of its residence
  std::vector<float> parts;  // ps, the worth of its parts
  std::vector<float> used;   // the share of the last steps in which it was chosen
};

}  // namespace mallocgame
