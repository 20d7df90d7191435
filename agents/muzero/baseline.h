// What a whole game, the baseline, does and saves wherever another game stands. Each game says what
// standing alike means.
#pragma once

#include <cstdint>
#include <memory>

#include "mallocgame/game/position.h"

namespace mallocgame::muzero {

// Immutable: shared by threads.
class Baseline {
 public:
  static constexpr int kFeatures = 2;  // of each action

  virtual ~Baseline() = default;

  // Positions of the next two must be of the baseline's game and not terminal.
  // The baseline's latency where it stands like `position`: at the same access in the time game,
  // with the same accesses decided in the other games.
  virtual int64_t LatencyAt(const Position& position) const = 0;
  // Writes what the baseline does there: kFeatures numbers for each action. `out` is all 0.
  virtual void Write(const Position& position, float* out) const = 0;
};

// Of the game that ended in `end`.
std::unique_ptr<const Baseline> MakeBaseline(const Position& end);

}  // namespace mallocgame::muzero
