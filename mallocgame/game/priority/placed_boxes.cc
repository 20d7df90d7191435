#include "mallocgame/game/priority/placed_boxes.h"

#include <algorithm>

#include "absl/container/inlined_vector.h"

namespace mallocgame {
namespace {

constexpr Tick kManyBlocks = 16;

}  // namespace

PlacedBoxes::PlacedBoxes(Tick ticks, int64_t capacity) : ticks_(ticks), capacity_(capacity) {
  int32_t blocks = 0;
  for (int bits = kBlockBits;; bits += kBlockBits) {
    levels_.push_back({bits, blocks});
    const Tick of_level = (ticks >> bits) + 1;
    blocks += of_level;
    if (of_level <= kManyBlocks) break;
  }
  heads_.resize(blocks);
  counts_.resize(blocks);
  ends_.heads.resize((ticks >> kBlockBits) + 1);
  needs_.heads.resize((ticks >> kBlockBits) + 1);
  Clear();
}

void PlacedBoxes::Clear() {
  boxes_.clear();
  nodes_.clear();
  free_node_ = -1;
  std::fill(heads_.begin(), heads_.end(), -1);
  std::fill(counts_.begin(), counts_.end(), 0);
  for (ByTick* by_tick : {&ends_, &needs_})
    std::fill(by_tick->heads.begin(), by_tick->heads.end(), -1);
  free_.of.clear();
}

size_t PlacedBoxes::CountNear(Tick begin, Tick end) const {
  size_t near = 0;
  for (const Level& level : levels_) {
    for (Tick block = begin >> level.bits; block <= (end - 1) >> level.bits; ++block)
      near += counts_[level.first + block];
  }
  return near;
}

std::pair<Tick, Tick> PlacedBoxes::TicksOf(const Level& level, Tick block) const {
  return {block << level.bits, std::min((block + 1) << level.bits, ticks_)};
}

const Gaps& PlacedBoxes::GapsOf(size_t level, Tick block) const {
  if (free_.of.empty()) free_.of.resize(heads_.size());
  FreeGaps& free = free_.of[levels_[level].first + block];
  if (free.known) return free.gaps;
  free.gaps.assign(1, {0, capacity_});
  const auto [begin, end] = TicksOf(levels_[level], block);
  if (level > 0) {
    const int bits = levels_[level - 1].bits;
    for (Tick part = begin >> bits; part <= (end - 1) >> bits; ++part)
      Intersect(free.gaps, GapsOf(level - 1, part), 1);
  }
  TakeFrom(free.gaps, levels_[level].first + block, begin, end, 1);
  free.known = true;
  return free.gaps;
}

// Takes out of the gaps what the residences of a list take at some of the ticks [begin, end).
void PlacedBoxes::TakeFrom(Gaps& gaps, int32_t list, Tick begin, Tick end, int64_t shortest) const {
  for (int32_t n = heads_[list]; n >= 0 && !gaps.empty(); n = nodes_[n].next) {
    const PlacedBox& box = boxes_[nodes_[n].placed];
    if (box.begin < end && begin < box.end) Subtract(gaps, box.offset, box.top, shortest);
  }
}

// Leaves of the gaps what no residence takes that stands in this block, or in one of it, at some of
// the ticks [begin, end).
void PlacedBoxes::LeaveFree(size_t level, Tick block, Tick begin, Tick end, int64_t shortest,
                            Gaps& gaps) const {
  if (gaps.empty()) return;
  const auto [from, to] = TicksOf(levels_[level], block);
  if (begin <= from && to <= end) {
    FreeGaps& free = free_.of[levels_[level].first + block];
    if (free.known || free.asked) return Intersect(gaps, GapsOf(level, block), shortest);
    free.asked = true;
  }
  TakeFrom(gaps, levels_[level].first + block, begin, end, shortest);
  if (level == 0) return;
  const int bits = levels_[level - 1].bits;
  for (Tick part = std::max(begin, from) >> bits; part <= (std::min(end, to) - 1) >> bits; ++part)
    LeaveFree(level - 1, part, begin, end, shortest, gaps);
}

void PlacedBoxes::LeaveFree(Tick begin, Tick end, int64_t shortest, Gaps& gaps) const {
  if (free_.of.empty()) free_.of.resize(heads_.size());
  const size_t top = levels_.size() - 1;
  for (Tick block = begin >> levels_[top].bits; block <= (end - 1) >> levels_[top].bits; ++block)
    LeaveFree(top, block, begin, end, shortest, gaps);
}

void PlacedBoxes::ByTick::Add(Tick tick, int32_t r) {
  if (r >= std::ssize(links)) links.resize(r + 1);
  int32_t& head = heads[tick >> kBlockBits];
  links[r] = {head, -1};
  if (head >= 0) links[head].previous = r;
  head = r;
}

void PlacedBoxes::ByTick::Remove(Tick tick, int32_t r) {
  const auto [next, previous] = links[r];
  (previous >= 0 ? links[previous].next : heads[tick >> kBlockBits]) = next;
  if (next >= 0) links[next].previous = previous;
}

// How many shortest blocks, from this one on or back, have no residence at the bytes `open`, as far
// as a look at longer blocks tells. Blocks that reach beyond [begin, end) are not counted, and
// unless one `asks`, none whose gaps nobody has asked for.
Tick PlacedBoxes::BlocksWithout(const Gaps& open, Tick block, Tick begin, Tick end, bool backwards,
                                bool asks) const {
  if (free_.of.empty() && !asks) return 0;
  Tick without = 0;
  for (size_t l = 1; l < levels_.size(); ++l) {
    const Level& level = levels_[l];
    const Tick blocks = 1 << (level.bits - kBlockBits), of = block / blocks;
    if (block % blocks != (backwards ? blocks - 1 : 0)) break;
    const auto [from, to] = TicksOf(level, of);
    if (from < begin || to > end || (!asks && !free_.of[level.first + of].known) ||
        !Contain(GapsOf(l, of), open))
      break;
    for (size_t longer = l + 1; longer < levels_.size(); ++longer) {
      const int32_t list = levels_[longer].first + (from >> levels_[longer].bits);
      for (int32_t n = heads_[list]; n >= 0; n = nodes_[n].next) {
        const PlacedBox& box = boxes_[nodes_[n].placed];
        if (box.begin < to && from < box.end && Overlap(open, box.offset, box.top)) return without;
      }
    }
    without = blocks;
  }
  return without;
}

template <class TickOf>
void PlacedBoxes::VisitBlock(const ByTick& by_tick, const TickOf& tick_of, Tick block, Tick begin,
                             Tick end, bool last_first, Gaps& open,
                             absl::FunctionRef<void(int32_t)> visit) const {
  absl::InlinedVector<std::pair<Tick, int32_t>, 16> here;
  for (int32_t r = by_tick.heads[block]; r >= 0; r = by_tick.links[r].next) {
    const Tick tick = tick_of(r);
    if (begin <= tick && tick < end && Overlap(open, boxes_[r].offset, boxes_[r].top))
      here.emplace_back(tick, r);
  }
  if (here.size() > 1) std::sort(here.begin(), here.end());
  if (last_first) std::reverse(here.begin(), here.end());
  for (const auto& [tick, r] : here) {
    if (!Overlap(open, boxes_[r].offset, boxes_[r].top)) continue;
    visit(r);
    Subtract(open, boxes_[r].offset, boxes_[r].top, 1);
  }
}

void PlacedBoxes::VisitEnds(Tick begin, Tick end, Gaps& open,
                            absl::FunctionRef<void(int32_t)> visit) const {
  // A residence stands where it takes its last tick.
  begin = std::max(begin - 1, 0);
  if (--end <= begin) return;
  const Tick last = (end - 1) >> kBlockBits;
  for (Tick block = last; block >= begin >> kBlockBits && !open.empty();) {
    const bool far = last - block >= kManyBlocks;
    if (const Tick without = BlocksWithout(open, block, begin, end, true, far); without > 0) {
      block -= without;
      continue;
    }
    VisitBlock(
        ends_, [this](int32_t r) { return boxes_[r].end - 1; }, block, begin, end, true, open,
        visit);
    --block;
  }
}

void PlacedBoxes::VisitNeeds(Tick begin, Tick end, Gaps& open,
                             absl::FunctionRef<void(int32_t)> visit) const {
  end = std::min(end, ticks_);
  const Tick first = begin >> kBlockBits;
  for (Tick block = first; block <= (end - 1) >> kBlockBits && !open.empty();) {
    const bool far = block - first >= kManyBlocks;
    if (const Tick without = BlocksWithout(open, block, begin, end, false, far); without > 0) {
      block += without;
      continue;
    }
    VisitBlock(
        needs_, [this](int32_t r) { return boxes_[r].need; }, block, begin, end, false, open,
        visit);
    ++block;
  }
}

// The level at which a residence takes few blocks.
const PlacedBoxes::Level& PlacedBoxes::LevelOf(const PlacedBox& box) const {
  return *std::find_if(levels_.begin(), levels_.end(), [&box](const Level& level) {
    return ((box.end - 1) >> level.bits) - (box.wanted >> level.bits) < kManyBlocks;
  });
}

// Changes what is known of the gaps of all blocks that count the residence.
template <class Change>
void PlacedBoxes::ChangeGaps(const PlacedBox& box, const Change& change) {
  if (free_.of.empty()) return;
  for (const Level* level = &LevelOf(box); level <= &levels_.back(); ++level) {
    for (Tick block = box.begin >> level->bits; block <= (box.end - 1) >> level->bits; ++block) {
      FreeGaps& free = free_.of[level->first + block];
      if (free.known || free.asked) change(free);
    }
  }
}

void PlacedBoxes::Put(int32_t id, const PlacedBox& placed) {
  if (id >= std::ssize(boxes_)) boxes_.resize(id + 1);
  Linked& box = boxes_[id];
  box = {placed};
  ChangeGaps(box, [&box](FreeGaps& free) {
    if (free.known) Subtract(free.gaps, box.offset, box.top, 1);
  });
  ends_.Add(box.end - 1, id);
  needs_.Add(box.need, id);
  const Level& level = LevelOf(box);
  const Tick first = level.first + (box.wanted >> level.bits),
             last = level.first + ((box.end - 1) >> level.bits);
  for (Tick block = first; block <= last; ++block) {
    int32_t n = free_node_;
    if (n >= 0) {
      free_node_ = nodes_[n].next;
    } else {
      n = static_cast<int32_t>(nodes_.size());
      nodes_.emplace_back();
    }
    nodes_[n] = {id, heads_[block], -1, box.first_node};
    if (heads_[block] >= 0) nodes_[heads_[block]].previous = n;
    heads_[block] = n;
    ++counts_[block];
    box.first_node = n;
  }
}

void PlacedBoxes::Take(int32_t id) {
  const Linked& box = boxes_[id];
  ChangeGaps(box, [](FreeGaps& free) { free.known = free.asked = false; });
  ends_.Remove(box.end - 1, id);
  needs_.Remove(box.need, id);
  const Level& level = LevelOf(box);
  const Tick first = level.first + (box.wanted >> level.bits),
             last = level.first + ((box.end - 1) >> level.bits);
  // The nodes stand from the last block to the first.
  int32_t n = box.first_node;
  for (Tick block = last; block >= first; --block) {
    const Node node = nodes_[n];
    (node.previous >= 0 ? nodes_[node.previous].next : heads_[block]) = node.next;
    if (node.next >= 0) nodes_[node.next].previous = node.previous;
    nodes_[n].next = free_node_;
    free_node_ = n;
    --counts_[block];
    n = node.of_next_block;
  }
}

}  // namespace mallocgame
