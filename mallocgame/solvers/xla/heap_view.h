// What XLA's allocator has given away of fast memory so far, for the pieces that a caller brings.
#ifndef MALLOCGAME_SOLVERS_XLA_HEAP_VIEW_H_
#define MALLOCGAME_SOLVERS_XLA_HEAP_VIEW_H_

#include <cstdint>
#include <vector>

#include "mallocgame/base/ids.h"

namespace mallocgame {

class ChunkHeap;

// Bytes [begin, end) of fast memory.
struct ByteRange {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
  friend bool operator==(const ByteRange&, const ByteRange&) = default;
};

// A look at the heap as it is during one call of a piece. It must not be kept.
class XlaHeapView {
 public:
  explicit XlaHeapView(const ChunkHeap& heap) : heap_(&heap) {}

  int64_t capacity_bytes() const;
  int64_t alignment_bytes() const;
  // The ranges that are free at every tick of [begin, end), from the lowest on. None touch. With
  // begin >= end all bytes are free. 0 <= begin, and end is at most the program's ticks.
  std::vector<ByteRange> Free(Tick begin, Tick end) const;
  // The most bytes that are taken at any tick of [begin, end).
  int64_t MostUsed(Tick begin, Tick end) const;

 private:
  const ChunkHeap* heap_;
};

}  // namespace mallocgame

#endif  // MALLOCGAME_SOLVERS_XLA_HEAP_VIEW_H_
