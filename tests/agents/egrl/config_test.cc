// Settings from text and back, and what they refuse.
#include "agents/egrl/config.h"

#include "tests/catch.h"

namespace mallocgame::egrl {
namespace {

TEST_CASE("settings read back from their text") {
  Config config;
  REQUIRE(Set(config, "learning_rate", "0.00012345678901234567").ok());
  REQUIRE(Set(config, "refined", "0.4").ok());
  REQUIRE(Set(config, "population", "33").ok());
  REQUIRE(Set(config, "gradient", "false").ok());
  REQUIRE(config.population == 33);
  REQUIRE(!config.gradient);
  Config again;
  for (const Setting& setting : Settings(config)) {
    REQUIRE(!setting.meaning.empty());
    REQUIRE(Set(again, setting.name, setting.value).ok());
  }
  REQUIRE(again == config);
}

TEST_CASE("a bad setting is named with what was found and what is allowed") {
  Config config;
  const Config before = config;
  const auto message = [&](const char* name, const char* value) {
    const absl::Status status = Set(config, name, value);
    REQUIRE(absl::IsInvalidArgument(status));
    REQUIRE(config == before);
    return std::string(status.message());
  };
  REQUIRE(message("population", "-1") ==
          "egrl: setting population: found '-1', allowed: 0 to 4096");
  REQUIRE(message("refined", "1") == "egrl: setting refined: found '1', allowed: 0 to 0.9");
  REQUIRE(message("learning_rate", "nan").find("allowed: 0 to 10") != std::string::npos);
  REQUIRE(message("gradients", "1").find("allowed: population, boltzmann_share") !=
          std::string::npos);
}

TEST_CASE("settings that don't go together are refused") {
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
  config.hidden = 30;
  REQUIRE(std::string(Check(config).message()) ==
          "egrl: settings hidden and heads: found 30 and 4, allowed: a multiple of heads");
}

}  // namespace
}  // namespace mallocgame::egrl
