// The settings of EGRL: they read back from their text, and refuse what cannot be.
#include "agents/egrl/config.h"

#include "tests/agents/training/settings_checks.h"
#include "tests/catch.h"

namespace mallocgame::egrl {
namespace {

using training::Refusal;

TEST_CASE("settings read back from their text") {
  training::CheckSettingsReadBack<Config>({{"learning_rate", "0.00012345678901234567"},
                                           {"refined", "0.4"},
                                           {"population", "33"},
                                           {"gradient", "false"}});
  training::CheckSettingsReadBack<Config>({{"preset", "paper"}, {"hidden", "64"}});
}

TEST_CASE("the preset sets all others, back and forth") {
  Config config = training::ConfigWith<Config>({{"elites", "2"}, {"preset", "paper"}});
  REQUIRE(config.elites == Config().elites);
  REQUIRE((config.penalty && config.redrawn == 0 && config.refined == 0 && config.screened == 0));
  REQUIRE(Check(config).ok());
  REQUIRE(Set(config, "preset", "strong").ok());
  REQUIRE(config == Config());
}

TEST_CASE("a bad setting is named with what was found and what is allowed") {
  REQUIRE(Refusal<Config>("population", "-1") ==
          "egrl: setting population: found '-1', allowed: 0 to 4096");
  REQUIRE(Refusal<Config>("refined", "1") == "egrl: setting refined: found '1', allowed: 0 to 0.9");
  REQUIRE(Refusal<Config>("learning_rate", "nan").find("allowed: 0 to 10") != std::string::npos);
  REQUIRE(Refusal<Config>("gradients", "1").find("allowed: preset, population") !=
          std::string::npos);
}

TEST_CASE("settings that do not go together are refused") {
  Config config;
  REQUIRE(Check(config).ok());
  config.population = 0;
  REQUIRE(Check(config).ok());
  config.gradient = false;
  REQUIRE(absl::IsInvalidArgument(Check(config)));
  config = {};
  config.elites = config.population;
  REQUIRE(absl::IsInvalidArgument(Check(config)));
  config = {};
  config.redrawn = 0;
  REQUIRE(absl::IsInvalidArgument(Check(config)));
  config = {};
  config.hidden = 30;
  REQUIRE(std::string(Check(config).message()) ==
          "egrl: settings hidden and heads: found 30 and 4, allowed: a multiple of heads");
}

}  // namespace
}  // namespace mallocgame::egrl
