// Shadow prices of a priority game, found in a millisecond: what a tick of fast memory and of the
// channel is worth if every buffer takes the cheapest of its ways.
//
// Each buffer is a tree of runs. At given prices a run is worth what it saves less what its bytes
// and its copies pay, or what its parts are worth, or nothing. Prices rise where more is chosen
// than there is, and fall elsewhere, step by step, as in a Lagrangian relaxation. They bound
// nothing: the dual of solvers/lagrangian does that, and takes seconds.
#ifndef MALLOCGAME_SOLVERS_POLICY_RUN_PRICES_H_
#define MALLOCGAME_SOLVERS_POLICY_RUN_PRICES_H_

#include <vector>

#include "mallocgame/game/priority/priority_tables.h"

namespace mallocgame {

struct RunPrices {
  explicit RunPrices(const PriorityTables& tables);

  // Each has an entry for each run, in the order of PriorityTables::runs. Times are in picoseconds.
  std::vector<float> saving;          // as estimated
  std::vector<float> space, channel;  // what its residence pays for its bytes and its copies
  std::vector<float> preload;         // what it pays for its bytes if it is preloaded
  std::vector<float> parts;           // the worth of its parts
  std::vector<float> used;            // the share of the steps in which it was chosen
  std::vector<float> crowding;        // the mean use of fast memory while it is held
  std::vector<float> crowding_most;   // the largest
  std::vector<float> busy;            // the mean use of the channel in the time of its prefetch
};

}  // namespace mallocgame

#endif  // MALLOCGAME_SOLVERS_POLICY_RUN_PRICES_H_
