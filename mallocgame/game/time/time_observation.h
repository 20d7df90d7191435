// What an agent sees of a State: the part of game/observation.h that is about the time game.
// Private to the folder.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "mallocgame/game/observation.h"
#include "mallocgame/game/prices.h"
#include "mallocgame/game/time/demand.h"
#include "mallocgame/game/time/state.h"

namespace mallocgame {

class TimeObserver final : public PositionObserver {
 public:
  // `game` must outlive it. Without `prices`, what is about them is 0.
  TimeObserver(const Game& game, const ObservationOptions& options,
               std::shared_ptr<const PriceSums> prices);

  void Write(const Position& position, float* out) const override;

 private:
  void MakeRows();
  void WriteAccesses(const StateView& view, int64_t middle, float* out) const;
  void WriteActions(const State& state, const StateView& view, float* out) const;
  void WriteDemand(const StateView& view, const Decision& d, const ActionEffect& effect,
                   float* row) const;
  void WriteRent(const Decision& d, const ActionEffect& effect, int64_t saved, float* row) const;
  void WriteOccupancy(const StateView& view, float* out) const;
  void WriteIdle(const StateView& view, float* out) const;
  void WriteScalars(const State& state, const StateView& view, float* out) const;

  const Game* game_;
  ObservationOptions options_;
  std::shared_ptr<const PriceSums> prices_;  // null if there are none
  Demand demand_;
  // A row for each decision: its features, as far as they do not change during a game, else 0.
  // Before and after them stand `neighbours` rows of zeros.
  std::vector<float> rows_;
};

}  // namespace mallocgame
