#include "mallocgame/game/play_actions.h"

#include "mallocgame/base/error.h"

namespace mallocgame {

absl::StatusOr<std::unique_ptr<Position>> PlayActions(const Game& game,
                                                      absl::Span<const uint8_t> actions) {
  std::unique_ptr<Position> position = game.NewInitialPosition();
  for (const uint8_t action : actions) MG_RETURN_IF_ERROR(position->Apply(action).status());
  return position;
}

}  // namespace mallocgame
