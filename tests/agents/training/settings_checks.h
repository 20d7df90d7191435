// What the settings of every agent must do, whichever they are.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "agents/training/settings.h"
#include "tests/catch.h"

namespace mallocgame::training {

using NamesAndValues = std::vector<std::pair<const char*, const char*>>;

template <class Config>
Config ConfigWith(const NamesAndValues& changes) {
  Config config;
  for (const auto& [name, value] : changes) {
    INFO(name << " = " << value);
    REQUIRE(Set(config, name, value).ok());
  }
  return config;
}

// All settings are explained, and read back from their text after `changes`.
template <class Config>
void CheckSettingsReadBack(const NamesAndValues& changes) {
  const Config config = ConfigWith<Config>(changes);
  REQUIRE(!(config == Config()));
  Config again;
  for (const SettingText& setting : Settings(config)) {
    INFO(setting.name);
    REQUIRE(setting.meaning.size() > 10);
    REQUIRE(setting.meaning.back() == '.');
    REQUIRE(Set(again, setting.name, setting.value).ok());
  }
  REQUIRE(again == config);
  Config from_text;
  REQUIRE(ReadSettings(SettingsText(config), from_text).ok());
  REQUIRE(from_text == config);
}

// The message with which a setting is refused. A refused setting changes nothing.
template <class Config>
std::string Refusal(const char* name, const char* value) {
  Config config;
  const absl::Status status = Set(config, name, value);
  REQUIRE(absl::IsInvalidArgument(status));
  REQUIRE(config == Config());
  return std::string(status.message());
}

}  // namespace mallocgame::training
