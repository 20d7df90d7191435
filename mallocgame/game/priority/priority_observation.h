// What an agent sees of a PriorityState: the part of game/observation.h that is about the priority
// game. Private to mallocgame/game.
#ifndef MALLOCGAME_GAME_PRIORITY_PRIORITY_OBSERVATION_H_
#define MALLOCGAME_GAME_PRIORITY_PRIORITY_OBSERVATION_H_

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "mallocgame/game/feature.h"
#include "mallocgame/game/observation.h"
#include "mallocgame/game/prices.h"
#include "mallocgame/game/priority/priority_state.h"
#include "mallocgame/game/priority/priority_tables.h"
#include "mallocgame/game/priority/profile.h"

namespace mallocgame {

absl::Span<const Feature> CandidateFeatures();
absl::Span<const Feature> PriorityActionFeatures();
absl::Span<const Feature> PriorityScalarFeatures();
inline constexpr int kLegalColumn = 0;  // of PriorityActionFeatures: whether the action is legal

// Immutable: shared by threads.
class PriorityObserver final : public PositionObserver {
 public:
  // Without `prices`, what is about them is 0.
  PriorityObserver(const PriorityGame& game, const ObservationOptions& options,
                   std::shared_ptr<const PriceSums> prices);

  void Write(const Position& position, float* out) const override { Write(position, 0, out); }
  // Leaves out so many numbers between the candidates and the actions.
  void Write(const Position& position, int left_out, float* out) const;

 private:
  // Something in equal pieces of the all-main time, one behind the other.
  static constexpr size_t kPieces = Profile::kPieces;
  struct Pieces {
    std::array<double, kPieces + 1> before;  // the sum over the pieces before
  };
  // A position in time.
  struct Place {
    size_t piece;
    double part;  // of the piece that lies before
    explicit Place(double position);
  };
  // The sum between two positions.
  static double Between(const Pieces& pieces, const Place& begin, const Place& end);
  struct Pressure {
    // Shares of fast memory: what is taken, what open runs wish for, and how far both together
    // exceed all of it.
    Pieces taken, wanted, excess;
    Pieces copies;  // the picoseconds of prefetches that open runs wish for, all trips
  };
  using Slacks = std::array<int64_t, kMaxCandidates>;

  void MakeRows();
  Pressure PressureOf(const PriorityState& state) const;
  Slacks SlacksOf(const PriorityState& state) const;
  void WriteCandidates(const PriorityState& state, float* out) const;
  void WriteActions(const PriorityState& state, const ActionSet& legal, const Pressure& pressure,
                    float* out) const;
  void WriteResidence(const PriorityState::Placing& placing, int64_t saved_ps, int64_t slack,
                      float* row) const;
  void WritePressure(const PriorityState& state, const PriorityState::Placing& placing,
                     const Pressure& pressure, float* row) const;
  void WriteRent(const PriorityState::Placing& placing, int64_t saved_ps, float* row) const;
  void WriteOccupancy(const Arrangement& arrangement, float* out) const;
  void WriteIdle(const PriorityState& state, float* out) const;
  void WriteDemand(const PriorityState& state, float* out) const;
  void WriteScalars(const PriorityState& state, const Pressure& pressure, float* out) const;
  float ShareOfMemory(int32_t buffer) const { return shares_[buffer]; }
  // Where a tick begins if the program's time is cut into so many cells.
  float PositionIn(int cells, Tick tick) const {
    return static_cast<float>(position_[tick] * cells);
  }

  const PriorityGame& game_;
  const PriorityTables& tables_;
  ObservationOptions options_;
  std::shared_ptr<const PriceSums> prices_;
  // For each tick, and the program's end: the share of the all-main time that lies before it.
  std::vector<double> position_;
  std::vector<float> shares_;  // size of each buffer / usable bytes
  // A row for each run: its features, as far as they do not change during a game, else 0.
  std::vector<float> rows_;
};

}  // namespace mallocgame

#endif  // MALLOCGAME_GAME_PRIORITY_PRIORITY_OBSERVATION_H_
