// Returns as the networks know them. A unit is a thousandth of the program's baseline latency. A
// value or reward of a network is a distribution over bins that are evenly spaced after the map
// h(x) = sign(x) (sqrt(|x| + 1) - 1). They are fine near the baseline, where players differ, and
// coarse far from it.
#ifndef AGENTS_MUZERO_VALUE_SCALE_H_
#define AGENTS_MUZERO_VALUE_SCALE_H_

#include <cmath>

namespace mallocgame::muzero {

inline constexpr int kBins = 129;
inline constexpr int kMiddle = kBins / 2;  // the bin of 0
inline constexpr float kBinStep = 0.5F;
// The greatest bin is 32 after h, which is 1,088 units.
inline constexpr float kGreatest = kBinStep * kMiddle;

// h.
inline float Squeeze(float x) { return std::copysign(std::sqrt(std::abs(x) + 1.0F) - 1.0F, x); }

}  // namespace mallocgame::muzero

#endif  // AGENTS_MUZERO_VALUE_SCALE_H_
