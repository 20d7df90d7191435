// There are two trees over ticks. One finds the chunks that overlap an interval. The other knows
// how many bytes are used at most, so that most hopeless questions end early.
#include "mallocgame/solvers/xla/heap.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <tuple>

#include "mallocgame/base/rounding.h"

namespace mallocgame {

ChunkHeap::ChunkHeap(absl::Span<const int64_t> reserved, int64_t capacity, int64_t alignment)
    : capacity_(capacity), alignment_(alignment), ticks_(static_cast<Tick>(reserved.size())) {
  leaves_ = std::bit_ceil(std::max<size_t>(1, reserved.size()));
  begins_.resize(leaves_);
  last_end_.assign(2 * leaves_, 0);
  used_.assign(2 * leaves_, 0);
  used_below_.assign(2 * leaves_, 0);
  if (std::all_of(reserved.begin(), reserved.end(), [](int64_t bytes) { return bytes == 0; }))
    return;
  std::vector<int64_t> row(reserved.begin(), reserved.end());
  for (int64_t& bytes : row) bytes = std::clamp<int64_t>(bytes, 0, capacity_);
  for (size_t t = 0; t < row.size(); ++t) used_[leaves_ + t] = used_below_[leaves_ + t] = row[t];
  for (size_t node = leaves_ - 1; node > 0; --node)
    used_below_[node] = std::max(used_below_[2 * node], used_below_[2 * node + 1]);
  reserved_.push_back(std::move(row));
  for (size_t width = 2; width <= reserved.size(); width *= 2) {
    const std::vector<int64_t>& half = reserved_.back();
    std::vector<int64_t> whole(reserved.size() - width + 1);
    for (size_t t = 0; t < whole.size(); ++t) whole[t] = std::max(half[t], half[t + width / 2]);
    reserved_.push_back(std::move(whole));
  }
}

int64_t ChunkHeap::MostReserved(Tick begin, Tick end) const {
  if (reserved_.empty()) return 0;
  const size_t level = std::bit_width(static_cast<unsigned>(end - begin)) - 1;
  const std::vector<int64_t>& row = reserved_[level];
  return std::max(row[begin], row[end - (size_t{1} << level)]);
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
  for (int part = 0; part < chunk.parts; ++part) {
    const int64_t bytes = chunk.BytesOf(part + 1) - chunk.BytesOf(part);
    AddUse(1, 0, leaves_, chunk.PartBegin(part), chunk.end, sign * bytes);
  }
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

// Another chunk rules out a range of offsets. If its bytes [low, high) are taken before this chunk
// ends, and `own` bytes of this one are taken before that one ends, they are those between low -
// own and high, which shift down by the rest if this chunk is taken downwards.
std::optional<int64_t> ChunkHeap::BestFit(const Chunk& wanted) const {
  const Tick full = wanted.PartBegin(wanted.parts - 1);
  if (wanted.begin >= wanted.end ||
      MostUsed(1, 0, leaves_, full, wanted.end) > capacity_ - wanted.size)
    return std::nullopt;
  blocked_.clear();
  VisitOverlaps(wanted.begin, wanted.end, [&](const Chunk& c) {
    const int64_t taken = c.BytesOf(c.PartsBefore(wanted.end)),
                  own = wanted.BytesOf(wanted.PartsBefore(c.end));
    const int64_t low = c.downwards ? c.offset + c.size - taken : c.offset;
    const int64_t shift = wanted.downwards ? wanted.size - own : 0;
    blocked_.emplace_back(low - own - shift, low + taken - shift);
  });
  std::sort(blocked_.begin(), blocked_.end());
  const auto aligned = [this](int64_t offset) {
    return RoundUp(std::max<int64_t>(0, offset), alignment_);
  };
  int64_t free_from = aligned(MostReserved(wanted.begin, wanted.end));
  int64_t best = -1, best_room = 0;
  for (const auto& [from, to] : blocked_) {
    const int64_t room = from - free_from;
    if (room >= 0 && (best < 0 || room < best_room)) best = free_from, best_room = room;
    free_from = std::max(free_from, aligned(to));
  }
  if (best < 0) best = free_from;
  if (best > capacity_ - wanted.size) return std::nullopt;
  return best;
}

Tick ChunkHeap::FreeUntil(Tick begin, Tick end, int64_t offset, int64_t size) const {
  Tick until = end;
  VisitOverlaps(begin, end, [&](const Chunk& c) {
    for (int part = 0; part < c.parts; ++part) {
      const int64_t low = c.offset + c.PartOffset(part),
                    bytes = c.BytesOf(part + 1) - c.BytesOf(part);
      if (low < offset + size && offset < low + bytes)
        until = std::min(until, std::max(begin, c.PartBegin(part)));
    }
  });
  if (!reserved_.empty()) {
    for (Tick t = begin; t < until; ++t) {
      if (reserved_[0][t] > offset) until = t;
    }
  }
  return until;
}

bool ChunkHeap::IsFree(Tick begin, Tick end, int64_t offset, int64_t size) const {
  if (begin >= end) return true;
  if (MostReserved(begin, end) > offset) return false;
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

bool ChunkHeap::Repack() {
  std::vector<int32_t> order;
  for (size_t id = 0; id < chunks_.size(); ++id) {
    if (chunks_[id].size > 0) order.push_back(static_cast<int32_t>(id));
  }
  std::sort(order.begin(), order.end(), [this](int32_t a, int32_t b) {
    const auto key = [this](int32_t id) {
      return std::tuple(chunk(id).begin - chunk(id).end, -chunk(id).size, id);
    };
    return key(a) < key(b);
  });
  std::vector<int64_t> no_reserve(ticks_, 0);
  ChunkHeap packed(reserved_.empty() ? no_reserve : reserved_[0], capacity_, alignment_);
  std::vector<int64_t> offsets(chunks_.size());
  for (const int32_t id : order) {
    Chunk moved = chunk(id);
    const std::optional<int64_t> offset = packed.BestFit(moved);
    if (!offset) return false;
    offsets[id] = moved.offset = *offset;
    packed.Add(moved);
  }
  for (const int32_t id : order) chunks_[id].offset = offsets[id];
  return true;
}

}  // namespace mallocgame
