// What an order of instructions needs of main memory.
#ifndef MALLOCGAME_SCHEDULE_MAIN_MEMORY_H_
#define MALLOCGAME_SCHEDULE_MAIN_MEMORY_H_

#include <cstdint>

#include "mallocgame/program/program.h"

namespace mallocgame {

// Everything counts as if it lay in main memory, so a plan needs no more than this. What isn't
// counted: flags, and what lies in other memories. The figures are for comparing orders of one
// program; the compiler lets some results take the bytes of an operand that ends there, so its own
// figure is lower.
struct MainMemory {
  int64_t fixed_bytes = 0;   // parameters, constants and results, which no order changes
  int64_t live_bytes = 0;    // the most that lives at one time of what else there is
  int64_t packed_bytes = 0;  // what that needs at offsets: live_bytes, and what fragmentation adds
  int64_t total_bytes() const { return fixed_bytes + packed_bytes; }
};

// A buffer lives from the first instruction that touches it to the last; where that is in a loop
// that it comes from outside of, to the loop's exit. Offsets are multiples of 16,384 as the
// compiler's are, found by best fit, the largest buffer first, as XLA's heap does it
// (GlobalDecreasingSizeBestFitHeap).
MainMemory MainMemoryOf(const Program& program);

// live_bytes alone, which takes time in proportion to the accesses.
int64_t LiveMainBytes(const Program& program);

}  // namespace mallocgame

#endif  // MALLOCGAME_SCHEDULE_MAIN_MEMORY_H_
