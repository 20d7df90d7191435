// A position of a game, whichever game it is. Whoever only plays needs no more than this.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "mallocgame/base/ids.h"
#include "mallocgame/game/action_set.h"
#include "mallocgame/game/intent.h"
#include "mallocgame/game/mode.h"
#include "mallocgame/plan/plan.h"

namespace mallocgame {

class Game;

// Accesses of one buffer that follow each other, from the first to the last.
struct AccessRun {
  AccessId first, last;
};

// A position is not shared between threads. An action is a number in [0, game().num_actions()).
class Position {
 public:
  virtual ~Position() = default;

  virtual std::unique_ptr<Position> Clone() const = 0;
  // Becomes a copy of `other`, a position of the same game, without a new object.
  virtual void CopyFrom(const Position& other) = 0;

  virtual const Game& game() const = 0;
  virtual const std::shared_ptr<const Game>& shared_game() const = 0;
  virtual bool IsTerminal() const = 0;
  // Empty at the end, else never empty.
  virtual ActionSet legal_actions() const = 0;

  // Carries out a legal action and returns the picoseconds that it saves, negative if it costs
  // some: latency_ps() before less latency_ps() after. InvalidArgument for an illegal action,
  // FailedPrecondition at the end; the position is then unchanged.
  virtual absl::StatusOr<int64_t> Apply(int action) = 0;
  // What Apply would return for a legal action, without carrying it out. Of an action that ends a
  // game whose stalls are known in part only, it is what the known stalls say.
  virtual int64_t SavingOf(int action) const = 0;
  // Takes back the last decision. There must be one.
  virtual void Undo() = 0;

  // The actions decided so far.
  virtual absl::Span<const uint8_t> actions() const = 0;
  int num_decisions() const { return static_cast<int>(actions().size()); }

  // The latency with everything undecided in main memory. At the end it is what Simulate says of
  // ToPlan(); before, a game may know its stalls in part only.
  virtual int64_t latency_ps() const = 0;
  // What illegal actions have cost so far, in a game that allows them for a penalty. Apply takes it
  // off what it returns, and latency_ps() doesn't have it.
  virtual int64_t penalty_ps() const { return 0; }
  // The plan of the decisions so far, with everything undecided in main memory. Only that of a
  // terminal position is sure to be valid.
  virtual Plan ToPlan() const = 0;
  // The game whose program, at whose order of instructions, the plan is of: this one, unless the
  // order is decided too.
  virtual std::shared_ptr<const Game> PlannedGame() const { return shared_game(); }
  // That order: for each of its ticks the tick of game().program() (schedule/instruction_order.h).
  // Empty: the program's own.
  virtual std::vector<Tick> InstructionOrder() const { return {}; }
  // A few lines for people.
  virtual std::string ToString() const = 0;

  // What the position asks about: one access, or for each candidate, in their order, the run that
  // it could take; accesses of the program of PlannedGame(). Empty while the order of instructions
  // is decided, and at the end.
  virtual std::vector<AccessRun> AskedAbout() const = 0;
  // That access in a game that decides about one access at a time, and none in other games. The
  // position must not be terminal.
  virtual AccessId current_access() const { return AccessId(); }
  // Takes one decision as a dense intent (intent.h) of the game wants. What is illegal when its
  // turn comes gives way to the nearest mode that is legal, so every intent leads to a whole, valid
  // game: a *schedule generation scheme*, as in resource-constrained project scheduling (Kolisch,
  // 1996).
  // While the order of instructions is decided it is kept as it is as far as possible, and then
  // placement is open. The position must not be terminal.
  virtual void Decide(const Intent& intent) = 0;
  // The same up to the end.
  virtual void PlayOn(const Intent& intent) {
    while (!IsTerminal()) Decide(intent);
  }
  // How decision `i` was made, as a mode; and which segment of the game's dense intents it was
  // about. kOpen and -1: it was about none.
  virtual Mode DecidedMode(int i) const = 0;
  virtual int32_t DecidedSegment(int i) const = 0;

 protected:
  Position() = default;
  Position(const Position&) = default;
  Position& operator=(const Position&) = default;
};

}  // namespace mallocgame
