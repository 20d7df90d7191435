// What an order of instructions needs of main memory.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "mallocgame/program/program.h"

namespace mallocgame {

// The alignment in main memory of what the compiler (libtpu 0.0.51) places itself.
inline constexpr int64_t kMainAlignment = 16384;

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
// that it comes from outside of, to the loop's exit. Offsets are found by best fit, the largest
// buffer first, as XLA's heap does it (GlobalDecreasingSizeBestFitHeap).
MainMemory MainMemoryOf(const Program& program);

// live_bytes alone, which takes time in proportion to the accesses.
int64_t LiveMainBytes(const Program& program);

// What these figures are made of, for who works them out for many orders of one program: the
// buffers that live for a while only, neither fixed nor elsewhere, and when they are used.
struct BufferUse {
  int32_t buffer = 0;
  // One tick; or all ticks of a loop, from its entry to its exit, if the buffer comes from outside.
  Tick begin = 0, end = 0;
  friend auto operator<=>(const BufferUse&, const BufferUse&) = default;
};
// Sorted by buffer, then start. Those of one buffer don't overlap.
std::vector<BufferUse> TemporaryUses(const Program& program);

// When a buffer lives: from the start of its first use to the end of its last.
struct BufferLife {
  Tick begin = kNever, end = 0;
  int64_t bytes = 0;
  friend bool operator==(const BufferLife&, const BufferLife&) = default;
};
// packed_bytes of these lives, in whatever order they are given.
int64_t PackedMainBytes(std::vector<BufferLife> lives);

// The offsets of lives that are placed one after the other: each in the smallest hole between those
// placed before that it fits into, else above them. Offsets are multiples of `alignment`.
std::vector<int64_t> BestFitOffsets(absl::Span<const BufferLife> lives, int64_t alignment);

}  // namespace mallocgame
