#include "mallocgame/game/play_actions.h"

#include "absl/strings/str_cat.h"
#include "mallocgame/base/error.h"

namespace mallocgame {

absl::StatusOr<State> PlayActions(const Game& game, absl::Span<const uint8_t> actions) {
  State state = game.InitialState();
  for (const uint8_t action : actions) {
    if (action >= kActions) {
      return absl::InvalidArgumentError(absl::StrCat("action ", action, " at decision ",
                                                     state.num_decisions(),
                                                     ": there is none of this number"));
    }
    MG_RETURN_IF_ERROR(state.Apply(static_cast<Action>(action)).status());
  }
  return state;
}

}  // namespace mallocgame
