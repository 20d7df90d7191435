#include "mallocgame/game/game_options.h"

#include <algorithm>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "mallocgame/base/error.h"

namespace mallocgame {
namespace {

OptionValue ValueOf(const GameOption& option) {
  return std::visit(
      [](const auto* value) -> OptionValue {
        if constexpr (std::is_same_v<decltype(value), const int*>) {
          return int64_t{*value};
        } else {
          return *value;
        }
      },
      option.value);
}

std::string Text(const OptionValue& value) {
  return std::visit(
      [](const auto& v) -> std::string {
        if constexpr (std::is_same_v<std::decay_t<decltype(v)>, bool>) {
          return v ? "true" : "false";
        } else if constexpr (std::is_arithmetic_v<std::decay_t<decltype(v)>>) {
          return absl::StrCat(v);
        } else {
          return "a list";
        }
      },
      value);
}

bool IsInRange(const GameOption& option, const OptionValue& value) {
  return std::visit(
      [&option](const auto& v) {
        if constexpr (std::is_arithmetic_v<std::decay_t<decltype(v)>>) {
          const auto number = static_cast<double>(v);
          return number >= option.least && number <= option.most;
        } else {
          return true;
        }
      },
      value);
}

absl::Status Refused(const GameOption& option, const OptionValue& value) {
  return absl::InvalidArgumentError(
      absl::StrCat(option.name, ": found ", Text(value), ", allowed: ", option.allowed));
}

// Whether the value is of the option's type, and then stands there.
bool Assign(const GameOption& option, const OptionValue& value) {
  return std::visit(
      [](auto* to, const auto& from) {
        using To = std::remove_pointer_t<decltype(to)>;
        using From = std::decay_t<decltype(from)>;
        constexpr bool kSame = std::is_same_v<To, From>;
        constexpr bool kNumber =
            std::is_same_v<From, int64_t> && std::is_arithmetic_v<To> && !std::is_same_v<To, bool>;
        if constexpr (kSame || kNumber) *to = static_cast<To>(from);
        return kSame || kNumber;
      },
      option.value, value);
}

}  // namespace

std::vector<GameOption> GameOptions::Table() {
  // The largest number below 1.
  constexpr double kBelowOne = 1 - std::numeric_limits<double>::epsilon() / 2;
  return {{"min_buffer_bytes", &min_buffer_bytes, 0, 0x1p63, "0 or more"},
          {"keep_free", &keep_free, 0, kBelowOne, "0 or more, less than 1"},
          {"forbidden", &forbidden, 0, 0, "a list of accesses"}};
}

std::vector<std::pair<std::string, OptionValue>> GameOptions::List() const {
  std::vector<std::pair<std::string, OptionValue>> list;
  for (const GameOption& option : ConstTable()) list.emplace_back(option.name, ValueOf(option));
  return list;
}

bool GameOptions::Has(absl::string_view name) const {
  const std::vector<GameOption> table = ConstTable();
  return std::any_of(table.begin(), table.end(),
                     [name](const GameOption& option) { return name == option.name; });
}

absl::Status GameOptions::Set(absl::string_view name, const OptionValue& value) {
  const std::vector<GameOption> table = Table();
  for (const GameOption& option : table) {
    if (name != option.name) continue;
    if (!IsInRange(option, value) || !Assign(option, value)) return Refused(option, value);
    return absl::OkStatus();
  }
  const auto append = [](std::string* text, const GameOption& option) { *text += option.name; };
  return absl::InvalidArgumentError(
      absl::StrCat("found option '", name, "' for the ", game(),
                   " game, allowed: ", absl::StrJoin(table, ", ", append)));
}

void GameOptions::TakeOver(const GameOptions& other) {
  for (const auto& [name, value] : other.List()) {
    // A number that is out of this game's range stays away.
    if (Has(name)) Set(name, value).IgnoreError();
  }
}

absl::Status GameOptions::Check() const {
  for (const GameOption& option : ConstTable()) {
    if (const OptionValue value = ValueOf(option); !IsInRange(option, value))
      return Refused(option, value);
  }
  return absl::OkStatus();
}

}  // namespace mallocgame
