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

// A chunk may be taken in parts of equal size, the last one perhaps smaller: the first from its own
// begin, each further one from a later tick on, from the low end upwards or from the high end
// downwards.
inline constexpr int kMaxParts = 4;
struct Chunk {
  Tick begin = 0, end = 0;  // [begin, end)
  int64_t offset = 0, size = 0;
  // of `parts` parts, never falling; of one part, not looked at
  std::array<Tick, kMaxParts> part_begin = {};
  int parts = 1;
  int64_t part_size = 0;  // bytes of each but the last; of one part, not looked at
  bool downwards = false;

  Tick PartBegin(int part) const { return parts == 1 ? begin : part_begin[part]; }
  // Bytes of the first `count` parts, from 0.
  int64_t BytesOf(int count) const {
    return count >= parts ? size : std::min(size, count * part_size);
  }
  // Where part `part` lies within the chunk.
  int64_t PartOffset(int part) const {
    return downwards ? size - BytesOf(part + 1) : BytesOf(part);
  }
  // Parts that begin before `tick`.
  int PartsBefore(Tick tick) const {
    int count = 0;
    while (count < parts && PartBegin(count) < tick) ++count;
    return count;
  }
};

class ChunkHeap {
 public:
  // `reserved`: bytes [0, reserved) of each tick are taken. capacity, alignment > 0.
  ChunkHeap(absl::Span<const int64_t> reserved, int64_t capacity, int64_t alignment);

  int32_t Add(const Chunk& chunk);  // returns its id; ids of removed chunks are used again
  void Remove(int32_t id);
  void Extend(int32_t id, Tick end);
  const Chunk& chunk(int32_t id) const { return chunks_[id]; }

  // Where a chunk best fits, its parts looked at: in the tightest gap, as below.
  std::optional<int64_t> BestFit(const Chunk& chunk) const;
  // The smallest free range that holds `size` bytes over ticks [begin, end), ties to the lower one,
  // at its lowest aligned offset; the free range at the top counts as endless. None if that reaches
  // over the capacity.
  std::optional<int64_t> BestFit(Tick begin, Tick end, int64_t size) const {
    return BestFit(Chunk{begin, end, 0, size});
  }
  // Are bytes [offset, offset + size) free over [begin, end)?
  bool IsFree(Tick begin, Tick end, int64_t offset, int64_t size) const;
  // The largest `until` <= `end` such that they are free over [begin, until); `begin` if there is
  // none.
  Tick FreeUntil(Tick begin, Tick end, int64_t offset, int64_t size) const;
  // The smallest tick from which to `end` at least `size` bytes are free at each, if not in one
  // piece; `end` if none, not below `least`.
  Tick RoomFrom(Tick least, Tick end, int64_t size) const;

  // Places all chunks anew, the longest first, then the largest, and keeps that if they fit. Ids
  // stay.
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
  size_t leaves_ = 1;                         // a power of two, at least the ticks
  std::vector<Chunk> chunks_;                 // by id; size 0: none
  std::vector<int32_t> unused_;               // ids
  std::vector<std::vector<int32_t>> begins_;  // ids, by begin
  // a tree over begins: the last end of the chunks below a node
  std::vector<Tick> last_end_;
  // a tree over ticks: bytes used at all of a node's ticks, at most below it
  std::vector<int64_t> used_, used_below_;
  // most of 2^k ticks from each on; empty: nothing is reserved
  std::vector<std::vector<int64_t>> reserved_;
  mutable std::vector<std::pair<int64_t, int64_t>> blocked_;  // scratch
};

}  // namespace mallocgame

#endif  // MALLOCGAME_SOLVERS_XLA_HEAP_H_
