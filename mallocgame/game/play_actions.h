// Games that were played before, played again.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "mallocgame/game/game.h"
#include "mallocgame/game/position.h"

namespace mallocgame {

// The position after `actions` from the start of the game; it need not be terminal. The error of
// Position::Apply for the first action that is not legal.
absl::StatusOr<std::unique_ptr<Position>> PlayActions(const Game& game,
                                                      absl::Span<const uint8_t> actions);

}  // namespace mallocgame
