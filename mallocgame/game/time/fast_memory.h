// Fast memory as the game sees it: for each address, the tick from which it is free. The game books
// residences in time order: each begins at or before the current tick. So an address is free over
// [begin, end) if and only if the last residence booked there ends at or before `begin`, and one
// number for each address says it all.
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "mallocgame/base/ids.h"
#include "mallocgame/game/undo_vector.h"

namespace mallocgame {

class FastMemory {
 public:
  // `capacity` and all sizes are in bytes. Sizes are rounded up to `alignment`, the capacity down.
  FastMemory(int64_t capacity, int64_t alignment);

  // An offset >= floor at which `size` bytes are free from `begin` on, in the smallest free range
  // that holds them, the lowest of equal ones; -1 if there is none.
  int64_t Find(int64_t size, Tick begin, int64_t floor) const;
  // The earliest tick from which Find succeeds; kNever if there are no `size` bytes above `floor`.
  Tick EarliestFree(int64_t size, int64_t floor) const;
  // Whether all `size` bytes at `offset` are free from `begin` on.
  bool IsFree(int64_t offset, int64_t size, Tick begin) const;
  // Takes the bytes until `end`. They must be free from the start of the residence on.
  void Take(UndoLog* log, int64_t offset, int64_t size, Tick end);
  // Gives the bytes back at `end`, earlier than they were taken until. No other residence may have
  // taken them since.
  void Release(UndoLog* log, int64_t offset, int64_t size, Tick end) {
    Take(log, offset, size, end);
  }

  // The bytes that are taken at `tick`, which is the current tick or later.
  int64_t TakenBytes(Tick tick) const;

  // The addresses [offset, offset of the next piece) are free from tick `free_from` on. Pieces are
  // sorted by offset; the first starts at 0.
  struct Piece {
    int64_t offset;
    Tick free_from;
  };
  absl::Span<const Piece> pieces() const { return pieces_.items(); }
  int64_t capacity() const { return capacity_; }

  void Rollback(const UndoLog& log, uint32_t mark) { pieces_.Rollback(log, mark); }

 private:
  size_t PieceAt(int64_t offset) const;
  int64_t EndOf(size_t piece) const {
    return piece + 1 < pieces_.size() ? pieces_[piece + 1].offset : capacity_;
  }

  int64_t capacity_;
  int64_t alignment_;
  UndoVector<Piece> pieces_;
};

}  // namespace mallocgame
