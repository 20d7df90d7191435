// The settings of MuZero: they read back from their text, and refuse what cannot be.
#include "agents/muzero/config.h"

#include "mallocgame/game/priority/priority_state.h"
#include "mallocgame/game/schedule/schedule_game.h"
#include "mallocgame/game/schedule/schedule_state.h"
#include "mallocgame/game/time/time_game.h"
#include "tests/agents/training/settings_checks.h"
#include "tests/catch.h"

namespace mallocgame::muzero {
namespace {

using training::Refusal;

TEST_CASE("settings read back from their text") {
  training::CheckSettingsReadBack<Config>({{"learning_rate", "0.00012345678901234567"},
                                           {"simulations", "33"},
                                           {"game", "priority"},
                                           {"candidates", "2"}});
  Config config;
  REQUIRE(!config.paper());
  // A preset says what all other settings begin with.
  REQUIRE(Set(config, "simulations", "33").ok());
  REQUIRE(Set(config, "preset", "paper").ok());
  REQUIRE(config.paper());
  REQUIRE(config.simulations != 33);
  REQUIRE(config.game_options()->num_actions() == kActions - 1);
  training::CheckSettingsReadBack<Config>({{"preset", "paper"}, {"batch", "7"}});
  REQUIRE(Set(config, "preset", "strong").ok());
  REQUIRE(config == Config());
}

TEST_CASE("the settings say which game is played, and so how many actions there are") {
  Config config;
  REQUIRE(config.game == "priority");
  REQUIRE(Set(config, "game", "time").ok());
  REQUIRE(config.game == "time");
  REQUIRE(config.game_options()->num_actions() == kActions);
  REQUIRE(Set(config, "game", "priority").ok());
  REQUIRE(Set(config, "candidates", "3").ok());
  REQUIRE(config.game == "priority");
  REQUIRE(config.game_options()->num_actions() == 3 * kActionModes);
  REQUIRE(Set(config, "game", "schedule").ok());
  REQUIRE(config.game == "schedule");
  REQUIRE(config.game_options()->num_actions() == kOrderingActions + 3 * kActionModes);
  // It shows fewer candidates, as it has other actions too.
  REQUIRE(Set(config, "candidates", "51").ok());
  REQUIRE(config.game_options()->num_actions() ==
          kOrderingActions + kMaxScheduleCandidates * kActionModes);
  REQUIRE(Refusal<Config>("game", "chess") ==
          "muzero: setting game: found 'chess', allowed: time, priority, schedule");
}

TEST_CASE("a bad setting is named with what was found and what is allowed") {
  REQUIRE(Refusal<Config>("simulations", "0") ==
          "muzero: setting simulations: found '0', allowed: 1 to 4096");
  REQUIRE(Refusal<Config>("simulations", "many") ==
          "muzero: setting simulations: found 'many', allowed: 1 to 4096");
  REQUIRE(Refusal<Config>("learning_rate", "nan").find("allowed: 0 to 10") != std::string::npos);
  REQUIRE(Refusal<Config>("preset", "true") ==
          "muzero: setting preset: found 'true', allowed: strong, paper");
  REQUIRE(Refusal<Config>("simulation", "8").find("allowed: preset, simulations") !=
          std::string::npos);
}

TEST_CASE("settings that do not go together are refused") {
  Config config;
  REQUIRE(Check(config).ok());
  REQUIRE(Set(config, "preset", "paper").ok());
  REQUIRE(Check(config).ok());
  config.game = "priority";
  REQUIRE(Check(config).message() ==
          "muzero: setting game: found 'priority', allowed with preset=paper: time");
  config = Config();
  config.drop_backup = true;
  REQUIRE(Check(config).message().find("allowed: with preset=paper") != std::string::npos);
}

}  // namespace
}  // namespace mallocgame::muzero
