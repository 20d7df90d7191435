// XLA's memory space assignment, re-implemented on our Program: buffers in the order of what fast
// memory saves per square root of a byte; for each use in turn, stay in fast memory if the pause is
// short and bytes are free, else prefetch if the copy can be hidden, else main memory; no simulator
// looks at the result (XLA reference 4; docs/xla-heuristic.md says what differs).
#ifndef MALLOCGAME_SOLVERS_XLA_HEURISTIC_H_
#define MALLOCGAME_SOLVERS_XLA_HEURISTIC_H_

#include "mallocgame/base/deadline.h"
#include "mallocgame/game/game.h"
#include "mallocgame/plan/plan.h"
#include "mallocgame/solvers/xla/options.h"

namespace mallocgame {

struct XlaOutcome {
  Plan plan;             // valid
  bool finished = true;  // false: the deadline passed; the buffers not looked at are in main memory
};

// Keeps the game's constraints (forbidden, keep_free; buffers with required accesses come first),
// not its least buffer size: XLA moves small buffers too. It looks at `deadline` once a
// buffer.
XlaOutcome PlanLikeXla(const Game& game, const Deadline& deadline, const XlaOptions& options = {});

}  // namespace mallocgame

#endif  // MALLOCGAME_SOLVERS_XLA_HEURISTIC_H_
