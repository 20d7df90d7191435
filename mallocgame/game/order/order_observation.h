// What an agent sees of an OrderState: the part of game/observation.h that is about the order game.
// Private to mallocgame/game.
#ifndef MALLOCGAME_GAME_ORDER_ORDER_OBSERVATION_H_
#define MALLOCGAME_GAME_ORDER_ORDER_OBSERVATION_H_

#include <array>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "mallocgame/game/feature.h"
#include "mallocgame/game/observation.h"
#include "mallocgame/game/order/order_state.h"
#include "mallocgame/game/order/order_tables.h"

namespace mallocgame {

absl::Span<const Feature> OrderActionFeatures();
absl::Span<const Feature> OrderScalarFeatures();

// Immutable: shared by threads.
class OrderObserver {
 public:
  OrderObserver(const Game& game, const ObservationOptions& options);

  // Writes the parts one after the other, as ObservationLayout has them.
  void Write(const OrderState& state, float* out) const;

 private:
  // How full fast memory is in equal pieces of the all-main time, one behind the other.
  static constexpr int kPieces = 64;
  struct Fullness {
    std::array<float, kPieces + 1> taken;   // the mean share of memory that is taken in the piece
    std::array<float, kPieces + 1> before;  // the sum of `taken` of the pieces before
    // The mean share between two positions in time.
    float Mean(float begin, float end) const;
  };
  using Slacks = std::array<int64_t, kMaxCandidates>;

  void MakeRows();
  Fullness FullnessOf(const Arrangement& arrangement) const;
  Slacks SlacksOf(const OrderState& state) const;
  int64_t SavedBy(const Arrangement& arrangement, const PlannedResidence& planned) const;
  void WriteCandidates(const OrderState& state, float* out) const;
  void WriteActions(const OrderState& state, uint32_t mask, const Fullness& fullness,
                    float* out) const;
  void WriteResidence(const PlannedResidence& planned, Tick begin, int64_t saved_ps, int64_t slack,
                      const Fullness& fullness, float* row) const;
  void WriteOccupancy(const Arrangement& arrangement, float* out) const;
  void WriteIdle(const OrderState& state, float* out) const;
  void WriteDemand(const OrderState& state, float* out) const;
  void WriteScalars(const OrderState& state, const Fullness& fullness, float* out) const;
  float ShareOfMemory(int32_t buffer) const { return shares_[buffer]; }

  const Game& game_;
  const OrderTables& tables_;
  ObservationOptions options_;
  // For each tick, and the program's end: the share of the all-main time that lies before it.
  std::vector<float> position_;
  std::vector<float> shares_;  // size of each buffer / usable bytes
  // A row for each run: its features, as far as they do not change during a game, else 0.
  std::vector<float> rows_;
};

}  // namespace mallocgame

#endif  // MALLOCGAME_GAME_ORDER_ORDER_OBSERVATION_H_
