// What a game is made with beside a program and hardware: options that have names. Each game has a
// class of its own for them, in its folder. Options know all of a game that does not depend on a
// program.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "mallocgame/base/ids.h"
#include "mallocgame/hardware/hardware.h"
#include "mallocgame/program/program.h"

namespace mallocgame {

class Game;
struct ObservationOptions;
struct ObservationPart;

using OptionValue = std::variant<bool, int64_t, double, std::vector<AccessId>>;

// The name of an option, where its value stands, and which numbers are allowed.
struct GameOption {
  const char* name;
  std::variant<bool*, int*, int64_t*, double*, std::vector<AccessId>*> value;
  double least = 0, most = std::numeric_limits<double>::infinity();
  const char* allowed = "";  // the same in words
};

class GameOptions {
 public:
  // Smaller buffers stay in main memory, and the game does not ask about them. GameByDefault
  // (search/game_variants.h) asks about smaller ones where they count.
  int64_t min_buffer_bytes = 16 << 10;
  // The share of the capacity that no residence may take, in [0, 1).
  double keep_free = 0.0;
  // Accesses that must be served from main memory.
  std::vector<AccessId> forbidden = {};

  virtual ~GameOptions() = default;

  // The game's name: "time" ...
  virtual const char* game() const = 0;
  // The version of its rules. It changes with every change of a rule; a logged game is replayed
  // under the version that it names.
  virtual int rules_version() const = 0;
  virtual int num_actions() const = 0;
  // Whether it decides the order of instructions too.
  virtual bool decides_order() const { return false; }
  // How long a decision takes, as a multiple of one of the time game.
  virtual int decision_cost() const = 0;
  // What is observed (game/observation.h), in the order in which it stands, without parts that the
  // options leave out.
  virtual std::vector<ObservationPart> Layout(const ObservationOptions& options) const = 0;
  virtual std::unique_ptr<GameOptions> Clone() const = 0;
  // As Game::Create.
  virtual absl::StatusOr<std::shared_ptr<const Game>> MakeGame(
      std::shared_ptr<const Program> program, const Hardware& hardware) const = 0;

  // All options, in a fixed order.
  std::vector<std::pair<std::string, OptionValue>> List() const;
  bool Has(absl::string_view name) const;
  // InvalidArgument: there is no such option, or it may not have this value.
  absl::Status Set(absl::string_view name, const OptionValue& value);
  // Takes over the options that both have, by their names.
  void TakeOver(const GameOptions& other);
  // InvalidArgument: a number is out of its range.
  absl::Status Check() const;

  friend bool operator==(const GameOptions& a, const GameOptions& b) {
    return a.game() == absl::string_view(b.game()) && a.List() == b.List();
  }

 protected:
  GameOptions() = default;
  GameOptions(const GameOptions&) = default;
  GameOptions& operator=(const GameOptions&) = default;

  // The table of the options. A game adds its own to those above.
  virtual std::vector<GameOption> Table();

 private:
  std::vector<GameOption> ConstTable() const { return const_cast<GameOptions*>(this)->Table(); }
};

}  // namespace mallocgame
