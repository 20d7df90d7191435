// Games that were played before, played again.
#ifndef MALLOCGAME_GAME_PLAY_ACTIONS_H_
#define MALLOCGAME_GAME_PLAY_ACTIONS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "mallocgame/game/game.h"
#include "mallocgame/game/state.h"

namespace mallocgame {

// The state after `actions`, which are values of Action, from the start of the game; it need not be
// terminal. The error of State::Apply for the first action that is not legal.
absl::StatusOr<State> PlayActions(const Game& game, absl::Span<const uint8_t> actions);

}  // namespace mallocgame

#endif  // MALLOCGAME_GAME_PLAY_ACTIONS_H_
