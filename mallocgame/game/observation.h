// What an agent sees of a State: one layout of float32 numbers with named parts, the same for
// Gymnasium, the vector environment, MCTS and EGRL. It depends on the options alone, never on the
// program, so that one network plays all programs. Every number lies in [-1, 1]. What an access
// costs and gains is looked up in tables made once a game.
//
//   accesses     [2 * neighbours + 1, kAccessFeatures]  the access at hand in the middle, those
//                before and after it in the order of decisions; a row of zeros where there is none
//   actions      [num_actions, kActionFeatures]         what each action would do; zeros if illegal
//   occupancy    [columns, address_cells]               the share of each cell of fast memory that
//                a residence beginning at the column's first tick can't have
//   idle         [columns, 2]                           the main-memory channel's idle time in the
//                column's ticks, and what is left of it behind the booked copies; as x / (x + the
//                copy time of the buffer at hand)
//   scalars      [kScalarFeatures]
//   action_mask  [num_actions]                          1: legal
//
// Column c holds the ticks from now + (c - ticks_back) * ticks_per_column on. Before now idle time
// is what was served; from now on what is certain whatever is decided. Before the current segment
// no copy can begin: nothing is left there.
#ifndef MALLOCGAME_GAME_OBSERVATION_H_
#define MALLOCGAME_GAME_OBSERVATION_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "mallocgame/game/game.h"
#include "mallocgame/game/state.h"

namespace mallocgame {

struct ObservationOptions {
  int neighbours = 4;  // 0 to 1024
  // columns before now, 0 to 4096; with ticks_ahead 0 there is no occupancy and no idle part
  int ticks_back = 8;
  int ticks_ahead = 8;       // columns from now on, likewise
  int ticks_per_column = 4;  // 1 to 65536
  int address_cells = 32;    // 0 to 4096; 0: no occupancy

  // The access at hand, the actions, the scalars and the mask: a tenth of the numbers, for speed.
  static ObservationOptions Compact() { return {0, 0, 0, 1, 0}; }
  int columns() const { return ticks_back + ticks_ahead; }
  friend bool operator==(const ObservationOptions&, const ObservationOptions&) = default;
};

// The names of the last axis of a part, with unit and scale. Below, log2(x) is linear between
// powers of two; ticks(x) = log2(1 + x) / 16, time(x) = log2(1 + x / 1 ns) / 32, bytes(x) = log2(1
// + x / 1 KiB) / 24, each at most 1, and the negative of it for a negative x.
struct Feature {
  const char* name;
  const char* meaning;
};
absl::Span<const Feature> AccessFeatures();
absl::Span<const Feature> ActionFeatures();
absl::Span<const Feature> ScalarFeatures();

struct ObservationPart {
  std::string name;
  int offset = 0;          // of its first number in the whole
  std::vector<int> shape;  // row-major
};

// The parts in the order they lie in, without those that the options leave out.
std::vector<ObservationPart> ObservationLayout(const ObservationOptions& options, int num_actions);

// Writes observations of the states of one game. Immutable: shared by threads, each with its own
// states.
class Observer {
 public:
  // InvalidArgument for an option out of its range.
  static absl::StatusOr<Observer> Create(std::shared_ptr<const Game> game,
                                         const ObservationOptions& options);

  const ObservationOptions& options() const { return options_; }
  const Game& game() const { return *game_; }
  int size() const { return size_; }

  // `state` must be of this game; `out` has room for size() numbers. Allocates nothing. Terminal
  // states too: their mask and actions are 0.
  void Write(const State& state, float* out) const;

 private:
  Observer(std::shared_ptr<const Game> game, const ObservationOptions& options);

  void MakeRows();
  void WriteAccesses(const State& state, int64_t middle, float* out) const;
  void WriteActions(const State& state, float* out) const;
  void WriteOccupancy(const State& state, float* out) const;
  void WriteIdle(const State& state, float* out) const;
  void WriteScalars(const State& state, float* out) const;

  std::shared_ptr<const Game> game_;
  ObservationOptions options_;
  int size_ = 0;
  // one a decision, and `neighbours` of zeros before and behind: what doesn't change of its
  // features
  std::vector<float> rows_;
};

}  // namespace mallocgame

#endif  // MALLOCGAME_GAME_OBSERVATION_H_
