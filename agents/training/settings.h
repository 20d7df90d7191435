// A struct of settings as a table: each member with its range and a sentence, read from text and
// written as text. One table serves the command line, Python, the documentation and checkpoints.
#ifndef AGENTS_TRAINING_SETTINGS_H_
#define AGENTS_TRAINING_SETTINGS_H_

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

// For people and documentation.
struct Setting {
  std::string name;
  std::string value;    // of the config given
  std::string allowed;  // such as "1 to 1024"
  std::string meaning;
};

template <class Config>
class SettingsTable {
 public:
  // One member, with what it may be: a range, or, for text, the words separated by |.
  struct Entry {
    const char* name;
    std::variant<int Config::*, double Config::*, bool Config::*, std::string Config::*> member;
    double least = 0, most = 0;
    const char* words = "";
    const char* meaning;
  };

  // Messages begin with `agent`.
  SettingsTable(std::string agent, std::vector<Entry> entries)
      : agent_(std::move(agent)), entries_(std::move(entries)) {}

  std::vector<Setting> Settings(const Config& config) const {
    std::vector<Setting> settings;
    for (const Entry& entry : entries_)
      settings.push_back({entry.name, TextOf(config, entry), Allowed(entry), entry.meaning});
    return settings;
  }

  // Sets one by name from its text. InvalidArgument names what was found and what is allowed.
  absl::Status Set(Config& config, absl::string_view name, absl::string_view value) const {
    std::vector<std::string> names;
    for (const Entry& entry : entries_) {
      if (name == entry.name) return SetEntry(config, entry, value);
      names.push_back(entry.name);
    }
    return absl::InvalidArgumentError(absl::StrCat(agent_, ": found the setting '", name,
                                                   "', allowed: ", absl::StrJoin(names, ", ")));
  }

 private:
  static std::string Allowed(const Entry& entry) {
    if (std::holds_alternative<bool Config::*>(entry.member)) return "0 or 1";
    if (*entry.words != '\0') return absl::StrJoin(absl::StrSplit(entry.words, '|'), ", ");
    return absl::StrCat(entry.least, " to ", entry.most);
  }

  // The fewest digits that read back as the same number.
  static std::string ShortestText(double value) {
    char text[32];
    return std::string(text, std::to_chars(text, text + sizeof(text), value).ptr);
  }

  static std::string TextOf(const Config& config, const Entry& entry) {
    return std::visit(
        [&](auto member) -> std::string {
          using Member = std::decay_t<decltype(config.*member)>;
          if constexpr (std::is_same_v<Member, bool>)
            return config.*member ? "1" : "0";
          else if constexpr (std::is_same_v<Member, double>)
            return ShortestText(config.*member);
          else
            return absl::StrCat(config.*member);
        },
        entry.member);
  }

  absl::Status SetEntry(Config& config, const Entry& entry, absl::string_view value) const {
    return std::visit(
        [&](auto member) {
          auto read = config.*member;
          if (!Read(entry, value, read)) {
            return absl::InvalidArgumentError(absl::StrCat(agent_, ": setting ", entry.name,
                                                           ": found '", value,
                                                           "', allowed: ", Allowed(entry)));
          }
          config.*member = read;
          return absl::OkStatus();
        },
        entry.member);
  }

  static bool Read(const Entry& entry, absl::string_view text, int& value) {
    return absl::SimpleAtoi(text, &value) && entry.least <= value && value <= entry.most;
  }
  static bool Read(const Entry& entry, absl::string_view text, double& value) {
    return absl::SimpleAtod(text, &value) && entry.least <= value && value <= entry.most;
  }
  static bool Read(const Entry&, absl::string_view text, bool& value) {
    value = text == "1" || text == "true";
    return value || text == "0" || text == "false";
  }
  static bool Read(const Entry& entry, absl::string_view text, std::string& value) {
    value = std::string(text);
    for (absl::string_view word : absl::StrSplit(entry.words, '|')) {
      if (text == word) return true;
    }
    return false;
  }

  std::string agent_;
  std::vector<Entry> entries_;
};

// All settings of a config as text, for checkpoints, and back. Config's namespace has Settings, Set
// and Check. InvalidArgument: a setting that isn't known or isn't allowed, as in a checkpoint of
// another version, or settings that don't go together.
template <class Config>
std::string SettingsText(const Config& config) {
  std::string text;
  for (const Setting& setting : Settings(config))
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

#endif  // AGENTS_TRAINING_SETTINGS_H_
