// Integer division that rounds up.
#pragma once

#include <cstdint>

namespace mallocgame {

// value >= 0, by > 0, and value + by fits into 64 bits.
constexpr int64_t DivideUp(int64_t value, int64_t by) { return (value + by - 1) / by; }

// The least multiple of `multiple` that is not below `value`, under the same conditions.
constexpr int64_t RoundUp(int64_t value, int64_t multiple) {
  return DivideUp(value, multiple) * multiple;
}

}  // namespace mallocgame
