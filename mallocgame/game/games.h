// The games by their names: the one place that lists them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "mallocgame/game/game_options.h"

namespace mallocgame {

// In a fixed order: "time", "priority", "schedule".
std::vector<std::string> GameNames();

// The default options of the game of that name. InvalidArgument lists them.
absl::StatusOr<std::unique_ptr<GameOptions>> OptionsOfGame(absl::string_view name);

}  // namespace mallocgame
