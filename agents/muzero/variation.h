// Local search with learned proposals: games that change one of the best games where the policy
// suggests it, and follow it elsewhere. A game costs no more than playing it, because the policy is
// asked only about the best game.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "agents/muzero/harvest.h"
#include "agents/muzero/network.h"
#include "agents/muzero/task.h"
#include "mallocgame/base/rng.h"

namespace mallocgame::muzero {

// Plays variations until about `decisions` decisions are played, each of which counts as
// GameOptions::decision_cost; a time game is not varied. They change `start` where the network's
// policy suggests it, or, without a network, anywhere. Worse ones are accepted as in simulated
// annealing, at a temperature that falls from a random one.
//
// Adds to `harvest` the number of games, the best variation, if it is better than `start`, and what
// single changes taught: the policy to learn at a decision of `start`, in which an action has the
// more of a share the less worse the game became with it. Decisions without a trial are left out.
absl::Status VaryGame(const Task& task, const Start& start, int64_t decisions, Network* network,
                      Rng& rng, Harvest& harvest);

}  // namespace mallocgame::muzero
