// FastMemory on a memory of a few bytes, and against one that keeps a number for each byte.
#include "mallocgame/game/time/fast_memory.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "mallocgame/base/rng.h"
#include "tests/catch.h"

namespace mallocgame {
namespace {

using FreePieces = std::vector<std::pair<int64_t, Tick>>;  // offset, free from

FreePieces PiecesOf(const FastMemory& memory) {
  FreePieces pieces;
  for (const FastMemory::Piece& piece : memory.pieces())
    pieces.emplace_back(piece.offset, piece.free_from);
  return pieces;
}

// 12 bytes: [0, 5) are free from tick 6 on, [5, 8) always, [8, 10) from tick 3, [10, 12) always.
FastMemory Holes(UndoLog* log) {
  FastMemory memory(12, 1);
  memory.Take(log, 0, 5, 6);
  memory.Take(log, 8, 2, 3);
  REQUIRE(PiecesOf(memory) == FreePieces{{0, 6}, {5, 0}, {8, 3}, {10, 0}});
  return memory;
}

TEST_CASE("best fit takes the smallest free range") {
  UndoLog log;
  const FastMemory best = Holes(&log);
  // At tick 0 the ranges [5, 8) and [10, 12) are free.
  REQUIRE(best.Find(2, 0, 0) == 10);
  REQUIRE(best.Find(3, 0, 0) == 5);
  REQUIRE(best.Find(4, 0, 0) == -1);
  // From tick 3 on [5, 12) is one range, from tick 6 on everything.
  REQUIRE(best.Find(4, 3, 0) == 5);
  REQUIRE(best.Find(8, 3, 0) == -1);
  REQUIRE(best.Find(12, 6, 0) == 0);
}

TEST_CASE("equal ranges: the lower one") {
  UndoLog log;
  FastMemory memory(7, 1);
  memory.Take(&log, 2, 3, 9);  // [0, 2) and [5, 7) stay free
  REQUIRE(memory.Find(2, 0, 0) == 0);
  REQUIRE(memory.Find(1, 0, 0) == 0);
}

TEST_CASE("nothing is found below the floor") {
  UndoLog log;
  const FastMemory memory = Holes(&log);
  REQUIRE(memory.Find(2, 0, 6) == 6);   // [6, 8) is left of [5, 8)
  REQUIRE(memory.Find(2, 0, 7) == 10);  // [7, 8) is too short
  REQUIRE(memory.Find(1, 0, 12) == -1);
}

TEST_CASE("the earliest tick at which there is room") {
  UndoLog log;
  const FastMemory memory = Holes(&log);
  REQUIRE(memory.EarliestFree(3, 0) == 0);
  REQUIRE(memory.EarliestFree(7, 0) == 3);  // [5, 12)
  REQUIRE(memory.EarliestFree(8, 0) == 6);  // needs a byte of [0, 5)
  REQUIRE(memory.EarliestFree(7, 6) == kNever);
  REQUIRE(memory.EarliestFree(13, 0) == kNever);
}

TEST_CASE("bytes taken up to the same tick are one piece, and come back by Release") {
  UndoLog log;
  FastMemory memory(12, 1);
  memory.Take(&log, 0, 4, 5);
  memory.Take(&log, 8, 4, 5);
  memory.Take(&log, 4, 4, 5);  // joins both
  REQUIRE(PiecesOf(memory) == FreePieces{{0, 5}});
  REQUIRE(memory.TakenBytes(4) == 12);
  REQUIRE(memory.TakenBytes(5) == 0);
  memory.Release(&log, 4, 4, 2);
  REQUIRE(PiecesOf(memory) == FreePieces{{0, 5}, {4, 2}, {8, 5}});
  REQUIRE(memory.IsFree(4, 4, 2));
  REQUIRE(!memory.IsFree(4, 4, 1));
  REQUIRE(!memory.IsFree(4, 5, 2));  // one byte of the piece behind it
  REQUIRE(memory.TakenBytes(2) == 8);
}

TEST_CASE("sizes are rounded up to the alignment, the capacity down") {
  UndoLog log;
  FastMemory memory(14, 4);
  REQUIRE(memory.capacity() == 12);
  memory.Take(&log, 0, 5, 9);  // takes 8
  REQUIRE(PiecesOf(memory) == FreePieces{{0, 9}, {8, 0}});
  REQUIRE(memory.Find(1, 0, 0) == 8);
  REQUIRE(memory.Find(1, 9, 1) == 4);  // the floor is rounded up too
  REQUIRE(memory.Find(5, 0, 0) == -1);
  REQUIRE(memory.EarliestFree(9, 0) == 9);
}

// A number for each unit of the alignment: the tick from which it is free.
class NaiveMemory {
 public:
  NaiveMemory(int64_t units, int64_t unit) : unit_(unit), free_from_(units, 0) {}

  int64_t Find(int64_t size, Tick begin, int64_t floor) const {
    int64_t best = -1, best_room = 0;
    for (int64_t start = Units(floor); start < units(); ++start) {
      if (free_from_[start] > begin) continue;
      if (start > Units(floor) && free_from_[start - 1] <= begin) continue;  // not a range's begin
      int64_t room = 0;
      while (start + room < units() && free_from_[start + room] <= begin) ++room;
      if (room < Units(size)) continue;
      if (best >= 0 && room >= best_room) continue;
      best = start;
      best_room = room;
    }
    return best < 0 ? -1 : best * unit_;
  }
  Tick EarliestFree(int64_t size, int64_t floor) const {
    Tick earliest = kNever;
    for (int64_t start = Units(floor); start + Units(size) <= units(); ++start) {
      Tick free = 0;
      for (int64_t i = start; i < start + Units(size); ++i) free = std::max(free, free_from_[i]);
      earliest = std::min(earliest, free);
    }
    return earliest;
  }
  void Take(int64_t offset, int64_t size, Tick end) {
    for (int64_t i = offset / unit_; i < offset / unit_ + Units(size); ++i) free_from_[i] = end;
  }
  int64_t TakenBytes(Tick tick) const {
    return unit_ * std::count_if(free_from_.begin(), free_from_.end(),
                                 [tick](Tick free) { return free > tick; });
  }
  FreePieces PiecesOf() const {
    FreePieces pieces;
    for (int64_t i = 0; i < units(); ++i) {
      if (i == 0 || free_from_[i] != free_from_[i - 1])
        pieces.emplace_back(i * unit_, free_from_[i]);
    }
    return pieces;
  }

 private:
  int64_t units() const { return static_cast<int64_t>(free_from_.size()); }
  int64_t Units(int64_t bytes) const { return (bytes + unit_ - 1) / unit_; }

  int64_t unit_;
  std::vector<Tick> free_from_;
};

void CompareWithNaiveMemory(uint64_t seed) {
  struct Booked {
    int64_t offset, size;
    Tick end;
  };
  struct Moment {
    uint32_t mark;
    Tick now;
    NaiveMemory naive;
    std::vector<Booked> booked;
  };
  Rng rng(seed);
  const int64_t unit = 1 + rng.Below(4), units = 8 + rng.Below(12);
  UndoLog log;
  FastMemory memory(units * unit + rng.Below(unit), unit);
  NaiveMemory naive(units, unit);
  std::vector<Booked> booked;
  std::vector<Moment> moments;
  Tick now = 0;
  for (int step = 0; step < 600; ++step) {
    now += static_cast<Tick>(rng.Below(3));
    const int64_t size = 1 + rng.Below(6 * unit), floor = rng.Below(4) == 0 ? rng.Below(6) : 0;
    // Residences begin now, or a little before, as those that begin with a prefetch do.
    const Tick begin = now - static_cast<Tick>(rng.Below(3));
    const int64_t offset = memory.Find(size, begin, floor);
    REQUIRE(offset == naive.Find(size, begin, floor));
    REQUIRE(memory.EarliestFree(size, floor) == naive.EarliestFree(size, floor));
    if (offset >= 0 && rng.Below(3) != 0) {
      REQUIRE(memory.IsFree(offset, size, begin));
      const Tick end = now + 1 + static_cast<Tick>(rng.Below(8));
      memory.Take(&log, offset, size, end);
      naive.Take(offset, size, end);
      REQUIRE(!memory.IsFree(offset, size, end - 1));
      booked.push_back({offset, size, end});
    }
    if (!booked.empty() && rng.Below(4) == 0) {  // gives the latest one back earlier
      Booked& last = booked.back();
      if (last.end > now) {
        last.end = now + static_cast<Tick>(rng.Below(last.end - now));
        memory.Release(&log, last.offset, last.size, last.end);
        naive.Take(last.offset, last.size, last.end);
      }
    }
    REQUIRE(PiecesOf(memory) == naive.PiecesOf());
    REQUIRE(memory.TakenBytes(now) == naive.TakenBytes(now));
    if (rng.Below(4) == 0) moments.push_back({log.Mark(), now, naive, booked});
    if (!moments.empty() && rng.Below(12) == 0) {
      moments.erase(moments.begin() + 1 + rng.Below(moments.size()), moments.end());
      memory.Rollback(log, moments.back().mark);
      log.Rollback(moments.back().mark);
      now = moments.back().now;
      naive = moments.back().naive;
      booked = moments.back().booked;
      REQUIRE(PiecesOf(memory) == naive.PiecesOf());
    }
  }
}

TEST_CASE("random residences agree with a number for each byte") {
  for (uint64_t seed = 0; seed < 20; ++seed) CompareWithNaiveMemory(seed);
}

}  // namespace
}  // namespace mallocgame
