#include "mallocgame/game/games.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "mallocgame/game/priority/priority_game.h"
#include "mallocgame/game/schedule/schedule_game.h"
#include "mallocgame/game/time/time_game.h"

namespace mallocgame {
namespace {

std::vector<std::unique_ptr<GameOptions>> AllOptions() {
  std::vector<std::unique_ptr<GameOptions>> all;
  all.push_back(std::make_unique<TimeGameOptions>());
  all.push_back(std::make_unique<PriorityGameOptions>());
  all.push_back(std::make_unique<ScheduleGameOptions>());
  return all;
}

}  // namespace

std::vector<std::string> GameNames() {
  std::vector<std::string> names;
  for (const auto& options : AllOptions()) names.emplace_back(options->game());
  return names;
}

absl::StatusOr<std::unique_ptr<GameOptions>> OptionsOfGame(absl::string_view name) {
  for (auto& options : AllOptions()) {
    if (name == options->game()) return std::move(options);
  }
  const auto append = [](std::string* text, const std::string& one) {
    absl::StrAppend(text, "'", one, "'");
  };
  return absl::InvalidArgumentError(absl::StrCat(
      "game: found '", name, "', allowed: ", absl::StrJoin(GameNames(), ", ", append)));
}

}  // namespace mallocgame
