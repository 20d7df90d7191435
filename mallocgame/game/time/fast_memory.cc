#include "mallocgame/game/time/fast_memory.h"

#include <algorithm>
#include <array>

#include "mallocgame/base/rounding.h"

namespace mallocgame {

FastMemory::FastMemory(int64_t capacity, int64_t alignment)
    : capacity_(capacity / alignment * alignment), alignment_(alignment),
      pieces_(std::vector<Piece>{{0, 0}}) {}

size_t FastMemory::PieceAt(int64_t offset) const {
  const auto pieces = pieces_.items();
  const auto next =
      std::upper_bound(pieces.begin(), pieces.end(), offset,
                       [](int64_t value, const Piece& piece) { return value < piece.offset; });
  return (next - pieces.begin()) - 1;
}

int64_t FastMemory::Find(int64_t size, Tick begin, int64_t floor) const {
  const int64_t wanted = RoundUp(size, alignment_);
  floor = RoundUp(floor, alignment_);
  int64_t best = -1, best_size = 0;
  const auto pieces = pieces_.items();
  const size_t count = pieces.size();
  for (size_t i = 0; i < count;) {
    if (pieces[i].free_from > begin) {
      ++i;
      continue;
    }
    const int64_t start = std::max(pieces[i].offset, floor);
    do {
      ++i;
    } while (i < count && pieces[i].free_from <= begin);
    const int64_t room = (i < count ? pieces[i].offset : capacity_) - start;
    if (room >= wanted && (best < 0 || room < best_size)) {
      best = start;
      best_size = room;
      if (room == wanted) return best;
    }
  }
  return best;
}

Tick FastMemory::EarliestFree(int64_t size, int64_t floor) const {
  const int64_t wanted = RoundUp(size, alignment_);
  floor = RoundUp(floor, alignment_);
  Tick earliest = kNever;
  for (size_t first = 0; first < pieces_.size(); ++first) {
    const int64_t start = std::max(pieces_[first].offset, floor);
    if (start + wanted > capacity_) break;
    Tick free_from = 0;
    for (size_t i = first;
         i < pieces_.size() && pieces_[i].offset < start + wanted && free_from < earliest; ++i) {
      free_from = std::max(free_from, pieces_[i].free_from);
    }
    earliest = std::min(earliest, free_from);
  }
  return earliest;
}

bool FastMemory::IsFree(int64_t offset, int64_t size, Tick begin) const {
  const int64_t end = offset + RoundUp(size, alignment_);
  for (size_t i = PieceAt(offset); i < pieces_.size() && pieces_[i].offset < end; ++i) {
    if (pieces_[i].free_from > begin) return false;
  }
  return true;
}

void FastMemory::Take(UndoLog* log, int64_t offset, int64_t size, Tick end) {
  const int64_t limit = offset + RoundUp(size, alignment_);
  const size_t first = PieceAt(offset);
  size_t last = first;
  while (EndOf(last) < limit) ++last;

  // The pieces first to last become what is left of the first, the taken bytes, and what is left of
  // the last. Neighbours that are free from the same tick become one piece.
  std::array<Piece, 4> made = {};
  size_t count = 0;
  size_t begin = first, remove = last - first + 1;
  const auto add = [&](Piece piece) {
    if (count > 0 && made[count - 1].free_from == piece.free_from) return;
    made[count++] = piece;
  };
  if (pieces_[first].offset < offset) {
    add(pieces_[first]);
  } else if (first > 0 && pieces_[first - 1].free_from == end) {
    --begin;
    ++remove;
    add(pieces_[begin]);
  }
  add({offset, end});
  if (EndOf(last) > limit) {
    add({limit, pieces_[last].free_from});
  } else if (last + 1 < pieces_.size() && pieces_[last + 1].free_from == end) {
    ++remove;
  }
  pieces_.Splice(log, begin, remove, absl::MakeConstSpan(made.data(), count));
}

int64_t FastMemory::TakenBytes(Tick tick) const {
  int64_t bytes = 0;
  for (size_t i = 0; i < pieces_.size(); ++i) {
    if (pieces_[i].free_from > tick) bytes += EndOf(i) - pieces_[i].offset;
  }
  return bytes;
}

}  // namespace mallocgame
