#include "mallocgame/pjrt/plugin.h"

#include "absl/strings/match.h"
#include "tests/catch.h"

namespace mallocgame::pjrt {
namespace {

TEST_CASE("A plugin compiles for a topology") {
  const auto plugin = Plugin::Load(FAKE_PLUGIN);
  REQUIRE(plugin.ok());
  CHECK((*plugin)->api_version() == "0.7");
  const auto topology = (*plugin)->CreateTopology(
      "v5e:1x1", {{"bounds", std::vector<int64_t>{1, 2, 3}}, {"config", "megacore"}});
  REQUIRE(topology.ok());
  const auto executable = (*plugin)->Compile("hlo", "module", "options", *topology);
  REQUIRE(executable.ok());
  CHECK(*executable == "v5e:1x1 bounds=123 config=megacore|hlo|module|options");
}

TEST_CASE("What a plugin refuses has its own code and words") {
  const auto plugin = Plugin::Load(FAKE_PLUGIN);
  REQUIRE(plugin.ok());
  CHECK((*plugin)->CreateTopology("none", {}).status() ==
        absl::InvalidArgumentError("no such chip"));
  const auto topology = (*plugin)->CreateTopology("v5e:1x1", {});
  REQUIRE(topology.ok());
  CHECK((*plugin)->Compile("hlo", "refuse", "", *topology).status() ==
        absl::InvalidArgumentError("refused"));
  CHECK((*plugin)->RunPhase("none", {}, "", *topology).status() ==
        absl::InvalidArgumentError("no such phase"));
}

TEST_CASE("Phases take programs and give programs") {
  const auto plugin = Plugin::Load(FAKE_PLUGIN);
  REQUIRE(plugin.ok());
  CHECK((*plugin)->HasPhases());
  const auto topology = (*plugin)->CreateTopology("v5e:1x1", {});
  REQUIRE(topology.ok());
  // The name need not end with a zero.
  const absl::string_view phase = absl::string_view("phase3_linking and more").substr(0, 14);
  const auto programs = (*plugin)->RunPhase(phase, {"a", std::string(1, '\0')}, "", *topology);
  REQUIRE(programs.ok());
  CHECK(*programs ==
        std::vector<std::string>{"phase3_linking:a", std::string("phase3_linking:\0", 16)});
}

TEST_CASE("A plugin without phases compiles whole only") {
  const auto plugin = Plugin::Load(FAKE_PLUGIN_WITHOUT_PHASES);
  REQUIRE(plugin.ok());
  CHECK(!(*plugin)->HasPhases());
  const auto topology = (*plugin)->CreateTopology("v5e:1x1", {});
  REQUIRE(topology.ok());
  CHECK((*plugin)->Compile("hlo", "module", "", *topology).ok());
  CHECK((*plugin)->RunPhase(kPhase3Linking, {}, "", *topology).status().code() ==
        absl::StatusCode::kFailedPrecondition);
}

TEST_CASE("What is no plugin of this version is refused before it is used") {
  const absl::Status missing = Plugin::Load("/nowhere/libtpu.so").status();
  CHECK(missing.code() == absl::StatusCode::kNotFound);
  CHECK(absl::StrContains(missing.message(), "/nowhere/libtpu.so"));

  const absl::Status other = Plugin::Load(NO_PLUGIN).status();
  CHECK(other.code() == absl::StatusCode::kFailedPrecondition);
  CHECK(absl::StrContains(other.message(), "found no function GetPjrtApi"));

  const absl::Status version = Plugin::Load(FAKE_PLUGIN_OF_VERSION_1).status();
  CHECK(version.code() == absl::StatusCode::kFailedPrecondition);
  CHECK(absl::StrContains(version.message(), "found version 1.7, allowed: 0.*"));

  const absl::Status table = Plugin::Load(FAKE_PLUGIN_WITH_A_SHORT_TABLE).status();
  CHECK(table.code() == absl::StatusCode::kFailedPrecondition);
  CHECK(absl::StrContains(table.message(), "found a table of 64 bytes, allowed: 760 or more"));
}

}  // namespace
}  // namespace mallocgame::pjrt
