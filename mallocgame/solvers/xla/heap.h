// Fast memory as XLA's allocator sees it: chunks of bytes over intervals of ticks, best-fit
// placement of a new one, and repacking (XLA reference 4.7, 4.8). Time per call is that of the
// chunks that overlap in time.
#ifndef MALLOCGAME_SOLVERS_XLA_HEAP_H_
#define MALLOCGAME_SOLVERS_XLA_HEAP_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "mallocgame/base/ids.h"

namespace mallocgame {

// Bytes [offset, offset + size) over ticks [begin, end). A chunk may be taken in parts of equal
// size, of which the last one may be smaller. The first part is taken from `begin` on, each further
// one from a later tick on, from the low end upwards or from the high end downwards.
inline constexpr int kMaxParts = 4;
struct Chunk {
  Tick begin = 0, end = 0;  // [begin, end)
  int64_t offset = 0, size = 0;
  // of each part; never falling. A chunk of one part doesn't use it
  std::array<Tick, kMaxParts> part_begin = {};
  int parts = 1;
  int64_t part_size = 0;  // bytes of each part but the last; a chunk of one part doesn't use it
  bool downwards = false;

  Tick PartBegin(int part) const { return parts == 1 ? begin : part_begin[part]; }
  // How many bytes the first `count` parts have together.
  int64_t BytesOf(int count) const {
    return count >= parts ? size : std::min(size, count * part_size);
  }
  // Where part `part` lies within the chunk.
  int64_t PartOffset(int part) const {
    return downwards ? size - BytesOf(part + 1) : BytesOf(part);
  }
  // How many parts begin before `tick`.
  int PartsBefore(Tick tick) const {
    int count = 0;
    while (count < parts && PartBegin(count) < tick) ++count;
    return count;
  }
};

class ChunkHeap {
 public:
  // Bytes [0, reserved[t]) of each tick t are taken. capacity, alignment > 0.
  ChunkHeap(absl::Span<const int64_t> reserved, int64_t capacity, int64_t alignment);

  int32_t Add(const Chunk& added);  // returns its id; the ids of removed chunks are given again
  void Remove(int32_t id);
  void Extend(int32_t id, Tick end);
  const Chunk& chunk(int32_t id) const { return chunks_[id]; }

  // The offset at which a chunk, with its parts, fits into the tightest gap, as below.
  std::optional<int64_t> BestFit(const Chunk& wanted) const;
  // The lowest aligned offset of the smallest free range that holds `size` bytes over ticks [begin,
  // end); of equal ranges, the lower one. The free range at the top counts as endless. None if the
  // bytes would reach beyond the capacity.
  std::optional<int64_t> BestFit(Tick begin, Tick end, int64_t size) const {
    return BestFit(Chunk{begin, end, 0, size});
  }
  // Says whether bytes [offset, offset + size) are free over [begin, end).
  bool IsFree(Tick begin, Tick end, int64_t offset, int64_t size) const;
  // The largest tick `until` <= `end` such that these bytes are free over [begin, until).
  Tick FreeUntil(Tick begin, Tick end, int64_t offset, int64_t size) const;
  // The smallest tick, not below `least`, such that from it to `end` at least `size` bytes are free
  // at each tick, if not in one piece; `end` if there is none.
  Tick RoomFrom(Tick least, Tick end, int64_t size) const;

  // Gives all chunks new offsets, the longest first, then the largest. Returns false, and changes
  // nothing, if they do not fit. Ids stay.
  bool Repack();

 private:
  template <class Visit>
  void VisitOverlaps(size_t node, size_t node_begin, size_t node_size, Tick begin, Tick end,
                     const Visit& visit) const;
  template <class Visit>
  void VisitOverlaps(Tick begin, Tick end, const Visit& visit) const {
    VisitOverlaps(1, 0, leaves_, begin, end, visit);
  }
  void SetLastEnd(Tick begin);
  void AddUse(const Chunk& chunk, int sign);
  void AddUse(size_t node, size_t node_begin, size_t node_size, Tick begin, Tick end,
              int64_t bytes);
  int64_t MostUsed(size_t node, size_t node_begin, size_t node_size, Tick begin, Tick end) const;
  int64_t MostReserved(Tick begin, Tick end) const;

  int64_t capacity_, alignment_;
  Tick ticks_;
  size_t leaves_ = 1;            // a power of two, at least the ticks
  std::vector<Chunk> chunks_;    // by id; the size of a removed one is 0
  std::vector<int32_t> unused_;  // ids of removed chunks
  std::vector<std::vector<int32_t>>
      begins_;  // for each tick, the ids of the chunks that begin there
  // a tree over ticks: the last end of the chunks that begin below a node
  std::vector<Tick> last_end_;
  // a tree over ticks: the bytes used at all ticks of a node, and the most used at any tick below
  // it
  std::vector<int64_t> used_, used_below_;
  // [k][t]: the most reserved at any of the 2^k ticks from t on; empty: nothing is reserved
  std::vector<std::vector<int64_t>> reserved_;
  mutable std::vector<std::pair<int64_t, int64_t>> blocked_;  // scratch
};

}  // namespace mallocgame

#endif  // MALLOCGAME_SOLVERS_XLA_HEAP_H_
