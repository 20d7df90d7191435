// Only keeps the books; the callers decide.
#include "mallocgame/solvers/xla/memory.h"

#include <algorithm>

namespace mallocgame {

namespace {

// XLA counts the window of a slice from one tick earlier on than that of a whole copy.
Tick WindowBegin(Tick begin, std::optional<int> part) {
  return part ? std::max(0, begin - 1) : begin;
}

}  // namespace

void WindowCounter::Remove(Tick begin, Tick end) {
  const auto found = windows_.find({begin, end});
  if (found != windows_.end() && found->second > 0) Count(begin, end, -1);
}

void WindowCounter::Count(Tick begin, Tick end, int32_t count) {
  windows_[{begin, end}] += count;
  const auto add = [count](std::vector<int32_t>& tree, Tick at) {
    for (size_t i = at + 1; i < tree.size(); i += i & -i) tree[i] += count;
  };
  add(begins_, begin);
  add(ends_, end);
}

int32_t WindowCounter::Sum(const std::vector<int32_t>& tree, Tick up_to) {
  int32_t sum = 0;
  if (up_to < 0) return 0;
  for (auto i = std::min(static_cast<size_t>(up_to) + 1, tree.size() - 1); i > 0; i &= i - 1)
    sum += tree[i];
  return sum;
}

XlaMemory::XlaMemory(absl::Span<const int64_t> elapsed_ps, absl::Span<const int64_t> reserved,
                     int64_t capacity, const Hardware& hardware)
    : heap(reserved, capacity, hardware.alignment_bytes),
      prefetches(elapsed_ps, hardware.max_outstanding_prefetches),
      evictions(elapsed_ps, hardware.max_outstanding_evictions),
      is_edge_(elapsed_ps.size() + 2, false) {}

int32_t XlaMemory::AddStay(Proposal& proposal, BufferId buffer, const Chunk& chunk) {
  proposal.stays.push_back({buffer, chunk.begin, chunk.end, heap.Add(chunk)});
  return static_cast<int32_t>(proposal.stays.size()) - 1;
}

void XlaMemory::ExtendStay(Stay& stay, Tick end) {
  heap.Extend(stay.chunk, end);
  stay.end = std::max(stay.end, end);
}

StayCopy& XlaMemory::AddCopy(Proposal& proposal, CopyKind kind, int32_t stay, Tick begin, Tick end,
                             int64_t work_ps, std::optional<int> part) {
  CopyLane& own = lane(kind);
  own.windows.Add(WindowBegin(begin, part), end);
  return proposal.copies.emplace_back(StayCopy{kind, stay, begin, end, false, std::nullopt,
                                               own.resource.Add(begin, end, work_ps), part});
}

void XlaMemory::Undo(Proposal& proposal) {
  for (const StayCopy& copy : proposal.copies) {
    // XLA looks for the window of a slice where that of a whole copy would be. It is mostly not
    // found there, so that slices count on after they were undone.
    lane(copy.kind).windows.Remove(copy.begin, copy.end);
    lane(copy.kind).resource.Remove(copy.key);
  }
  for (const Stay& stay : proposal.stays) heap.Remove(stay.chunk);
  proposal = Proposal();
}

void XlaMemory::AddEdges(const Proposal& proposal) {
  for (const Stay& stay : proposal.stays) {
    if (stay.begin > 0) is_edge_[stay.begin - 1] = true;
    is_edge_[heap.chunk(stay.chunk).end] = true;
  }
}

std::optional<Tick> XlaMemory::LastEdge(Tick begin, Tick end) const {
  while (end > begin) {
    if (is_edge_[--end]) return end;
  }
  return std::nullopt;
}

}  // namespace mallocgame
