// Settings of a made-up config: each kind as a value, as text, and what it refuses.
#include "agents/training/settings.h"

#include "tests/agents/training/settings_checks.h"
#include "tests/catch.h"

namespace mallocgame::training {
namespace toy {

struct Config {
  Setting<int> count = {2, 1, 8, "Number of things."};
  Setting<double> share = {0.25, 0, 1, "Share of the things."};
  Setting<bool> loud = {false, "Whether the things are loud."};
  Setting<std::string> kind = {"red", "red|green", "Colour of the things."};
  friend bool operator==(const Config&, const Config&) = default;
};

const SettingsTable<Config>& Table() {
  static const auto* const table = new SettingsTable<Config>("toy", {{"count", &Config::count},
                                                                     {"share", &Config::share},
                                                                     {"loud", &Config::loud},
                                                                     {"kind", &Config::kind}});
  return *table;
}
std::vector<SettingText> Settings(const Config& config) { return Table().Settings(config); }
absl::Status Set(Config& config, absl::string_view name, absl::string_view value) {
  return Table().Set(config, name, value);
}
absl::Status Check(const Config& config) {
  return config.count < 8 ? absl::OkStatus() : absl::InvalidArgumentError("too many");
}

}  // namespace toy

namespace {

TEST_CASE("a setting is used like its value") {
  toy::Config config;
  REQUIRE(config.count + 1 == 3);
  REQUIRE(1 - config.share == 0.75);
  REQUIRE(!config.loud);
  REQUIRE(config.kind == "red");
  config.count = 5;
  config.kind = "green";
  REQUIRE(config.count == 5);
  REQUIRE(config.kind != "red");
}

TEST_CASE("settings read back from their text, in the table's order") {
  CheckSettingsReadBack<toy::Config>({{"count", "7"}, {"share", "0.1"}, {"loud", "true"}});
  REQUIRE(SettingsText(toy::Config()) == "count=2\nshare=0.25\nloud=0\nkind=red\n");
}

TEST_CASE("each kind says what it allows, and refuses the rest") {
  for (const auto& [name, value, allowed] :
       {std::tuple("count", "9", "1 to 8"), std::tuple("count", "2.5", "1 to 8"),
        std::tuple("share", "-0.1", "0 to 1"), std::tuple("share", "nan", "0 to 1"),
        std::tuple("loud", "yes", "0 or 1"), std::tuple("kind", "red|green", "red, green"),
        std::tuple("kind", "", "red, green")}) {
    REQUIRE(Refusal<toy::Config>(name, value) ==
            absl::StrCat("toy: setting ", name, ": found '", value, "', allowed: ", allowed));
  }
  REQUIRE(Refusal<toy::Config>("size", "1") ==
          "toy: found the setting 'size', allowed: count, share, loud, kind");
}

TEST_CASE("text with an unknown setting, or settings that do not go together, is refused") {
  toy::Config config;
  REQUIRE(ReadSettings("count=3\nsize=1\n", config).message() ==
          "the checkpoint is of another version: toy: found the setting 'size', allowed: count, "
          "share, loud, kind");
  REQUIRE(ReadSettings("count=8\n", config).message() == "too many");
}

}  // namespace
}  // namespace mallocgame::training
