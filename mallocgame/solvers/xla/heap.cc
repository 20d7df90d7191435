// There are two trees over ticks. One finds the chunks that overlap an interval. The other knows
// how many bytes are used at most, so that most hopeless questions end early.
#include "mallocgame/solvers/xla/heap.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <tuple>
#include <utility>

#include "mallocgame/base/error.h"
#include "mallocgame/base/rounding.h"

namespace mallocgame {
namespace {

// Bytes [begin, end) of fast memory.
struct ByteRange {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
};

std::vector<int64_t> Clamped(absl::Span<const int64_t> reserved, int64_t capacity) {
  std::vector<int64_t> clamped(reserved.begin(), reserved.end());
  for (int64_t& bytes : clamped) bytes = std::clamp<int64_t>(bytes, 0, capacity);
  return clamped;
}

}  // namespace

ChunkHeap::ChunkHeap(absl::Span<const int64_t> reserved, int64_t capacity, int64_t alignment)
    : capacity_(capacity), alignment_(alignment), ticks_(static_cast<Tick>(reserved.size())),
      reserved_(Clamped(reserved, capacity)) {
  leaves_ = std::bit_ceil(std::max<size_t>(1, reserved.size()));
  begins_.resize(leaves_);
  last_end_.assign(2 * leaves_, 0);
  used_.assign(2 * leaves_, 0);
  used_below_.assign(2 * leaves_, 0);
  const absl::Span<const int64_t> taken = reserved_.by_tick();
  if (taken.empty()) return;
  for (size_t t = 0; t < taken.size(); ++t)
    used_[leaves_ + t] = used_below_[leaves_ + t] = taken[t];
  for (size_t node = leaves_ - 1; node > 0; --node)
    used_below_[node] = std::max(used_below_[2 * node], used_below_[2 * node + 1]);
}

int64_t ChunkHeap::Aligned(int64_t offset) const {
  return RoundUp(std::max<int64_t>(0, offset), alignment_);
}

void ChunkHeap::SetLastEnd(Tick begin) {
  const size_t at = begin;
  Tick last = 0;
  for (const int32_t id : begins_[at]) last = std::max(last, chunk(id).end);
  size_t node = leaves_ + at;
  last_end_[node] = last;
  for (node /= 2; node > 0; node /= 2)
    last_end_[node] = std::max(last_end_[2 * node], last_end_[2 * node + 1]);
}

void ChunkHeap::AddUse(size_t node, size_t node_begin, size_t node_size, Tick begin, Tick end,
                       int64_t bytes) {
  const size_t from = begin, to = end;
  if (to <= node_begin || node_begin + node_size <= from) return;
  if (from <= node_begin && node_begin + node_size <= to) {
    used_[node] += bytes;
    used_below_[node] += bytes;
    return;
  }
  const size_t half = node_size / 2;
  AddUse(2 * node, node_begin, half, begin, end, bytes);
  AddUse(2 * node + 1, node_begin + half, half, begin, end, bytes);
  used_below_[node] = used_[node] + std::max(used_below_[2 * node], used_below_[2 * node + 1]);
}

int64_t ChunkHeap::MostUsed(size_t node, size_t node_begin, size_t node_size, Tick begin,
                            Tick end) const {
  const size_t from = begin, to = end;
  if (to <= node_begin || node_begin + node_size <= from) return 0;
  if (from <= node_begin && node_begin + node_size <= to) return used_below_[node];
  const size_t half = node_size / 2;
  return used_[node] + std::max(MostUsed(2 * node, node_begin, half, begin, end),
                                MostUsed(2 * node + 1, node_begin + half, half, begin, end));
}

void ChunkHeap::AddUse(const Chunk& chunk, int sign) {
  for (int part = 0; part < chunk.parts; ++part)
    AddUse(1, 0, leaves_, chunk.PartBegin(part), chunk.end, sign * chunk.PartBytes(part));
}

int32_t ChunkHeap::Add(const Chunk& added) {
  auto id = static_cast<int32_t>(chunks_.size());
  if (unused_.empty()) {
    chunks_.push_back(added);
  } else {
    id = unused_.back();
    unused_.pop_back();
    chunks_[id] = added;
  }
  begins_[added.begin].push_back(id);
  SetLastEnd(added.begin);
  AddUse(added, 1);
  return id;
}

void ChunkHeap::Remove(int32_t id) {
  Chunk& gone = chunks_[id];
  std::vector<int32_t>& ids = begins_[gone.begin];
  ids.erase(std::find(ids.begin(), ids.end(), id));
  SetLastEnd(gone.begin);
  AddUse(gone, -1);
  gone = Chunk();
  unused_.push_back(id);
}

void ChunkHeap::Extend(int32_t id, Tick end) {
  Chunk& longer = chunks_[id];
  if (end <= longer.end) return;
  AddUse(1, 0, leaves_, longer.end, end, longer.size);
  longer.end = end;
  SetLastEnd(longer.begin);
}

template <class Visit>
void ChunkHeap::VisitOverlaps(size_t node, size_t node_begin, size_t node_size, Tick begin,
                              Tick end, const Visit& visit) const {
  if (static_cast<size_t>(end) <= node_begin || last_end_[node] <= begin) return;
  if (node_size > 1) {
    VisitOverlaps(2 * node, node_begin, node_size / 2, begin, end, visit);
    VisitOverlaps(2 * node + 1, node_begin + node_size / 2, node_size / 2, begin, end, visit);
    return;
  }
  for (const int32_t id : begins_[node_begin]) {
    if (chunk(id).end > begin) visit(chunk(id));
  }
}

// Says whether each part finds a place at this offset that is free by the time at which it is
// taken, and gives it that place. `before`: what is taken before the last part is, but no longer.
bool ChunkHeap::FitsAt(Chunk& wanted, int64_t offset, absl::Span<const Block> before) const {
  // For each place, the first tick from which on it is free.
  std::array<Tick, kMaxParts> free_from = {};
  for (const Block& block : before) {
    if (block.high <= offset || block.low >= offset + wanted.size) continue;
    const int64_t low = std::max<int64_t>(0, block.low - offset) / wanted.part_size;
    const int64_t high = std::min(block.high - offset, wanted.size) - 1;
    for (int64_t place = low; place <= high / wanted.part_size; ++place)
      free_from[place] = std::max(free_from[place], block.end);
  }
  // Of the orders of begins over places that fit, the first: each place takes the earliest begin
  // such that the places above it still find theirs. What is left fits if it does so in the order
  // of need.
  std::array<bool, kMaxParts> used = {};
  const auto rest_fits = [&](int from_place) {
    std::array<Tick, kMaxParts> needs = {};
    const int count = wanted.parts - from_place;
    std::copy(free_from.begin() + from_place, free_from.begin() + wanted.parts, needs.begin());
    std::sort(needs.begin(), needs.begin() + count);
    int next = 0;
    for (int part = 0; part < wanted.parts; ++part) {
      if (used[part]) continue;
      if (wanted.part_begin[part] < needs[next++]) return false;
    }
    return true;
  };
  if (!rest_fits(0)) return false;
  for (int place = 0; place < wanted.parts; ++place) {
    for (int part = 0; part < wanted.parts; ++part) {
      if (used[part] || wanted.part_begin[part] < free_from[place]) continue;
      used[part] = true;
      if (rest_fits(place + 1)) {
        wanted.part_place[part] = static_cast<uint8_t>(place);
        break;
      }
      used[part] = false;
    }
  }
  wanted.offset = offset;
  return true;
}

bool ChunkHeap::BestFit(Chunk& wanted) const {
  const Tick full = wanted.FullFrom();
  if (wanted.begin >= wanted.end ||
      MostUsed(1, 0, leaves_, full, wanted.end) > capacity_ - wanted.size)
    return false;
  blocked_.clear();
  before_.clear();
  VisitOverlaps(wanted.begin, wanted.end, [&](const Chunk& c) {
    for (int part = 0; part < c.parts; ++part) {
      if (c.PartBegin(part) >= wanted.end) continue;
      const int64_t low = c.offset + c.PartOffset(part);
      (c.end > full ? blocked_ : before_).push_back({low, low + c.PartBytes(part), c.end});
    }
  });
  if (const absl::Span<const int64_t> reserved = reserved_.by_tick(); !reserved.empty()) {
    int64_t most = 0;
    for (Tick t = full; t-- > wanted.begin;) {
      if (reserved[t] > most) {
        most = reserved[t];
        before_.push_back({0, most, t + 1});
      }
    }
  }
  std::sort(blocked_.begin(), blocked_.end(),
            [](const Block& a, const Block& b) { return a.low < b.low; });
  // The free ranges that are large enough.
  std::vector<ByteRange> ranges;
  int64_t free_from = Aligned(reserved_.Most(full, wanted.end));
  for (const Block& block : blocked_) {
    if (block.low - free_from >= wanted.size) ranges.push_back({free_from, block.low});
    free_from = std::max(free_from, Aligned(block.high));
  }
  if (free_from <= capacity_ - wanted.size) ranges.push_back({free_from, capacity_});
  const auto smaller = [this](const ByteRange& a, const ByteRange& b) {
    const auto key = [this](const ByteRange& range) {
      const bool endless = range.end == capacity_;
      return std::pair(endless ? std::numeric_limits<int64_t>::max() : range.size(), range.begin);
    };
    return key(a) < key(b);
  };
  if (wanted.parts == 1 || before_.empty()) {
    const auto best = std::min_element(ranges.begin(), ranges.end(), smaller);
    return best != ranges.end() && FitsFrom(wanted, best->begin, best->end);
  }
  std::sort(ranges.begin(), ranges.end(), smaller);
  return std::any_of(ranges.begin(), ranges.end(), [&](const ByteRange& range) {
    return FitsFrom(wanted, range.begin, range.end);
  });
}

bool ChunkHeap::FitsFrom(Chunk& wanted, int64_t first, int64_t end) const {
  if (wanted.parts == 1 || before_.empty()) {
    wanted.offset = first;
    for (int part = 0; part < wanted.parts; ++part)
      wanted.part_place[part] = static_cast<uint8_t>(part);
    return true;
  }
  // The lowest offset that fits is one at which a part begins where something ends.
  std::vector<int64_t> offsets = {first};
  for (const Block& block : before_) {
    for (int place = 0; place < wanted.parts; ++place) {
      const int64_t offset = Aligned(block.high - place * wanted.part_size);
      if (offset > first && offset <= end - wanted.size) offsets.push_back(offset);
    }
  }
  std::sort(offsets.begin(), offsets.end());
  offsets.erase(std::unique(offsets.begin(), offsets.end()), offsets.end());
  return std::any_of(offsets.begin(), offsets.end(),
                     [&](int64_t offset) { return FitsAt(wanted, offset, before_); });
}

Tick ChunkHeap::FreeUntil(Tick begin, Tick end, int64_t offset, int64_t size) const {
  Tick until = end;
  VisitOverlaps(begin, end, [&](const Chunk& c) {
    for (int part = 0; part < c.parts; ++part) {
      const int64_t low = c.offset + c.PartOffset(part), bytes = c.PartBytes(part);
      if (low < offset + size && offset < low + bytes)
        until = std::min(until, std::max(begin, c.PartBegin(part)));
    }
  });
  return reserved_.FirstAbove(begin, until, offset);
}

bool ChunkHeap::IsFree(Tick begin, Tick end, int64_t offset, int64_t size) const {
  if (begin >= end) return true;
  if (reserved_.Most(begin, end) > offset) return false;
  return MostUsed(1, 0, leaves_, begin, end) <= capacity_ - size &&
         FreeUntil(begin, end, offset, size) == end;
}

Tick ChunkHeap::RoomFrom(Tick least, Tick end, int64_t size) const {
  Tick low = std::max(least, 0), high = end;
  while (low < high) {
    const Tick middle = low + (high - low) / 2;
    if (MostUsed(1, 0, leaves_, middle, end) <= capacity_ - size) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

bool ChunkHeap::Repack(absl::FunctionRef<int32_t(Tick)> time) {
  std::vector<int32_t> order;
  for (size_t id = 0; id < chunks_.size(); ++id) {
    if (chunks_[id].size > 0) order.push_back(static_cast<int32_t>(id));
  }
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    const auto key = [&](int32_t id) {
      const Chunk& c = chunk(id);
      return std::tuple(time(c.begin) - time(c.end - 1), -c.size, id);
    };
    return key(a) < key(b);
  });
  const std::vector<int64_t> nothing(ticks_, 0);
  const absl::Span<const int64_t> reserved = reserved_.by_tick();
  ChunkHeap packed(reserved.empty() ? nothing : reserved, capacity_, alignment_);
  std::vector<Chunk> moved = chunks_;
  for (const int32_t id : order) {
    if (!packed.BestFit(moved[id])) return false;
    packed.Add(moved[id]);
  }
  chunks_ = std::move(moved);
  return true;
}

}  // namespace mallocgame
