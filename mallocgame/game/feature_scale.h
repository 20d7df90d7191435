// The scales of observed numbers, as game/observation.h defines them. Private to the folder.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>

namespace mallocgame::scale {

// The logarithm to base 2, made linear between powers of two, so that it is quick and the same on
// every machine; 0 below 1.
inline float Log2(int64_t x) {
  if (x <= 1) return 0.0F;
  const int power = static_cast<int>(std::bit_width(static_cast<uint64_t>(x))) - 1;
  const auto low = int64_t{1} << power;
  return static_cast<float>(power) + static_cast<float>(x - low) / static_cast<float>(low);
}

inline float Ticks(int64_t ticks) {
  const float scaled = std::min(1.0F, Log2(std::abs(ticks) + 1) * (1.0F / 16));
  return ticks < 0 ? -scaled : scaled;
}

inline float Time(int64_t ps) {
  const float scaled = std::min(1.0F, Log2(std::abs(ps) / 1000 + 1) * (1.0F / 32));
  return ps < 0 ? -scaled : scaled;
}

inline float Bytes(int64_t bytes) { return std::min(1.0F, Log2(bytes / 1024 + 1) * (1.0F / 24)); }

// log2(x) / 16, at most 1, for counts and trips.
inline float Count(int64_t x) { return std::min(1.0F, Log2(x) * (1.0F / 16)); }

// x / (|x| + unit)
inline float Ratio(int64_t x, int64_t unit) {
  return static_cast<float>(x) /
         (static_cast<float>(std::abs(x)) + static_cast<float>(std::max<int64_t>(1, unit)));
}

// The same of real numbers, where an x below 0 counts as 0.
inline float Part(double x, double unit) {
  return x <= 0 ? 0.0F : static_cast<float>(x / (x + unit));
}

// log2(1 + 2^32 x) / 32, for a share of all space and time, of which small ones matter too.
inline float Space(double x) {
  return std::min(1.0F, Log2(1 + static_cast<int64_t>(0x1p32 * x)) * (1.0F / 32));
}

// As Time, for picoseconds of a price, which may be dear beyond measure.
inline float Price(double ps) { return Time(static_cast<int64_t>(std::min(ps, 0x1p62))); }

// What is left of a saving behind a rent that is not negative: (saved - rent) / (|saved| + rent).
inline float Profit(int64_t saved_ps, double rent_ps) {
  const auto saved = static_cast<double>(saved_ps);
  const double sum = std::abs(saved) + rent_ps;
  return sum <= 0 ? 0.0F : static_cast<float>((saved - rent_ps) / sum);
}

inline float Share(int64_t part, int64_t whole) {
  return whole <= 0 ? 0.0F
                    : std::clamp(static_cast<float>(part) / static_cast<float>(whole), -1.0F, 1.0F);
}

}  // namespace mallocgame::scale
