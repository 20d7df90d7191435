// The games of the solver `styles`: the order game is played in a few dozen styles, and the best of
// these games are packed anew. docs/styles.md.
#ifndef MALLOCGAME_SOLVERS_STYLES_STYLES_H_
#define MALLOCGAME_SOLVERS_STYLES_STYLES_H_

#include <cstdint>
#include <functional>

#include "absl/types/span.h"
#include "mallocgame/base/deadline.h"
#include "mallocgame/game/game.h"
#include "mallocgame/solvers/styles/styled_game.h"

namespace mallocgame {

// The styles that the library has, the one that wins most first.
absl::Span<const Style> Styles();

// The best of the games in all of Styles(); of fewer, but one at least, if `deadline` passes.
// `better`, unless it is empty, is told the latency of each that is the best so far.
StyledPlan PlayStyles(const Game& game, const Deadline& deadline,
                      const std::function<void(int64_t latency_ps)>& better = {});

}  // namespace mallocgame

#endif  // MALLOCGAME_SOLVERS_STYLES_STYLES_H_
