// Which buffer XLA's allocator looks at first (XLA reference 2.3, 4.1), and which entry parameters
// it preloads (4.10).
#ifndef MALLOCGAME_SOLVERS_XLA_ORDER_H_
#define MALLOCGAME_SOLVERS_XLA_ORDER_H_

#include <vector>

#include "mallocgame/game/game.h"
#include "mallocgame/solvers/xla/cost.h"

namespace mallocgame {

// Eligible buffers with an access, the one to allocate first in front. Buffers with accesses that
// the game requires in fast memory come before all others.
std::vector<BufferId> XlaOrder(const Game& game, const XlaCost& cost);

// Entry parameters that may be preloaded, best first.
std::vector<BufferId> XlaPreloadOrder(const Program& program);

}  // namespace mallocgame

#endif  // MALLOCGAME_SOLVERS_XLA_ORDER_H_
