// What an agent sees of a position of a game: one layout of float32 numbers with named parts,
// the same for Gymnasium, the vector environment, MCTS and EGRL. The layout depends on the game's
// kind and the options alone, never on the program, so that one network plays all programs. Every
// number lies in [-1, 1]. What does not change during a game is looked up in tables that are made
// once for it.
//
// The time game:
//
//   accesses     [2 * neighbours + 1, AccessFeatures().size()]: the current access in the middle,
//                around it those before and after it in the order of decisions; a row of zeros
//                where there is none.
//   actions      [num_actions, ActionFeatures().size()]: what each action would do; zeros if it is
//                illegal.
//   occupancy    [columns, address_cells]: the share of each cell of fast memory that is still
//                taken at the column's first tick, so that a residence that begins there cannot
//                have it.
//   idle         [columns, 2]: the main-memory channel's idle time in the column's ticks, and the
//                part of it that no booked copy takes; as x / (x + the copy time of the current
//                buffer).
//   scalars      [ScalarFeatures().size()]
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
//   candidates   [candidates + neighbours, CandidateFeatures().size()]: the runs that actions can
//                take, the most important first, and behind them the open runs that come next; a
//                row of zeros where there is none.
//   actions      [num_actions, ActionFeatures(kPriority).size()]: as above.
//   occupancy    [columns, address_cells]: the share of each cell of fast memory that is taken, the
//                mean over the column.
//   idle         [columns, 2]: the main-memory channel's idle time as things are placed now, and
//                that less the copies that are due in the column; as shares of the column's time.
//   demand       [columns, 2]: the share of fast memory that is taken, and what all open runs would
//                take besides, as x / (x + all of it); the mean over the column.
//   scalars      [ScalarFeatures(kPriority).size()]
//   action_mask  as above.
//
// The open runs wish for space and for the channel: each for its buffer from where Late's residence
// begins at best, and for its prefetch before it is needed. For what the actions say of demand, the
// program is cut into 64 pieces of equal all-main time, within which wishes are spread evenly.
//
// The schedule game has the priority game's parts, which are 0 while the order is decided, and
// more:
//
//   units        [kReadyShown, UnitFeatures().size()]: the units that can be taken; a row of zeros
//                where there is none. It comes first.
//   actions      as the priority game's, behind rows for the actions that decide the order. These
// say
//                only what is legal.
//   scalars      [ScalarFeatures(kSchedule).size()]: the priority game's, and others behind them.
//
// Decisions are not in the order of time, so the columns, ticks_back + ticks_ahead of them, divide
// the whole program into pieces of equal all-main time.
#ifndef MALLOCGAME_GAME_OBSERVATION_H_
#define MALLOCGAME_GAME_OBSERVATION_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "mallocgame/game/feature.h"
#include "mallocgame/game/game.h"
#include "mallocgame/game/position.h"
#include "mallocgame/game/prices.h"
#include "mallocgame/game/state.h"

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

// The columns of the last axis of a part. Their meanings use these scales: log2(x) is linear
// between powers of two; ticks(x) = log2(1 + x) / 16, time(x) = log2(1 + x / 1 ns) / 32, bytes(x) =
// log2(1 + x / 1 KiB) / 24, each at most 1, and for a negative x the negative of that of -x.
absl::Span<const Feature> AccessFeatures();     // of the time game
absl::Span<const Feature> CandidateFeatures();  // of the priority game, and of the schedule game
absl::Span<const Feature> UnitFeatures();       // of the schedule game
absl::Span<const Feature> ActionFeatures(GameKind kind = GameKind::kTime);
absl::Span<const Feature> ScalarFeatures(GameKind kind = GameKind::kTime);

struct ObservationPart {
  std::string name;
  int offset = 0;          // where its first number stands in the observation
  std::vector<int> shape;  // row-major
};

// The parts in the order in which they stand, without those that the options leave out.
std::vector<ObservationPart> ObservationLayout(const ObservationOptions& options, int num_actions,
                                               GameKind kind = GameKind::kTime);

class Demand;
class PriorityObserver;
class ScheduleObserver;

// Writes observations of the positions of one game. Immutable: shared by threads, each with its own
// positions.
class Observer {
 public:
  // With `prices`, observations say what each action would pay at them; without, these columns are
  // 0. InvalidArgument: an option out of its range, prices that ValidatePrices refuses, or prices
  // for a schedule game: they are of one order of instructions.
  static absl::StatusOr<Observer> Create(std::shared_ptr<const Game> game,
                                         const ObservationOptions& options,
                                         const Prices* prices = nullptr);

  const ObservationOptions& options() const { return options_; }
  const Game& game() const { return *game_; }
  int size() const { return size_; }

  // `position` must be of this game, and `out` have room for size() numbers. Allocates nothing. A
  // terminal position may be observed too: its mask and actions are 0.
  void Write(const Position& position, float* out) const;

 private:
  Observer(std::shared_ptr<const Game> game, const ObservationOptions& options,
           const Prices* prices);

  void MakeRows();
  void WriteTimeGame(const State& state, float* out) const;
  void WriteAccesses(const StateView& view, int64_t middle, float* out) const;
  void WriteActions(const State& state, const StateView& view, float* out) const;
  void WriteDemand(const StateView& view, const Decision& d, const ActionEffect& effect,
                   float* row) const;
  void WriteRent(const Decision& d, const ActionEffect& effect, int64_t saved, float* row) const;
  void WriteOccupancy(const StateView& view, float* out) const;
  void WriteIdle(const StateView& view, float* out) const;
  void WriteScalars(const State& state, const StateView& view, float* out) const;

  std::shared_ptr<const Game> game_;
  ObservationOptions options_;
  int size_ = 0;
  // A row for each decision: its features, as far as they do not change during a game, else 0.
  // Before and after them stand `neighbours` rows of zeros.
  std::vector<float> rows_;
  std::shared_ptr<const PriceSums> prices_;  // null if there are none
  // Null but in their own games.
  std::shared_ptr<const Demand> demand_;
  std::shared_ptr<const PriorityObserver> order_;
  std::shared_ptr<const ScheduleObserver> schedule_;
};

}  // namespace mallocgame

#endif  // MALLOCGAME_GAME_OBSERVATION_H_
