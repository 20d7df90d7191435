// Fast memory as the game sees it: for each address, the tick from which it is free. The game books
// residences in time order: each begins at or before the tick now, none ends before it began. So an
// address is free over [begin, end) if and only if the last residence booked there ends at or
// before `begin`, and one number an address says it all.
#ifndef MALLOCGAME_GAME_FAST_MEMORY_H_
#define MALLOCGAME_GAME_FAST_MEMORY_H_

#include <cstdint>

#include "absl/types/span.h"
#include "mallocgame/base/ids.h"
#include "mallocgame/game/game.h"
#include "mallocgame/game/undo_vector.h"

namespace mallocgame {

class FastMemory {
 public:
  // `capacity` and all sizes are in bytes; sizes are rounded up to `alignment`, a divisor of
  // `capacity`.
  FastMemory(int64_t capacity, int64_t alignment, OffsetPolicy policy);

  // An offset >= floor at which `size` bytes are free from `begin` on; -1: there is none.
  int64_t Find(int64_t size, Tick begin, int64_t floor) const;
  // The earliest tick from which Find succeeds; INT32_MAX: `size` bytes above `floor` don't exist.
  Tick EarliestFree(int64_t size, int64_t floor) const;
  // Are all `size` bytes at `offset` free from `begin` on?
  bool IsFree(int64_t offset, int64_t size, Tick begin) const;
  // Takes the bytes until `end`. They must be free from the residence's begin on.
  void Take(UndoLog* log, int64_t offset, int64_t size, Tick end);
  // Gives the bytes back at `end`, earlier than taken. Nobody may have taken them since.
  void Release(UndoLog* log, int64_t offset, int64_t size, Tick end) {
    Take(log, offset, size, end);
  }

  // Bytes that are taken at `tick`, now or later.
  int64_t TakenBytes(Tick tick) const;

  // Addresses [offset, offset of the next piece) are free from `free_from` on. Sorted; the first
  // starts at 0.
  struct Piece {
    int64_t offset;
    Tick free_from;
  };
  absl::Span<const Piece> pieces() const { return pieces_.items(); }
  int64_t capacity() const { return capacity_; }

  void Rollback(const UndoLog& log, uint32_t mark) { pieces_.Rollback(log, mark); }

 private:
  int64_t RoundUp(int64_t size) const { return (size + alignment_ - 1) / alignment_ * alignment_; }
  size_t PieceAt(int64_t offset) const;
  int64_t EndOf(size_t piece) const {
    return piece + 1 < pieces_.size() ? pieces_[piece + 1].offset : capacity_;
  }

  int64_t capacity_;
  int64_t alignment_;
  OffsetPolicy policy_;
  UndoVector<Piece> pieces_;
};

}  // namespace mallocgame

#endif  // MALLOCGAME_GAME_FAST_MEMORY_H_
