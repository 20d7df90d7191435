// The games of the solver `learned`: a network reads a program once and advises how its order game
// is played, in a few styles; the best of these games are packed anew. docs/learned.md.
#ifndef MALLOCGAME_SOLVERS_LEARNED_LEARNED_H_
#define MALLOCGAME_SOLVERS_LEARNED_LEARNED_H_

#include <cstdint>
#include <functional>

#include "absl/types/span.h"
#include "mallocgame/base/deadline.h"
#include "mallocgame/game/game.h"
#include "mallocgame/solvers/learned/advised_game.h"

namespace mallocgame {

// The best of the games that `weights` (weights.h) lead to; of fewer, but one at least, if
// `deadline` passes. `better`, unless it is empty, is told the latency of each that is the best so
// far.
AdvisedPlan PlayLearned(const Game& game, absl::Span<const float> weights, const Deadline& deadline,
                        const std::function<void(int64_t latency_ps)>& better = {});

}  // namespace mallocgame

#endif  // MALLOCGAME_SOLVERS_LEARNED_LEARNED_H_
