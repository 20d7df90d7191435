// What is played instead of what is illegal. Private to mallocgame/game.
#pragma once

#include <array>
#include <cstddef>

#include "mallocgame/game/mode.h"

namespace mallocgame {

inline constexpr size_t kDecidableModes = 6;  // kSkip to kKeep

// What is tried instead of an illegal mode, the nearest first; what the game at hand does not know
// is illegal. Wherever Early is legal, Late is. Main memory is always legal.
inline constexpr std::array<std::array<Mode, 4>, kDecidableModes> kInstead = {{
    {Mode::kSkip},
    {Mode::kKeep, Mode::kSplit, Mode::kSkip},
    {Mode::kLate, Mode::kKeep, Mode::kSplit, Mode::kSkip},
    {Mode::kLate, Mode::kSplit, Mode::kSkip},
    {Mode::kLate, Mode::kSkip},
    {Mode::kLate, Mode::kSplit, Mode::kSkip},
}};

// The mode in which `serves` succeeds, the nearest to `mode`.
template <class Serves>
Mode NearestMode(Mode mode, const Serves& serves) {
  if (serves(mode)) return mode;
  for (const Mode other : kInstead[static_cast<size_t>(mode)]) {
    if (serves(other)) return other;
  }
  return Mode::kSkip;
}

}  // namespace mallocgame
