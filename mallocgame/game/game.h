// The rules of mallocGame: a single-player game whose every play ends in a valid Plan. A Game is a
// program, a hardware and options; its positions are what is played (position.h). There are several
// games, each in a folder of its own: the time game (time/time_game.h), the priority game
// (priority/priority_game.h) and the schedule game (schedule/schedule_game.h). All end in plans of
// the same program, priced in the same way, and their undiscounted return is 1 - latency / all-main
// latency, exactly: it is counted in the integer picoseconds that each action saves.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "mallocgame/base/ids.h"
#include "mallocgame/game/game_options.h"
#include "mallocgame/game/intent.h"
#include "mallocgame/hardware/hardware.h"
#include "mallocgame/plan/plan.h"
#include "mallocgame/program/cost_model.h"
#include "mallocgame/program/program.h"

namespace mallocgame {

class IncumbentTrace;
class Observer;
class Position;
class PositionObserver;
class PriceSums;
struct GameTables;

// Immutable: shared by all its positions and by threads.
class Game : public std::enable_shared_from_this<Game> {
 public:
  // The game of these options. InvalidArgument: options out of range, an access that does not
  // exist, hardware that ValidateHardware refuses, or a program that would take days on it (more
  // than 2^60 ps).
  static absl::StatusOr<std::shared_ptr<const Game>> Create(std::shared_ptr<const Program> program,
                                                            const Hardware& hardware,
                                                            const GameOptions& options) {
    return options.MakeGame(std::move(program), hardware);
  }
  virtual ~Game();

  virtual std::unique_ptr<Position> NewInitialPosition() const = 0;
  // What an action in [0, num_actions()) is called: "Copy" ...
  virtual std::string ActionToString(int action) const = 0;
  // The dense intent (intent.h) that leaves everything to greedy. Ranks are the order of
  // importance.
  virtual Intent OpenIntent() const = 0;
  // The dense intent of a player who wants to get `plan`, which must be well formed.
  virtual Intent ReadPlan(const Plan& plan) const = 0;
  // The same game of `program`, which has the instructions of this game's program in another order:
  // tick t is tick order[t] of that, and its access a is access access_of[a] of `program`
  // (schedule/instruction_order.h). Prices are taken over, so this takes less time than Create. Not
  // of a game that decides the order.
  virtual std::shared_ptr<const Game> Reordered(std::shared_ptr<const Program> program,
                                                absl::Span<const Tick> order,
                                                absl::Span<const int32_t> access_of) const = 0;

  // What searches play other games of this one beside (incumbent_trace.h); it may not outlive it.
  virtual std::unique_ptr<IncumbentTrace> MakeTrace() const;

  // The game that a plan at an order of instructions is of: this one, unless it decides the order.
  virtual std::shared_ptr<const Game> PlannedAt(const std::vector<Tick>& /*order*/) const {
    return shared_from_this();
  }

  const Program& program() const { return *program_; }
  std::shared_ptr<const Program> shared_program() const { return program_; }
  const Hardware& hardware() const { return hardware_; }
  const GameOptions& options() const { return *options_; }
  const CostModel& cost_model() const { return cost_model_; }
  int num_actions() const { return num_actions_; }
  // Bytes that residences may use: the capacity of fast memory less the share keep_free, rounded
  // down to the alignment. Residences lie in [0, usable_bytes()).
  int64_t usable_bytes() const { return usable_bytes_; }
  // Whether main memory must serve an access: it is forbidden by the options, or its instruction
  // can't make results elsewhere (Program::in_main_only).
  bool in_main(AccessId id) const { return in_main_[id.index()]; }
  // Whether the options forbid to serve an access from fast memory.
  bool forbidden(AccessId id) const;
  // The latency of the plan with everything in main memory.
  int64_t all_main_ps() const { return all_main_ps_; }
  // An upper limit of the length of a game.
  int max_decisions() const { return max_decisions_; }
  // What the rules of all games look up, computed once. For the games and the searches in the core:
  // mallocgame/game/tables.h, which defines the type, is private.
  const GameTables& tables() const { return *tables_; }

 protected:
  friend class Observer;

  // What Create refuses, whatever the game.
  static absl::Status Check(const std::shared_ptr<const Program>& program, const Hardware& hardware,
                            const GameOptions& options);
  // `known`, if not null, is a game of the same instructions, in which tick t is order[t].
  Game(std::shared_ptr<const Program> program, const Hardware& hardware, const GameOptions& options,
       const Game* known = nullptr, absl::Span<const Tick> order = {});

  // For Observer: prices may be null.
  virtual std::unique_ptr<const PositionObserver> MakeObserver(
      const ObservationOptions& options, std::shared_ptr<const PriceSums> prices) const = 0;

  int max_decisions_ = 0;

 private:
  std::shared_ptr<const Program> program_;
  Hardware hardware_;
  std::unique_ptr<const GameOptions> options_;
  CostModel cost_model_;
  int64_t usable_bytes_ = 0;
  std::vector<bool> in_main_;  // one for each access
  int num_actions_;
  std::unique_ptr<const GameTables> tables_;
  int64_t all_main_ps_ = 0;
};

}  // namespace mallocgame
