#include "mallocgame/game/priority/arrangement.h"

#include <algorithm>
#include <atomic>
#include <bit>

#include "mallocgame/base/error.h"
#include "mallocgame/base/rounding.h"

namespace mallocgame {
namespace {

constexpr int kBlockBits = 4;  // of a shortest block; those of the next level are 16 times as long
constexpr Tick kBlock = 1 << kBlockBits;
constexpr Tick kManyBlocks = 16;
constexpr Tick kSamples = 8;  // of the blocks of a long residence
constexpr size_t kManyRanges = 256;
__extension__ using Int128 = __int128;

// Another one for each placing of the process; each thread draws them by the million.
uint64_t NextStamp() {
  constexpr uint64_t kDrawn = 1 << 20;
  static std::atomic<uint64_t> undrawn = 1;
  static thread_local uint64_t next = 0, end = 0;
  if (next == end) {
    next = undrawn.fetch_add(kDrawn);
    end = next + kDrawn;
  }
  return next++;
}

// Makes `taken` the stretches that its ranges take together, in order, each from one multiple of
// `alignment` to another, with a bit for each. Of thousands that is faster than to sort them.
template <class Ranges>
void UniteByBits(Ranges& taken, int64_t capacity, int64_t alignment) {
  static thread_local std::vector<uint64_t> bits;
  const int64_t places = DivideUp(capacity, alignment);
  bits.assign(places / 64 + 1, 0);
  for (const auto& [from, top] : taken) {
    const int64_t begin = from / alignment, end = DivideUp(top, alignment);
    if (begin >= end) continue;
    const int64_t first = begin / 64, last = (end - 1) / 64;
    const uint64_t head = ~uint64_t{0} << begin % 64, tail = ~uint64_t{0} >> (63 - (end - 1) % 64);
    if (first == last) {
      bits[first] |= head & tail;
      continue;
    }
    bits[first] |= head;
    std::fill(bits.begin() + first + 1, bits.begin() + last, ~uint64_t{0});
    bits[last] |= tail;
  }
  taken.clear();
  // The first place from `at` on whose bit is `set`.
  const auto next = [&](int64_t at, bool set) {
    for (int64_t word = at / 64; word < std::ssize(bits); ++word) {
      uint64_t here = set ? bits[word] : ~bits[word];
      if (word == at / 64) here &= ~uint64_t{0} << at % 64;
      if (here != 0) return word * 64 + std::countr_zero(here);
    }
    return places;
  };
  for (int64_t at = next(0, true); at < places;) {
    const int64_t end = std::min(places, next(at, false));
    taken.emplace_back(at * alignment, end * alignment);
    at = next(end, true);
  }
}

}  // namespace

Arrangement::Arrangement(const ArrangementTables& tables)
    : tables_(&tables), served_by_(tables.tables.decisions.size()),
      placements_(tables.program.ticks()), idle_(tables.program.ticks()),
      taken_(tables.program.ticks() / kBlock + 1) {
  int32_t blocks = 0;
  for (int bits = kBlockBits;; bits += kBlockBits) {
    levels_.push_back({bits, blocks});
    const Tick of_level = (tables.program.ticks() >> bits) + 1;
    blocks += of_level;
    if (of_level <= kManyBlocks) break;
  }
  heads_.resize(blocks);
  counts_.resize(blocks);
  Clear();
}

void Arrangement::Clear() {
  const GameTables& tables = tables_->tables;
  placed_.clear();
  stamps_.clear();
  boxes_.clear();
  nodes_.clear();
  free_node_ = -1;
  steps_.clear();
  holes_.clear();
  removed_.clear();
  std::fill(served_by_.begin(), served_by_.end(), -1);
  std::fill(placements_.begin(), placements_.end(), 0);
  std::fill(heads_.begin(), heads_.end(), -1);
  std::fill(counts_.begin(), counts_.end(), 0);
  std::fill(taken_.begin(), taken_.end(), 0);
  for (size_t t = 0; t < idle_.size(); ++t) {
    idle_[t] = tables.PriceAt(tables_->game.cost_model(), static_cast<Tick>(t), 0).idle_ps;
  }
  compute_ps_ = tables_->game.all_main_ps();
  preloads_ = 0;
}

void Arrangement::SetPlacement(Tick tick, uint64_t placement) {
  const GameTables& tables = tables_->tables;
  const CostModel& cost_model = tables_->game.cost_model();
  const int64_t before = tables.PriceAt(cost_model, tick, placements_[tick]).time_ps;
  const TimeAndIdle after = tables.PriceAt(cost_model, tick, placement);
  placements_[tick] = placement;
  idle_[tick] = after.idle_ps;
  compute_ps_ += (after.time_ps - before) * tables.instructions[tick].trips;
}

void Arrangement::Serve(int32_t r, bool fast) {
  const PlannedResidence& planned = placed_[r];
  const auto of = tables_->decisions_of(planned.buffer);
  for (int32_t i = planned.first; i <= planned.last; ++i) {
    const Decision& d = tables_->tables.decisions[of[i]];
    served_by_[of[i]] = fast ? r : -1;
    if (d.tick == planned.replaces && i == planned.first) {
      SetPlacement(d.tick, fast ? kReplaced : 0);
    } else {
      SetPlacement(d.tick, placements_[d.tick] ^ uint64_t{1} << d.bit);
    }
  }
}

// Visits each residence that is placed or wanted at some of the blocks of these ticks once, and
// perhaps others, until `visit` returns false. Those that take many ticks come first.
template <class Visit>
void Arrangement::VisitPlaced(Tick begin, Tick end, const Visit& visit) const {
  for (auto level = levels_.rbegin(); level != levels_.rend(); ++level) {
    if (!VisitLevel(*level, begin, end, visit)) return;
  }
}

template <class Visit>
bool Arrangement::VisitLevel(const Level& level, Tick begin, Tick end, const Visit& visit) const {
  const Tick first = begin >> level.bits, last = (end - 1) >> level.bits;
  for (Tick block = first; block <= last; ++block) {
    for (int32_t n = heads_[level.first + block]; n >= 0; n = nodes_[n].next) {
      const Box& box = boxes_[nodes_[n].placed];
      if (std::max(first, box.wanted >> level.bits) == block && !visit(box)) return false;
    }
  }
  return true;
}

bool Arrangement::IsFree(Tick begin, Tick end, int64_t offset, int64_t top) const {
  const Game& game = tables_->game;
  if (offset < 0 || top > game.usable_bytes() || offset % game.hardware().alignment_bytes != 0 ||
      offset < tables_->tables.reserved.Most(begin, end))
    return false;
  bool is_free = true;
  VisitPlaced(begin, end, [&](const Box& other) {
    return is_free = other.begin >= end || begin >= other.end || other.offset >= top ||
                     offset >= other.top;
  });
  return is_free;
}

bool Arrangement::FindOver(Tick begin, Tick end, size_t most, std::vector<int32_t>& over) const {
  over.clear();
  size_t near = 0;
  for (const Level& level : levels_) {
    for (Tick block = begin >> level.bits; block <= (end - 1) >> level.bits; ++block)
      near += counts_[level.first + block];
  }
  if (near > most) return false;
  VisitPlaced(begin, end, [&](const Box& box) {
    if (box.begin < end && begin < box.end)
      over.push_back(static_cast<int32_t>(&box - boxes_.data()));
    return true;
  });
  std::sort(over.begin(), over.end());
  return true;
}

// Whether there is a tick at which no room is left for it, and so no gap over all of its ticks. Of
// a long residence this spares the look at all others, which are most of a large program's.
bool Arrangement::IsFull(const PlannedResidence& planned, Tick begin) const {
  const int64_t capacity = tables_->game.usable_bytes(), bytes = size(planned);
  const Tick first = (begin + kBlock - 1) / kBlock, last = (planned.end - 1) / kBlock;
  if (first > last) return false;
  const auto fullest = std::max_element(taken_.begin() + first, taken_.begin() + last + 1);
  if (*fullest > capacity - bytes) return true;
  if (last - first < kManyBlocks) return false;
  // Perhaps those that are there for long, and those at a few blocks, leave no gap that is large
  // enough.
  TakenRanges taken;
  const auto add = [&](const Box& box) {
    if (box.begin < planned.end && begin < box.end) taken.emplace_back(box.offset, box.top);
    return true;
  };
  for (size_t level = 1; level < levels_.size(); ++level)
    VisitLevel(levels_[level], begin, planned.end, add);
  for (Tick sample = 0; sample < kSamples; ++sample) {
    const Tick block = first + (last - first) * sample / (kSamples - 1);
    for (int32_t n = heads_[block]; n >= 0; n = nodes_[n].next) add(boxes_[nodes_[n].placed]);
  }
  return !HasGap(taken, planned, begin);
}

bool Arrangement::HasGap(TakenRanges& taken, const PlannedResidence& planned, Tick begin) const {
  bool found = false;
  VisitGaps(taken, planned, begin, [&found](int64_t, int64_t) {
    found = true;
    return false;
  });
  return found;
}

// Visits the gaps [from, top) between `taken` that hold the residence, by rising offset, until
// `visit` returns false.
template <class Visit>
void Arrangement::VisitGaps(TakenRanges& taken, const PlannedResidence& planned, Tick begin,
                            const Visit& visit) const {
  const int64_t capacity = tables_->game.usable_bytes(), bytes = size(planned),
                alignment = tables_->game.hardware().alignment_bytes;
  if (taken.size() > kManyRanges)
    UniteByBits(taken, capacity, alignment);
  else
    std::sort(taken.begin(), taken.end());
  taken.emplace_back(capacity, capacity);
  int64_t free_from = RoundUp(tables_->tables.reserved.Most(begin, planned.end), alignment);
  for (const auto& [from, top] : taken) {
    if (from - free_from >= bytes && !visit(free_from, from)) return;
    free_from = std::max(free_from, RoundUp(top, alignment));
  }
}

bool Arrangement::HasRoom(const PlannedResidence& planned, Tick begin) const {
  if (IsFull(planned, begin)) return false;
  TakenRanges taken;
  VisitPlaced(begin, planned.end, [&](const Box& other) {
    if (other.begin < planned.end && begin < other.end) taken.emplace_back(other.offset, other.top);
    return true;
  });
  return HasGap(taken, planned, begin);
}

// -1: there is no room.
int64_t Arrangement::FindOffset(const PlannedResidence& planned, Tick begin) const {
  if (IsFull(planned, begin)) return -1;
  // What one would take from a prefetch: its bytes, while the channel is free, before it begins.
  struct Loss {
    int64_t offset, top, ps;
  };
  const Tick wanted = std::min(begin, planned.latest_fetch), end = planned.end;
  const std::vector<int64_t>& idle = tables_->tables.fast_idle_before;
  const auto lost = [&idle](Tick from, Tick to) { return from < to ? idle[to] - idle[from] : 0; };
  TakenRanges taken;
  absl::InlinedVector<Loss, 64> losses;
  VisitPlaced(wanted, end, [&](const Box& other) {
    if (other.begin < end && begin < other.end) {
      taken.emplace_back(other.offset, other.top);
    } else if (const int64_t ps = lost(std::max(wanted, other.begin), std::min(begin, other.end)) +
                                  lost(std::max(other.wanted, begin), std::min(other.begin, end));
               ps > 0) {
      losses.push_back({other.offset, other.top, ps});
    }
    return true;
  });
  const int64_t bytes = size(planned), alignment = tables_->game.hardware().alignment_bytes;
  int64_t best = -1, smallest = 0;
  // Exact, so that it doesn't matter in which order the others were placed.
  Int128 least = 0;
  const auto consider = [&](int64_t offset, int64_t gap) {
    Int128 loss = 0;
    for (const Loss& by : losses) {
      const int64_t shared = std::min(by.top, offset + bytes) - std::max(by.offset, offset);
      if (shared > 0) loss += static_cast<Int128>(shared) * by.ps;
    }
    const bool more = loss > least || (loss == least && gap >= smallest);
    if (best >= 0 && more) return;
    best = offset;
    smallest = gap;
    least = loss;
  };
  VisitGaps(taken, planned, begin, [&](int64_t from, int64_t top) {
    consider(from, top - from);
    if (!losses.empty()) consider((top - bytes) / alignment * alignment, top - from);
    return true;
  });
  return best;
}

bool Arrangement::Place(const PlannedResidence& planned, Tick begin, int64_t offset) {
  if (!IsFree(begin, planned.end, offset, offset + size(planned))) {
    offset = FindOffset(planned, begin);
    if (offset < 0) return false;
  }
  PlaceAt(planned, begin, offset);
  return true;
}

void Arrangement::PlaceAt(const PlannedResidence& planned, Tick begin, int64_t offset) {
  const bool fills = !holes_.empty();
  const int32_t r = fills ? holes_.back() : static_cast<int32_t>(placed_.size());
  if (fills) {
    holes_.pop_back();
  } else {
    placed_.emplace_back();
    stamps_.push_back(0);
    boxes_.emplace_back();
  }
  PlannedResidence here = planned;
  here.offset = offset;
  here.begin = begin;
  Put(r, here, NextStamp());
  steps_.push_back({r, fills ? Step::kFilled : Step::kAppended});
}

void Arrangement::Remove(int32_t r) {
  removed_.push_back({placed_[r], stamps_[r]});
  Take(r);
  holes_.push_back(r);
  steps_.push_back({r, Step::kRemoved});
}

void Arrangement::Undo() {
  MG_CHECK(!steps_.empty());
  const Step step = steps_.back();
  steps_.pop_back();
  if (step.kind == Step::kRemoved) {
    holes_.pop_back();
    Put(step.residence, removed_.back().planned, removed_.back().stamp);
    removed_.pop_back();
    return;
  }
  Take(step.residence);
  if (step.kind == Step::kFilled) {
    holes_.push_back(step.residence);
    return;
  }
  placed_.pop_back();
  stamps_.pop_back();
  boxes_.pop_back();
}

void Arrangement::Settle() {
  steps_.clear();
  removed_.clear();
}

void Arrangement::Put(int32_t r, const PlannedResidence& planned, uint64_t stamp) {
  placed_[r] = planned;
  stamps_[r] = stamp;
  boxes_[r] = {std::min(planned.begin, planned.latest_fetch), planned.begin, planned.end,
               planned.offset, planned.offset + size(planned)};
  Link(r);
  preloads_ += planned.preload;
  Serve(r, true);
}

void Arrangement::Take(int32_t r) {
  Serve(r, false);
  preloads_ -= placed_[r].preload;
  Unlink(r);
  placed_[r].buffer = -1;
  stamps_[r] = 0;
  boxes_[r] = {};
}

// The level at which a residence takes few blocks.
const Arrangement::Level& Arrangement::LevelOf(const Box& box) const {
  return *std::find_if(levels_.begin(), levels_.end(), [&box](const Level& level) {
    return ((box.end - 1) >> level.bits) - (box.wanted >> level.bits) < kManyBlocks;
  });
}

void Arrangement::Link(int32_t r) {
  Box& box = boxes_[r];
  for (Tick block = (box.begin + kBlock - 1) / kBlock; block <= (box.end - 1) / kBlock; ++block)
    taken_[block] += box.top - box.offset;
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
    nodes_[n] = {r, heads_[block], -1, box.first_node};
    if (heads_[block] >= 0) nodes_[heads_[block]].previous = n;
    heads_[block] = n;
    ++counts_[block];
    box.first_node = n;
  }
}

void Arrangement::Unlink(int32_t r) {
  const Box& box = boxes_[r];
  for (Tick block = (box.begin + kBlock - 1) / kBlock; block <= (box.end - 1) / kBlock; ++block)
    taken_[block] -= box.top - box.offset;
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

int64_t Arrangement::TakenBytes(Tick tick) const {
  int64_t taken = 0;
  const auto add = [&](const Box& box) {
    if (box.begin <= tick && tick < box.end) taken += box.top - box.offset;
  };
  for (const Level& level : levels_) {
    for (int32_t n = heads_[level.first + (tick >> level.bits)]; n >= 0; n = nodes_[n].next)
      add(boxes_[nodes_[n].placed]);
  }
  return taken;
}

}  // namespace mallocgame
