// How runs of accesses are served, said so that it means the same in other orders of instructions.
#ifndef MALLOCGAME_SEARCH_SERVED_H_
#define MALLOCGAME_SEARCH_SERVED_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "mallocgame/game/game.h"
#include "mallocgame/search/intent.h"

namespace mallocgame {

// How a segment (search/intent.h) was served, by what its accesses are in the program's own order.
struct ServedAccesses {
  int32_t buffer = 0;
  int32_t first = 0, last = 0;  // accesses; -1: all of the buffer's
  Mode mode = Mode::kOpen;
};

// Which buffers and accesses of the program's own order those of a reordered one are, by number.
struct OwnNumbers {
  absl::Span<const int32_t> buffer, access;
};

// A run of a priority game at some order, by its index in PriorityTables::runs.
ServedAccesses ServedRun(const Game& game, int32_t run, Mode mode, const OwnNumbers& own);

// A dense intent of a priority game at some order, which wants what `served` says, in its order.
// Runs that are not there, because their accesses stand otherwise, come last and are open.
Intent IntentOf(const Game& game, absl::Span<const ServedAccesses> served, const OwnNumbers& own);

}  // namespace mallocgame

#endif  // MALLOCGAME_SEARCH_SERVED_H_
