// The games of the solver `styles`: the priority game is played by a few dozen priority rules, and
// the best of these games are packed anew. docs/solvers.md.
#pragma once

#include <cstdint>
#include <functional>

#include "mallocgame/base/deadline.h"
#include "mallocgame/game/game.h"
#include "mallocgame/solvers/styles/rule_game.h"

namespace mallocgame {

// The best of the games by all rules that the library has, and of those that are packed anew. Of
// fewer, but one at least, if `deadline` passes. `better`, unless it is empty, is told the latency
// of each that is the best so far.
FoundPlan PlayStyles(const Game& game, const Deadline& deadline,
                     const std::function<void(int64_t latency_ps)>& better = {});

}  // namespace mallocgame
