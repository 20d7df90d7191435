// Where chunks lie: worked examples, and every byte of every tick looked at.
#include "mallocgame/solvers/xla/heap.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

#include "mallocgame/base/rng.h"
#include "tests/catch.h"

namespace mallocgame {
namespace {

TEST_CASE("heap: the smallest free range that fits, ties to the lower, the top last") {
  const std::vector<int64_t> reserved(10, 0);
  ChunkHeap heap(reserved, 100, 1);
  heap.Add({0, 10, 10, 10});  // free below: [0, 10)
  heap.Add({0, 5, 25, 5});    // [20, 25), until tick 5
  heap.Add({2, 10, 40, 10});  // [30, 40)
  CHECK(heap.BestFit(0, 5, 5) == 20);
  CHECK(heap.BestFit(0, 5, 6) == 0);  // ties: [0, 10) and [30, 40)
  CHECK(heap.BestFit(0, 5, 11) == 50);
  CHECK(heap.BestFit(5, 10, 11) == 20);
  CHECK(heap.BestFit(0, 2, 50) == 30);
  CHECK(!heap.BestFit(0, 5, 51));
  CHECK(heap.IsFree(0, 2, 30, 70));
  CHECK(!heap.IsFree(0, 3, 30, 70));
  CHECK(heap.FreeUntil(0, 10, 35, 10) == 2);
  CHECK(heap.RoomFrom(0, 5, 75) == 0);
  CHECK(heap.RoomFrom(0, 10, 76) == 5);
  CHECK(heap.RoomFrom(0, 10, 90) == 10);
}

TEST_CASE("heap: alignment, and what instructions reserve") {
  const std::vector<int64_t> reserved = {0, 9, 0, 0};
  ChunkHeap heap(reserved, 64, 8);
  CHECK(heap.BestFit(2, 4, 3) == 0);
  CHECK(heap.BestFit(0, 4, 3) == 16);
  CHECK(!heap.IsFree(0, 2, 8, 8));
  heap.Add({2, 4, 0, 3});
  CHECK(heap.BestFit(2, 4, 3) == 8);
  CHECK(heap.FreeUntil(0, 4, 8, 4) == 1);
}

TEST_CASE("heap: repacking makes room, or changes nothing") {
  const std::vector<int64_t> reserved(6, 0);
  ChunkHeap heap(reserved, 10, 1);
  const int32_t a = heap.Add({0, 2, 0, 4}), b = heap.Add({0, 6, 4, 4});
  CHECK(!heap.BestFit(2, 6, 6));
  REQUIRE(heap.Repack([](Tick t) { return t; }));
  CHECK(heap.chunk(b).offset == 0);
  CHECK(heap.chunk(a).offset == 4);
  CHECK(heap.BestFit(2, 6, 6) == 4);
  heap.Remove(a);
  CHECK(heap.BestFit(0, 6, 6) == 4);
}

TEST_CASE("heap: repacking takes the longest first, in times") {
  const std::vector<int64_t> reserved(6, 0);
  ChunkHeap heap(reserved, 10, 1);
  const int32_t a = heap.Add({0, 5, 0, 4}), b = heap.Add({3, 6, 4, 6});
  REQUIRE(heap.Repack([](Tick t) { return t; }));
  CHECK(heap.chunk(a).offset == 0);  // 5 ticks, the other one 3
  REQUIRE(heap.Repack([](Tick t) { return t < 4 ? 0 : 1; }));
  CHECK(heap.chunk(b).offset == 0);  // Both live for a time of 1; this one is larger.
  CHECK(heap.chunk(a).offset == 6);
}

// Keeps the bytes of every tick, the slow way.
class Grid {
 public:
  bool Free(const Chunk& c) const {
    return Visit(c, [this](size_t cell) { return !taken_[cell]; });
  }
  void Take(const Chunk& c) {
    Visit(c, [this](size_t cell) { return taken_[cell] = true; });
  }

 private:
  template <class Cell>
  bool Visit(const Chunk& c, const Cell& cell) const {
    for (int part = 0; part < c.parts; ++part) {
      for (Tick t = c.PartBegin(part); t < c.end; ++t) {
        for (int64_t i = 0; i < c.PartBytes(part); ++i) {
          if (!cell(t * 24 + c.offset + c.PartOffset(part) + i)) return false;
        }
      }
    }
    return true;
  }
  std::vector<bool> taken_ = std::vector<bool>(10 * 24, false);
};

TEST_CASE("heap: chunks in parts find room exactly where there is some") {
  Rng rng(6);
  int placed = 0, refused = 0;
  for (int round = 0; round < 400; ++round) {
    const std::vector<int64_t> reserved(10, 0);
    ChunkHeap heap(reserved, 24, 1);
    Grid grid;
    for (int i = 0; i < 14; ++i) {
      Chunk chunk;
      chunk.begin = static_cast<Tick>(rng.Below(9));
      chunk.end = chunk.begin + 1 + static_cast<Tick>(rng.Below(10 - chunk.begin));
      chunk.size = 1 + rng.Below(10);
      if (rng.Below(2) == 0) {
        chunk.part_size = (chunk.size + 3) / 4;
        chunk.parts = static_cast<int>((chunk.size + chunk.part_size - 1) / chunk.part_size);
        Tick begin = chunk.begin;
        for (int part = 0; part < chunk.parts; ++part) {
          chunk.part_begin[part] = begin;
          begin = std::min(chunk.end - 1, begin + static_cast<Tick>(rng.Below(3)));
        }
      }
      bool room = false;
      Chunk tried = chunk;
      std::vector<uint8_t> places(chunk.parts);
      std::iota(places.begin(), places.end(), 0);
      do {
        std::copy(places.begin(), places.end(), tried.part_place.begin());
        for (tried.offset = 0; tried.offset <= 24 - chunk.size; ++tried.offset)
          room |= grid.Free(tried);
      } while (std::next_permutation(places.begin(), places.end()));
      if (heap.BestFit(chunk)) {
        REQUIRE(grid.Free(chunk));
        grid.Take(chunk);
        heap.Add(chunk);
        ++placed;
      } else {
        REQUIRE(!room);
        ++refused;
      }
    }
  }
  CHECK(placed > 1000);
  CHECK(refused > 1000);
}

TEST_CASE("heap: parts that begin early go where bytes are free early") {
  const std::vector<int64_t> reserved(10, 0);
  ChunkHeap heap(reserved, 16, 1);
  heap.Add({0, 3, 0, 4});    // [0, 4) is free from tick 3 on
  heap.Add({0, 10, 12, 4});  // never free
  Chunk chunk = {1, 8, 0, 8, 2, 4, {1, 4}, {}};
  REQUIRE(heap.BestFit(chunk));
  CHECK(chunk.offset == 0);
  CHECK(chunk.PartOffset(0) == 4);  // The earlier part lies above the later one.
  CHECK(chunk.PartOffset(1) == 0);
  // Both parts at once fit further up only.
  Chunk at_once = {1, 8, 0, 8, 2, 4, {1, 1}, {}};
  REQUIRE(heap.BestFit(at_once));
  CHECK(at_once.offset == 4);
  CHECK(at_once.PartOffset(0) == 0);
  // A smaller part lies at the high end, whenever it begins.
  Chunk uneven = {1, 8, 0, 7, 2, 4, {1, 4}, {}};
  REQUIRE(heap.BestFit(uneven));
  CHECK(uneven.offset == 0);
  CHECK(uneven.PartBytes(0) == 3);
}

}  // namespace
}  // namespace mallocgame
