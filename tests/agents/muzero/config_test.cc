// Settings from text and back, and what they refuse.
#include "agents/muzero/config.h"

#include "tests/catch.h"

namespace mallocgame::muzero {
namespace {

TEST_CASE("settings read back from their text") {
  Config config;
  REQUIRE(Set(config, "learning_rate", "0.00012345678901234567").ok());
  REQUIRE(Set(config, "search_model", "learned").ok());
  REQUIRE(Set(config, "simulations", "33").ok());
  REQUIRE(Set(config, "paper_actions", "true").ok());
  REQUIRE(config.learned());
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
  REQUIRE(message("simulations", "0") ==
          "muzero: setting simulations: found '0', allowed: 1 to 4096");
  REQUIRE(message("simulations", "many") ==
          "muzero: setting simulations: found 'many', allowed: 1 to 4096");
  REQUIRE(message("learning_rate", "nan").find("allowed: 0 to 10") != std::string::npos);
  REQUIRE(message("selection", "ucb") ==
          "muzero: setting selection: found 'ucb', allowed: gumbel, puct");
  REQUIRE(message("paper_actions", "2").find("allowed: 0 or 1") != std::string::npos);
  REQUIRE(message("simulation", "8").find("allowed: search_model, selection, simulations") !=
          std::string::npos);
}

TEST_CASE("settings that don't go together are refused") {
  Config config;
  REQUIRE(Check(config).ok());
  config.ticks_back = 7;
  REQUIRE(absl::IsInvalidArgument(Check(config)));
  config = {};
  config.best_share = 0.7;
  config.demonstration_share = 0.4;
  REQUIRE(absl::IsInvalidArgument(Check(config)));
}

}  // namespace
}  // namespace mallocgame::muzero
