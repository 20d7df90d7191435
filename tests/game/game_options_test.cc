// Options of games by their names.
#include "mallocgame/game/game_options.h"

#include <memory>
#include <set>
#include <string>

#include "mallocgame/game/games.h"
#include "mallocgame/game/priority/priority_game.h"
#include "mallocgame/game/schedule/schedule_game.h"
#include "mallocgame/game/time/time_game.h"
#include "tests/catch.h"

namespace mallocgame {
namespace {

std::string Refusal(const absl::Status& status) { return std::string(status.message()); }

TEST_CASE("a game is found by its name, and another name is refused with all names") {
  std::set<std::string> names;
  for (const std::string& name : GameNames()) {
    const auto options = OptionsOfGame(name);
    REQUIRE(options.ok());
    REQUIRE((*options)->game() == name);
    REQUIRE((*options)->Check().ok());
    REQUIRE(*(*options)->Clone() == **options);
    names.insert(name);
  }
  REQUIRE(names == std::set<std::string>{"priority", "schedule", "time"});
  REQUIRE(Refusal(OptionsOfGame("space").status()) ==
          "game: found 'space', allowed: 'time', 'priority', 'schedule'");
}

TEST_CASE("an option is set by its name, within its range and of its type") {
  PriorityGameOptions options;
  REQUIRE(options.Set("candidates", int64_t{8}).ok());
  REQUIRE(options.Set("bytes_weight", int64_t{2}).ok());
  REQUIRE(options.Set("exact_stalls", true).ok());
  REQUIRE(options.Set("forbidden", std::vector<AccessId>{AccessId(3)}).ok());
  REQUIRE(options.candidates == 8);
  REQUIRE(options.bytes_weight == 2);
  REQUIRE(options.exact_stalls);
  REQUIRE(options.forbidden == std::vector<AccessId>{AccessId(3)});
  REQUIRE(options.num_actions() == 8 * kActionModes);
  const PriorityGameOptions before = options;
  CHECK(Refusal(options.Set("candidates", int64_t{52})) ==
        "candidates: found 52, allowed: 1 to 51");
  CHECK(Refusal(options.Set("candidates", 1.5)) == "candidates: found 1.5, allowed: 1 to 51");
  CHECK(Refusal(options.Set("keep_free", 1.0)) ==
        "keep_free: found 1, allowed: 0 or more, less than 1");
  CHECK(Refusal(options.Set("exact_stalls", int64_t{1})) ==
        "exact_stalls: found 1, allowed: true or false");
  std::string allowed;
  for (const auto& [name, value] : options.List()) allowed += (allowed.empty() ? "" : ", ") + name;
  CHECK(Refusal(options.Set("main_bytes", int64_t{1})) ==
        "found option 'main_bytes' for the priority game, allowed: " + allowed);
  CHECK(allowed.find("keep_free, forbidden, candidates, ") != std::string::npos);
  REQUIRE(options == before);
  options.time_weight = -1;
  CHECK(Refusal(options.Check()) == "time_weight: found -1, allowed: 0 to 2");
}

TEST_CASE("a game takes over the options that it has, in its range") {
  ScheduleGameOptions schedule;
  schedule.main_bytes = 1 << 20;
  schedule.candidates = 47;
  schedule.keep_free = 0.25;
  schedule.forbidden = {AccessId(1)};
  PriorityGameOptions priority;
  priority.TakeOver(schedule);
  CHECK(priority.candidates == 47);
  CHECK(priority.keep_free == 0.25);
  CHECK(priority.forbidden == schedule.forbidden);
  priority.candidates = 51;
  ScheduleGameOptions back;
  back.TakeOver(priority);
  CHECK(back.candidates == ScheduleGameOptions().candidates);
  TimeGameOptions time;
  time.TakeOver(priority);
  CHECK(time.keep_free == 0.25);
  CHECK_FALSE(static_cast<const GameOptions&>(time) == priority);
}

}  // namespace
}  // namespace mallocgame
