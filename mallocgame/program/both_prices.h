// Two sets of prices of one program, and the one number that searches make small by both.
//
//   value = 0.9 max(own, other') + 0.1 min(own, other')
//   other' = other x own reference / other reference
//
// `own` and `other` are latencies at the two sets, and the references are those of the plan that is
// to be beaten: XLA's, or where there is none the one with everything in main memory. So the larger
// share of its latency counts, that is the set by which a plan gains less, and of plans that are
// alike by that one the other set decides. A value is in picoseconds of the own set: it is below
// the own reference if something is gained by both.
//
// What one set may lose for the other is `lean`, in [-1, 1]: above 0 the other set's latency is
// taken for so much less than it is, below 0 the own set's. At 1 and -1 one set counts alone. Plans
// found at several leans are the frontier of the two.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

#include "mallocgame/hardware/price_law.h"

namespace mallocgame {

class Program;

struct BothPrices {
  std::shared_ptr<const Program> other;  // the same program at calibrated prices
  PriceLaw law;                          // what its hardware is made with (CalibrateHardware)
  int64_t own_reference_ps = 1, other_reference_ps = 1;
  double lean = 0;

  double Value(double own_ps, double other_ps) const {
    constexpr double kOfLess = 0.1;
    const double scale =
        static_cast<double>(own_reference_ps) / static_cast<double>(other_reference_ps);
    const auto [less, more] =
        std::minmax({own_ps * std::min(1.0, 1 + lean), other_ps * scale * std::min(1.0, 1 - lean)});
    return (1 - kOfLess) * more + kOfLess * less;
  }
};

// Times at the own prices and at the others; the second are 0 where there is one set.
struct Times {
  int64_t own = 0, other = 0;

  friend bool operator==(const Times&, const Times&) = default;
  Times& operator+=(const Times& more) {
    own += more.own;
    other += more.other;
    return *this;
  }
  friend Times operator+(Times a, const Times& b) { return a += b; }
  friend Times operator-(const Times& a, const Times& b) {
    return {a.own - b.own, a.other - b.other};
  }
  friend Times operator*(const Times& a, int64_t times) { return {a.own * times, a.other * times}; }
};

}  // namespace mallocgame
