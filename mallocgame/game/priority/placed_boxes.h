// Boxes of placed residences, bytes over ticks, found by ticks: which are near, what they leave
// free, and in which order those at some bytes end or are needed. A question costs what lies near,
// however long the program and the residence.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "mallocgame/base/ids.h"
#include "mallocgame/game/priority/gaps.h"

namespace mallocgame {

// What a residence takes: the bytes [offset, top) over the ticks [begin, end). It would like to
// have them from `wanted` on, and needs them all from `need` on: wanted <= begin <= need < end.
struct PlacedBox {
  Tick wanted = 0, begin = 0, need = 0, end = 0;
  int64_t offset = 0, top = 0;
};

class PlacedBoxes {
 public:
  // For offsets below `capacity`.
  PlacedBoxes(Tick ticks, int64_t capacity);

  // Boxes have numbers, which their owner gives: 0 and up, without large holes.
  void Put(int32_t id, const PlacedBox& placed);
  void Take(int32_t id);
  void Clear();

  // Visits each box that is placed or wanted at some of the ticks [begin, end) once, and perhaps
  // others near them: visit(id, box). CountNear is how many that is, or more.
  template <class Visit>
  void VisitNear(Tick begin, Tick end, const Visit& visit) const {
    for (const Level& level : levels_) {
      const Tick first = begin >> level.bits, last = (end - 1) >> level.bits;
      for (Tick block = first; block <= last; ++block) {
        for (int32_t n = heads_[level.first + block]; n >= 0; n = nodes_[n].next) {
          const int32_t id = nodes_[n].placed;
          const PlacedBox& box = boxes_[id];
          if (std::max(first, box.wanted >> level.bits) == block) visit(id, box);
        }
      }
    }
  }
  size_t CountNear(Tick begin, Tick end) const;
  // Leaves of the gaps what no box takes at some of the ticks [begin, end), without what is shorter
  // than `shortest`.
  void LeaveFree(Tick begin, Tick end, int64_t shortest, Gaps& gaps) const;
  // Visits the boxes that have some of the bytes `open` and end at one of the ticks [begin, end),
  // the last first. Each takes its bytes from `open` when it has been visited; when nothing is open
  // any more, the visit is over.
  void VisitEnds(Tick begin, Tick end, Gaps& open, absl::FunctionRef<void(int32_t)> visit) const;
  // The same of those that are needed from one of the ticks [begin, end) on, the first first.
  void VisitNeeds(Tick begin, Tick end, Gaps& open, absl::FunctionRef<void(int32_t)> visit) const;

 private:
  static constexpr int kBlockBits = 4;  // of a shortest block; one of the next level has 16 of them
  struct Linked : PlacedBox {
    int32_t first_node = -1;
  };
  // A place in the list of a block, and the same box's next one; -1: none.
  struct Node {
    int32_t placed, next, previous, of_next_block;
  };
  // Blocks of 2^bits ticks each, of which `first` is the first in heads_.
  struct Level {
    int bits;
    int32_t first;
  };
  // The boxes that end, or are needed, at ticks of one shortest block: a list of each.
  struct ByTick {
    struct Link {
      int32_t next, previous;
    };
    std::vector<int32_t> heads;  // by block; -1: none
    std::vector<Link> links;     // by box
    void Add(Tick tick, int32_t r);
    void Remove(Tick tick, int32_t r);
  };
  // What is free at all ticks of a block as far as boxes go that stand in it or in a block of it.
  struct FreeGaps {
    bool known = false;
    bool asked = false;  // once, since the last removal: who asks again gets them made
    Gaps gaps;
  };
  struct FreeGapsOfBlocks {
    std::vector<FreeGaps> of;  // empty, or one for each of heads_
    FreeGapsOfBlocks() = default;
    // A copy asks again.
    FreeGapsOfBlocks(const FreeGapsOfBlocks& /*other*/) {}
    FreeGapsOfBlocks(FreeGapsOfBlocks&&) = default;
    FreeGapsOfBlocks& operator=(const FreeGapsOfBlocks& /*other*/) {
      of.clear();
      return *this;
    }
    FreeGapsOfBlocks& operator=(FreeGapsOfBlocks&&) = default;
    ~FreeGapsOfBlocks() = default;
  };

  const Level& LevelOf(const PlacedBox& box) const;
  // The ticks of a block that the program has, as [first, second).
  std::pair<Tick, Tick> TicksOf(const Level& level, Tick block) const;
  const Gaps& GapsOf(size_t level, Tick block) const;
  void TakeFrom(Gaps& gaps, int32_t list, Tick begin, Tick end, int64_t shortest) const;
  void LeaveFree(size_t level, Tick block, Tick begin, Tick end, int64_t shortest,
                 Gaps& gaps) const;
  template <class TickOf>
  void VisitBlock(const ByTick& by_tick, const TickOf& tick_of, Tick block, Tick begin, Tick end,
                  bool last_first, Gaps& open, absl::FunctionRef<void(int32_t)> visit) const;
  Tick BlocksWithout(const Gaps& open, Tick block, Tick begin, Tick end, bool backwards,
                     bool asks) const;
  template <class Change>
  void ChangeGaps(const PlacedBox& box, const Change& change);

  Tick ticks_;
  int64_t capacity_;
  std::vector<Linked> boxes_;
  // What is placed or wanted in each block of ticks: lists in one pool, so that a copy is a few
  // blocks. A box stands at the level of blocks of which it takes few.
  std::vector<Level> levels_;
  std::vector<Node> nodes_;
  int32_t free_node_ = -1;  // the first of a list
  std::vector<int32_t> heads_, counts_;
  ByTick ends_, needs_;
  mutable FreeGapsOfBlocks free_;
};

}  // namespace mallocgame
