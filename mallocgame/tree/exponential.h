// Infinity, and e^x in a form that compilers turn into vector instructions, with the same result on
// every machine. Private to the folder.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

namespace mallocgame::mcts {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

// e^x, accurate to 2 units in the last place for -87 <= x <= 88. Below that it is 0, above it e^88.
// x must not be NaN.
inline float Exp(float x) {
  constexpr float kLowest = -87.0f, kHighest = 88.0f;
  const float low = x < kLowest ? kLowest : x;
  const float y = low > kHighest ? kHighest : low;
  // y = n ln 2 + r; adding 1.5 * 2^23 rounds to an integer and leaves it in the low bits.
  constexpr float kRound = 12582912.0f;
  const float shifted = y * 1.44269504f + kRound;
  const float n = shifted - kRound;
  const float r = (y - n * 0.693359375f) + n * 2.12194440e-4f;
  // The polynomial of Cephes' expf, with its terms in pairs that do not wait for each other.
  const float r2 = r * r;
  const float low_terms = 1.6666665459e-1f * r + 5.0000001201e-1f;
  const float middle_terms = 8.3334519073e-3f * r + 4.1665795894e-2f;
  const float high_terms = 1.9875691500e-4f * r + 1.3981999507e-3f;
  const float p = ((high_terms * r2 + middle_terms) * r2 + low_terms) * r2 + (r + 1.0f);
  const int32_t exponent =
      (std::bit_cast<int32_t>(shifted) - std::bit_cast<int32_t>(kRound)) * (1 << 23);
  const float result = std::bit_cast<float>(std::bit_cast<int32_t>(p) + exponent);
  return x < kLowest ? 0.0f : result;
}

}  // namespace mallocgame::mcts
