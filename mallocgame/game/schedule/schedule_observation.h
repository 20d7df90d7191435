// What an agent sees of a ScheduleState: the part of game/observation.h that is about the schedule
// game. Private to mallocgame/game.
#pragma once

#include <vector>

#include "mallocgame/game/feature.h"
#include "mallocgame/game/observation.h"
#include "mallocgame/game/schedule/schedule_state.h"
#include "mallocgame/game/schedule/schedule_tables.h"

namespace mallocgame {

// Immutable: shared by threads.
class ScheduleObserver final : public PositionObserver {
 public:
  ScheduleObserver(const ScheduleGame& game, const ObservationOptions& options);

  void Write(const Position& position, float* out) const override;

 private:
  void MakeRows();
  void WriteUnits(const ScheduleState& state, float* out) const;
  void WriteScalars(const ScheduleState& state, float* out) const;

  const ScheduleGame& game_;
  const ScheduleTables& tables_;
  ObservationOptions options_;
  int candidate_numbers_, placement_numbers_;  // of the priority game: candidates; all but the mask
  // A row for each unit: its features, as far as they do not change during a game, else 0.
  std::vector<float> rows_;
};

}  // namespace mallocgame
