// XLA's memory space assignment, re-implemented on our Program. It takes the buffers in the order
// of what fast memory saves per square root of a byte. A buffer stays in fast memory until its next
// use if the pause is short and bytes are free; else it is prefetched if the copy can be hidden;
// else it is used from main memory. No simulator judges the result (XLA reference 4;
// docs/xla-heuristic.md says what differs).
#pragma once

#include <vector>

#include "mallocgame/base/deadline.h"
#include "mallocgame/game/game.h"
#include "mallocgame/plan/plan.h"
#include "mallocgame/solvers/xla/options.h"

namespace mallocgame {

// What happened on the way.
struct XlaCounts {
  int attempts = 0;       // to decide a buffer
  int out_of_memory = 0;  // of these met a use for which there were no bytes
  int undone = 0;         // of these were undone because a value couldn't get back to main memory
  int repacks = 0;        // bytes were to be packed anew,
  int repacked = 0;       // and so often they fitted
};

struct XlaOutcome {
  Plan plan;                    // valid
  std::vector<BufferId> order;  // in which buffers were decided
  XlaCounts counts;
  bool finished = true;  // false: the deadline passed; the buffers not looked at are in main memory
};

// A search that starts from its plan gives it this share of the time left. It takes milliseconds,
// but a second for a hundred thousand instructions.
inline constexpr double kXlaShare = 0.2;

// Keeps the constraints of the game's options: forbidden and keep_free. It
// ignores the least buffer size, because XLA moves small buffers too. It looks at
// `deadline` once a buffer.
XlaOutcome PlanLikeXla(const Game& game, const Deadline& deadline, const XlaOptions& options = {});

}  // namespace mallocgame
