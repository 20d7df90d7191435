#include "agents/muzero/game_parts.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/string_view.h"
#include "mallocgame/base/error.h"

namespace mallocgame::muzero {
namespace {

struct PartsByName {
  absl::string_view game;
  GameParts parts;
};

constexpr PartsByName kGames[] = {
    {"time",
     {BaselineInTime, [](const Task&, const Start&) { return std::unique_ptr<Varying>(); }}},
    {"priority", {BaselineByPriority, VaryPlacement}},
    {"schedule", {BaselineInAnyOrder, VarySchedule}},
};

}  // namespace

const GameParts& PartsOf(const Game& game) {
  const auto* const found =
      std::find_if(std::begin(kGames), std::end(kGames),
                   [&game](const PartsByName& one) { return one.game == game.options().game(); });
  MG_CHECK(found != std::end(kGames));
  return found->parts;
}

}  // namespace mallocgame::muzero
