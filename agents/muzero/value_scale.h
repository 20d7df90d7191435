// Returns as the networks know them. A unit is a thousandth of the program's baseline latency. A
// value or reward of a network is a distribution over bins that are evenly spaced after the map
// h(x) = sign(x) (sqrt(|x| + 1) - 1). They are fine near the baseline, where players differ, and
// coarse far from it.
#ifndef AGENTS_MUZERO_VALUE_SCALE_H_
#define AGENTS_MUZERO_VALUE_SCALE_H_

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "absl/types/span.h"

namespace mallocgame::muzero {

inline constexpr int kBins = 129;
inline constexpr int kMiddle = kBins / 2;  // the bin of 0
inline constexpr float kBinStep = 0.5F;
// The greatest bin is 32 after h, which is 1,088 units.
inline constexpr float kGreatest = kBinStep * kMiddle;

// h and its inverse.
inline float Squeeze(float x) { return std::copysign(std::sqrt(std::abs(x) + 1.0F) - 1.0F, x); }
inline float Unsqueeze(float y) {
  return std::copysign((std::abs(y) + 1.0F) * (std::abs(y) + 1.0F) - 1.0F, y);
}

// Writes the distribution whose mean, after h, is h(x), so that at most two bins differ from 0.
// `bins` must be kBins zeros.
inline void WriteTwoHot(float x, absl::Span<float> bins) {
  const float at = std::clamp(Squeeze(x), -kGreatest, kGreatest) / kBinStep + kMiddle;
  const auto low = std::min(static_cast<size_t>(at), static_cast<size_t>(kBins - 2));
  const float high_share = at - static_cast<float>(low);
  bins[low] = 1.0F - high_share;
  bins[low + 1] = high_share;
}

}  // namespace mallocgame::muzero

#endif  // AGENTS_MUZERO_VALUE_SCALE_H_
