// Noise that is nearly normal: its mean is 0, its standard deviation 1, and its absolute value at
// most 3.5. It is the same on every machine, and takes one number of the generator.
#pragma once

#include <cstdint>

#include "mallocgame/base/rng.h"

namespace mallocgame {

// The sum of four uniform numbers of 16 bits, minus its mean, divided by its standard deviation.
inline float Noise(Rng& rng) {
  const uint64_t bits = rng.Next();
  const uint64_t sum =
      (bits & 0xFFFF) + (bits >> 16 & 0xFFFF) + (bits >> 32 & 0xFFFF) + (bits >> 48);
  constexpr float kUnit = 1.7320508F / 65535;
  return (static_cast<float>(sum) - 2 * 65535) * kUnit;
}

}  // namespace mallocgame
