// The order in which XLA's allocator takes the buffers (XLA reference 2.3, 4.1), and the entry
// parameters that it preloads (4.10).
#ifndef MALLOCGAME_SOLVERS_XLA_ORDER_H_
#define MALLOCGAME_SOLVERS_XLA_ORDER_H_

#include <vector>

#include "absl/types/span.h"
#include "mallocgame/game/game.h"
#include "mallocgame/solvers/xla/cost.h"

namespace mallocgame {

// The eligible buffers that have an access, the one to allocate first in front. Buffers with
// accesses that the game requires in fast memory come before all others, those in `first` before
// these, in that order.
std::vector<BufferId> XlaOrder(const Game& game, const XlaCost& cost,
                               absl::Span<const BufferId> first = {});

// The entry parameters that may be preloaded, the best first.
std::vector<BufferId> XlaPreloadOrder(const Program& program);

}  // namespace mallocgame

#endif  // MALLOCGAME_SOLVERS_XLA_ORDER_H_
