// Settings of an agent. Each is a field of a Config, and is explained where it is declared: its
// default, what it may be, and a sentence. The same sentence serves the command line, Python and
// the documentation; checkpoints keep the values as text.
//
//     struct Config {
//       Setting<int> simulations = {16, 1, 4096, "Simulations of one search."};
//       Setting<std::string> selection = {"gumbel", "gumbel|puct", "The rule that ..."};
//     };
#pragma once

#include <algorithm>
#include <charconv>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace mallocgame::training {

// A value of type int, double, bool or std::string with what it may be and what it means. It is
// read and assigned like the plain value; only text is checked against the range.
template <class T>
class Setting {
 public:
  // A number from `least` to `most`.
  Setting(T value, double least, double most, const char* meaning)
    requires(std::is_same_v<T, int> || std::is_same_v<T, double>)
      : value_(value), least_(least), most_(most), meaning_(meaning) {}
  // Yes or no.
  Setting(bool value, const char* meaning)
    requires(std::is_same_v<T, bool>)
      : value_(value), meaning_(meaning) {}
  // One of the words of `words`, which are separated by |.
  Setting(const char* value, const char* words, const char* meaning)
    requires(std::is_same_v<T, std::string>)
      : value_(value), words_(words), meaning_(meaning) {}

  // NOLINTNEXTLINE(google-explicit-constructor): a setting is used as the value it holds.
  operator const T&() const { return value_; }
  Setting& operator=(T value) {
    value_ = std::move(value);
    return *this;
  }
  friend bool operator==(const Setting& a, const Setting& b) { return a.value_ == b.value_; }
  friend bool operator==(const Setting& a, absl::string_view word)
    requires(std::is_same_v<T, std::string>)
  {
    return a.value_ == word;
  }

  const char* meaning() const { return meaning_; }

  // For people, such as "1 to 4096".
  std::string allowed() const {
    if constexpr (std::is_same_v<T, bool>) {
      return "0 or 1";
    } else if constexpr (std::is_same_v<T, std::string>) {
      return absl::StrJoin(absl::StrSplit(words_, '|'), ", ");
    } else {
      return absl::StrCat(least_, " to ", most_);
    }
  }

  // Reads back as the same value.
  std::string text() const {
    if constexpr (std::is_same_v<T, bool>) {
      return value_ ? "1" : "0";
    } else if constexpr (std::is_same_v<T, double>) {
      char text[32];  // std::to_chars writes the fewest digits that suffice
      return std::string(text, std::to_chars(text, text + sizeof(text), value_).ptr);
    } else {
      return absl::StrCat(value_);
    }
  }

  // False, and nothing is changed, if the text is not an allowed value.
  bool Read(absl::string_view text) {
    if constexpr (std::is_same_v<T, bool>) {
      const bool yes = text == "1" || text == "true";
      if (!yes && text != "0" && text != "false") return false;
      value_ = yes;
    } else if constexpr (std::is_same_v<T, std::string>) {
      const std::vector<std::string> words = absl::StrSplit(words_, '|');
      if (std::find(words.begin(), words.end(), text) == words.end()) return false;
      value_ = std::string(text);
    } else {
      T value = {};
      if (!Parse(text, value) || !(least_ <= value && value <= most_)) return false;
      value_ = value;
    }
    return true;
  }

 private:
  static bool Parse(absl::string_view text, int& value) { return absl::SimpleAtoi(text, &value); }
  static bool Parse(absl::string_view text, double& value) {
    return absl::SimpleAtod(text, &value);
  }

  T value_;
  double least_ = 0, most_ = 0;
  const char* words_ = "";
  const char* meaning_;
};

// A setting as text, for people and documentation.
struct SettingText {
  std::string name, value, allowed, meaning;
};

// The settings of a Config by name.
template <class Config>
class SettingsTable {
 public:
  struct Entry {
    const char* name;
    std::variant<Setting<int> Config::*, Setting<double> Config::*, Setting<bool> Config::*,
                 Setting<std::string> Config::*>
        member;
  };

  // Messages begin with `agent`.
  SettingsTable(std::string agent, std::vector<Entry> entries)
      : agent_(std::move(agent)), entries_(std::move(entries)) {}

  std::vector<SettingText> Settings(const Config& config) const {
    std::vector<SettingText> texts;
    for (const Entry& entry : entries_) {
      std::visit(
          [&](auto member) {
            const auto& setting = config.*member;
            texts.push_back({entry.name, setting.text(), setting.allowed(), setting.meaning()});
          },
          entry.member);
    }
    return texts;
  }

  // Sets one setting by name from its text. InvalidArgument names what was found and what is
  // allowed; `config` is unchanged then.
  absl::Status Set(Config& config, absl::string_view name, absl::string_view value) const {
    std::vector<std::string> names;
    for (const Entry& entry : entries_) {
      if (name != entry.name) {
        names.push_back(entry.name);
        continue;
      }
      return std::visit(
          [&](auto member) {
            auto& setting = config.*member;
            if (setting.Read(value)) return absl::OkStatus();
            return absl::InvalidArgumentError(absl::StrCat(
                agent_, ": setting ", name, ": found '", value, "', allowed: ", setting.allowed()));
          },
          entry.member);
    }
    return absl::InvalidArgumentError(absl::StrCat(agent_, ": found the setting '", name,
                                                   "', allowed: ", absl::StrJoin(names, ", ")));
  }

 private:
  std::string agent_;
  std::vector<Entry> entries_;
};

// All settings of a config as text, for checkpoints, and back. The functions Settings, Set and
// Check are those of Config's namespace. InvalidArgument: a setting is unknown or not allowed, as
// in a checkpoint of another version, or the settings do not go together.
template <class Config>
std::string SettingsText(const Config& config) {
  std::string text;
  for (const SettingText& setting : Settings(config))
    absl::StrAppend(&text, setting.name, "=", setting.value, "\n");
  return text;
}
template <class Config>
absl::Status ReadSettings(absl::string_view text, Config& config) {
  for (absl::string_view setting : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(setting, absl::MaxSplits('=', 1));
    if (const absl::Status set = Set(config, parts.first, parts.second); !set.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the checkpoint is of another version: ", set.message()));
    }
  }
  return Check(config);
}

}  // namespace mallocgame::training
