// What an agent sees of a ScheduleState: the part of game/observation.h that is about the schedule
// game. Private to mallocgame/game.
#ifndef MALLOCGAME_GAME_SCHEDULE_SCHEDULE_OBSERVATION_H_
#define MALLOCGAME_GAME_SCHEDULE_SCHEDULE_OBSERVATION_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "mallocgame/game/feature.h"
#include "mallocgame/game/observation.h"
#include "mallocgame/game/schedule/schedule_state.h"
#include "mallocgame/game/schedule/schedule_tables.h"

namespace mallocgame {

absl::Span<const Feature> ScheduleScalarFeatures();

// Immutable: shared by threads.
class ScheduleObserver {
 public:
  ScheduleObserver(const Game& game, const ObservationOptions& options);

  // Writes the parts one after the other, as ObservationLayout has them.
  void Write(const ScheduleState& state, float* out) const;

 private:
  void MakeRows();
  void WriteUnits(const ScheduleState& state, float* out) const;
  void WriteScalars(const ScheduleState& state, float* out) const;

  const Game& game_;
  const ScheduleTables& tables_;
  ObservationOptions options_;
  int candidate_numbers_, placement_numbers_;  // of the priority game: candidates; all but the mask
  // A row for each unit: its features, as far as they do not change during a game, else 0.
  std::vector<float> rows_;
};

}  // namespace mallocgame

#endif  // MALLOCGAME_GAME_SCHEDULE_SCHEDULE_OBSERVATION_H_
