// What an agent sees of a position of a game: one layout of float32 numbers with named parts,
// the same for Gymnasium, the vector environment, MCTS and EGRL. The layout depends on the game's
// options alone, never on the program, so that one network plays all programs. Every
// number lies in [-1, 1]. What does not change during a game is looked up in tables that are made
// once for it.
//
// The time game:
//
//   accesses     [2 * neighbours + 1, columns]: the current access in the middle,
//                around it those before and after it in the order of decisions; a row of zeros
//                where there is none.
//   actions      [num_actions, columns]: what each action would do; zeros if it is
//                illegal.
//   occupancy    [columns, address_cells]: the share of each cell of fast memory that is still
//                taken at the column's first tick, so that a residence that begins there cannot
//                have it.
//   idle         [columns, 2]: the main-memory channel's idle time in the column's ticks, and the
//                part of it that no booked copy takes; as x / (x + the copy time of the current
//                buffer).
//   scalars      [columns]
//   action_mask  [num_actions]: 1 if the action is legal, else 0.
//
// The accesses to come wish for space and for the channel: each for its buffer while its
// instruction runs, and before from where the latest prefetch begins that can be hidden, or from
// the buffer's previous access on, if that is later. What the actions say of demand is about these
// wishes, whatever is decided of the accesses.
//
// Column c holds ticks_per_column ticks from now + (c - ticks_back) * ticks_per_column on. Idle
// time before now is what there was, from now on what is certain whatever is decided. Before the
// current segment no copy can begin, so nothing is left there.
//
// The priority game:
//
//   candidates   [candidates + neighbours, columns]: the runs that actions can
//                take, the most important first, and behind them the open runs that come next; a
//                row of zeros where there is none.
//   actions      [num_actions, columns]: as above.
//   occupancy    [columns, address_cells]: the share of each cell of fast memory that is taken, the
//                mean over the column.
//   idle         [columns, 2]: the main-memory channel's idle time as things are placed now, and
//                that less the copies that are due in the column; as shares of the column's time.
//   demand       [columns, 2]: the share of fast memory that is taken, and what all open runs would
//                take besides, as x / (x + all of it); the mean over the column.
//   scalars      [columns]
//   action_mask  as above.
//
// The open runs wish for space and for the channel: each for its buffer from the earliest start of
// a Late residence, and for its prefetch before it is needed. For what the actions say of demand,
// the program is cut into 64 pieces of equal all-main time, within which wishes are spread evenly.
//
// The schedule game has the priority game's parts, which are 0 while the order is decided, and
// more:
//
//   units        [kReadyShown, columns]: the units that can be taken; a row of zeros
//                where there is none. It comes first.
//   actions      rows for the actions that decide the order, which say only what is legal, and
//                then those of the priority game.
//   scalars      [columns]: those of the priority game, and
//                others after them.
//
// Decisions are not in the order of time, so the columns, ticks_back + ticks_ahead of them, divide
// the whole program into pieces of equal all-main time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "mallocgame/game/feature.h"
#include "mallocgame/game/game.h"
#include "mallocgame/game/position.h"
#include "mallocgame/game/prices.h"

namespace mallocgame {

// The version of the observations of all games. It changes with every change of what stands where
// and of what a number means, so that what was learned from observations of another version is not
// used with these.
inline constexpr int kObservationVersion = 1;

struct ObservationOptions {
  // Accesses shown before the current one, and after it; in the priority game open runs shown
  // behind the candidates; 0 to 1024.
  int neighbours = 4;
  // Columns before now, and from now on; each 0 to 4096. If both are 0, the parts occupancy, idle
  // and demand are left out. In the priority game only their sum matters.
  int ticks_back = 8;
  int ticks_ahead = 8;
  int ticks_per_column = 4;  // 1 to 65536; without meaning in the priority game
  int address_cells = 32;    // 0 to 4096; with 0 the part occupancy is left out

  // Only the current access or the candidates, the actions, the scalars and the mask: a small part
  // of the numbers, for speed.
  static ObservationOptions Compact() { return {0, 0, 0, 1, 0}; }
  int columns() const { return ticks_back + ticks_ahead; }
  friend bool operator==(const ObservationOptions&, const ObservationOptions&) = default;
};

// A part's numbers: a row-major array. The columns of its last axis have names and meanings, but in
// pictures of memory and of the channel. Their meanings use these scales: log2(x) is linear between
// powers of two; ticks(x) = log2(1 + x) / 16, time(x) = log2(1 + x / 1 ns) / 32, bytes(x) =
// log2(1 + x / 1 KiB) / 24, each at most 1, and for a negative x the negative of that of -x.
struct ObservationPart {
  std::string name;
  int offset = 0;  // where its first number stands in the observation
  std::vector<int> shape;
  absl::Span<const Feature> columns = {};  // empty: they have no names
};

// The part `name` of a layout (GameOptions::Layout), which must have it.
const ObservationPart& PartOf(absl::Span<const ObservationPart> layout, absl::string_view name);
// Adds a part behind the others, unless it is empty. `shape` is without the columns that are named.
void AddPart(const char* name, std::vector<int> shape, absl::Span<const Feature> columns,
             std::vector<ObservationPart>* layout);

// What a game makes to observe its positions. Immutable: shared by threads.
class PositionObserver {
 public:
  virtual ~PositionObserver() = default;
  virtual void Write(const Position& position, float* out) const = 0;
};

// Writes observations of the positions of one game. Immutable: shared by threads, each with its own
// positions.
class Observer {
 public:
  // With `prices`, observations say what each action would pay at them; without, these columns are
  // 0. InvalidArgument: an option out of its range, prices that ValidatePrices refuses, or prices
  // for a game that decides the order of instructions: they are of one order.
  static absl::StatusOr<Observer> Create(std::shared_ptr<const Game> game,
                                         const ObservationOptions& options,
                                         const Prices* prices = nullptr);

  const ObservationOptions& options() const { return options_; }
  const Game& game() const { return *game_; }
  int size() const { return size_; }

  // `position` must be of this game, and `out` have room for size() numbers. Allocates nothing. A
  // terminal position may be observed too: its mask and actions are 0.
  void Write(const Position& position, float* out) const { own_->Write(position, out); }

 private:
  Observer(std::shared_ptr<const Game> game, const ObservationOptions& options,
           const Prices* prices);

  std::shared_ptr<const Game> game_;
  ObservationOptions options_;
  std::shared_ptr<const PositionObserver> own_;
  int size_ = 0;
};

}  // namespace mallocgame
