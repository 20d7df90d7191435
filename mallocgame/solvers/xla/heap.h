// Fast memory as XLA's allocator sees it: chunks of bytes over intervals of ticks, best-fit
// placement of a new one, and repacking (XLA reference 4.7, 4.8). Time per call is that of the
// chunks that overlap in time.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "mallocgame/base/ids.h"
#include "mallocgame/program/reserved_bytes.h"

namespace mallocgame {

// Bytes [offset, offset + size) over ticks [begin, end). A chunk may be taken in parts of equal
// size, of which the one at the high end may be smaller. They are numbered in time: the first is
// taken from `begin` on, each further one from the same or a later tick on. They may lie in any
// order.
inline constexpr int kMaxParts = 16;
struct Chunk {
  Tick begin = 0, end = 0;  // [begin, end)
  int64_t offset = 0, size = 0;
  int parts = 1;
  // What follows is used by chunks of several parts only.
  int64_t part_size = 0;                           // bytes of each place but the highest
  std::array<Tick, kMaxParts> part_begin = {};     // of each part; never falling
  std::array<uint8_t, kMaxParts> part_place = {};  // of each part: how many lie below it

  Tick PartBegin(int part) const { return parts == 1 ? begin : part_begin[part]; }
  // The tick from which on all parts are taken.
  Tick FullFrom() const { return PartBegin(parts - 1); }
  // Where part `part` lies within the chunk.
  int64_t PartOffset(int part) const { return parts == 1 ? 0 : part_place[part] * part_size; }
  int64_t PartBytes(int part) const {
    return parts == 1 ? size : std::min(part_size, size - PartOffset(part));
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

  // Sets the lowest aligned offset of the smallest range that is free while all parts are taken,
  // and holds them; of equal ranges, that of the lower one. The free range at the top counts as
  // endless. Parts that are taken earlier are given places that are free by then: of all orders,
  // the first in the order of the dictionary. Returns false, and changes nothing, if the bytes
  // would reach beyond the capacity.
  bool BestFit(Chunk& wanted) const;
  // The offset for one that is taken in one part.
  std::optional<int64_t> BestFit(Tick begin, Tick end, int64_t size) const {
    Chunk wanted{begin, end, 0, size};
    return BestFit(wanted) ? std::optional(wanted.offset) : std::nullopt;
  }
  // Says whether bytes [offset, offset + size) are free over [begin, end).
  bool IsFree(Tick begin, Tick end, int64_t offset, int64_t size) const;
  // The largest tick `until` <= `end` such that these bytes are free over [begin, until).
  Tick FreeUntil(Tick begin, Tick end, int64_t offset, int64_t size) const;
  // The smallest tick, not below `least`, such that from it to `end` at least `size` bytes are free
  // at each tick, if not in one piece; `end` if there is none.
  Tick RoomFrom(Tick least, Tick end, int64_t size) const;

  // Gives all chunks, and parts, new places, the longest first, then the largest. Returns false,
  // and changes nothing, if they do not fit. Ids stay. `time` says by what time of
  // a tick it is measured how long a chunk is there.
  bool Repack(absl::FunctionRef<int32_t(Tick)> time);

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
  int64_t Aligned(int64_t offset) const;

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
  ReservedBytes reserved_;
  // Bytes that are taken for a time.
  struct Block {
    int64_t low = 0, high = 0;
    Tick end = 0;
  };
  bool FitsAt(Chunk& wanted, int64_t offset, absl::Span<const Block> before) const;
  // Gives a chunk the lowest offset from `first` on at which its parts fit and it ends at `end` at
  // most.
  bool FitsFrom(Chunk& wanted, int64_t first, int64_t end) const;
  mutable std::vector<Block> blocked_, before_;  // scratch
};

}  // namespace mallocgame
