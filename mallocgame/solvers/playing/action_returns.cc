#include "mallocgame/solvers/playing/action_returns.h"

#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "mallocgame/base/error.h"
#include "mallocgame/game/time/state.h"
#include "mallocgame/solvers/playing/rent.h"

namespace mallocgame {
namespace {

// `play_on` plays the position to its end.
template <class PlayOn>
std::vector<double> ReturnsOf(Position& position, const PlayOn& play_on) {
  const Game& game = position.game();
  std::vector<double> returns(game.num_actions(), std::numeric_limits<double>::quiet_NaN());
  const int decisions = position.num_decisions();
  const ActionSet legal = position.legal_actions();
  for (const int action : legal) {
    MG_CHECK(position.Apply(action).ok());
    play_on();
    const auto all_main = static_cast<double>(game.all_main_ps());
    returns[action] = all_main == 0 ? 0 : 1 - static_cast<double>(position.latency_ps()) / all_main;
    while (position.num_decisions() > decisions) position.Undo();
  }
  return returns;
}

}  // namespace

absl::StatusOr<std::vector<double>> ActionReturns(Position& position, const Prices* prices) {
  const Game& game = position.game();
  if (prices == nullptr) {
    const Intent open = game.OpenIntent();
    return ReturnsOf(position, [&] { position.PlayOn(open); });
  }
  auto* const state = dynamic_cast<State*>(&position);
  if (state == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("action_returns: found prices with the ", game.options().game(),
                     " game, allowed: none; rent plays the time game only"));
  }
  MG_RETURN_IF_ERROR(ValidatePrices(game.program(), *prices));
  const Rent rent(*prices);
  return ReturnsOf(*state, [&] { PlayRentFrom(*state, rent); });
}

}  // namespace mallocgame
