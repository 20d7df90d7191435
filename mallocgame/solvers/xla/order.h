// The order in which XLA's allocator takes the buffers (XLA reference 2.3, 4.1), and the entry
// parameters that it preloads (4.10).
#pragma once

#include <vector>

#include "absl/types/span.h"
#include "mallocgame/game/game.h"
#include "mallocgame/solvers/xla/cost.h"

namespace mallocgame {

// For each buffer the tick from which on it has a value, to XLA: that of its first access, or where
// a parameter or what is allocated without being written stands in the schedule.
std::vector<Tick> XlaDefinitions(const Program& program);

// Whether the instruction at `tick` is a plain copy whose operand stays in main memory and is never
// written, so that it can be read at any time: a prefetch may take the copy's place.
bool CanBeReplaced(const Program& program, Tick tick);

// The eligible buffers that have an access, the one to allocate first in front. Buffers with
// accesses that the game requires in fast memory come before all others. With an operand come the
// results of the plain copies of it that can be replaced. `defined` is of XlaDefinitions.
std::vector<BufferId> XlaOrder(const Game& game, const XlaCost& cost,
                               absl::Span<const Tick> defined);

// The entry parameters that may be preloaded, the best first.
std::vector<BufferId> XlaPreloadOrder(const Program& program);

}  // namespace mallocgame
