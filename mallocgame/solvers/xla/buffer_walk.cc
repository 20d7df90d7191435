// Walks the accesses of a buffer in time order. A loop is one use where a stay can serve all of it,
// else it is walked from the inside.
#include "mallocgame/solvers/xla/buffer_walk.h"

#include <algorithm>

#include "mallocgame/base/rounding.h"
#include "mallocgame/solvers/xla/order.h"

namespace mallocgame {
namespace {

// an eviction is best hidden so often, and more often with each retry
constexpr double kPreferredEviction = 2;

// So many begins are tried for one prefetch. XLA tries all; no program of the corpus needs more.
constexpr int kMostBegins = 2000;

}  // namespace

XlaBufferWalk::XlaBufferWalk(const XlaTables& tables, XlaMemory& memory,
                             const std::vector<bool>& in_main, const std::vector<bool>& in_fast,
                             BufferId buffer, int retry, bool last_retry, Proposal& proposal)
    : tables_(tables), memory_(memory), in_main_(in_main), in_fast_(in_fast), buffer_(buffer),
      size_(tables.program.buffer(buffer).size_bytes), copy_ps_(tables.hardware.TransferPs(size_)),
      window_ps_(tables.WindowPs(size_)), retry_(retry), last_retry_(last_retry),
      proposal_(proposal), accesses_(tables.program.accesses_of(buffer)), use_ticks_(UseTicks()),
      reach_(use_ticks_.size()), slices_(SlicesOf()) {
  for (size_t i = reach_.size(); i-- > 0;) {
    const bool goes_on =
        i + 1 < reach_.size() && tables.picker.MayStay(use_ticks_[i], use_ticks_[i + 1]);
    reach_[i] = goes_on ? reach_[i + 1] : i;
  }
}

// To XLA a loop uses what it carries at the end of its body and where it ends, beside the uses
// inside; its entry is none.
std::vector<Tick> XlaBufferWalk::UseTicks() const {
  std::vector<Tick> ticks;
  std::vector<Tick> exits;  // of the loops around, the innermost at the back
  const auto leave = [&](Tick before) {
    for (; !exits.empty() && exits.back() <= before; exits.pop_back())
      ticks.insert(ticks.end(), {exits.back() - 1, exits.back()});
  };
  for (const AccessId id : accesses_) {
    const Access& a = tables_.program.access(id);
    leave(a.tick);
    if (a.kind == AccessKind::kLoopEntry) {
      exits.push_back(tables_.program.loop_at(a.tick).exit);
    } else if (a.kind != AccessKind::kWrite) {
      ticks.push_back(a.tick);
    }
  }
  const Tick end = tables_.program.ticks();
  leave(end);
  if (tables_.program.buffer(buffer_).is_output) ticks.push_back(end - 1);
  return ticks;
}

XlaBufferWalk::Value XlaBufferWalk::InMain(Tick tick) {
  Value value;
  value.defined = value.last_use = tick;
  value.main_from = tick;
  return value;
}

uint32_t XlaBufferWalk::Run() {
  if (accesses_.empty()) return kNoFailure;
  const Buffer& buffer = tables_.program.buffer(buffer_);
  if (buffer.origin == BufferOrigin::kUndefined) {
    // To XLA it has a value from the instruction that allocates it on.
    value_ = Value();
    value_.defined = value_.last_use = tables_.defined[buffer_.index()];
  } else {
    value_ = InMain(0);
  }
  Walk(0, accesses_.size());
  if (buffer.is_output) NeedInMain(tables_.program.ticks() - 1);
  return failures_;
}

void XlaBufferWalk::Walk(size_t first, size_t last) {
  for (size_t i = first; i < last && (failures_ & kMustUndo) == 0;) {
    if (access(i).kind == AccessKind::kLoopEntry) {
      i = WalkLoop(i);
    } else {
      Serve(i++);
    }
  }
}

void XlaBufferWalk::Serve(size_t i) {
  const Access& a = access(i);
  const AccessId id = accesses_[i];
  if (a.kind == AccessKind::kWrite) {
    value_ = Value();
    value_.defined = value_.last_use = a.tick;
    if (in_main_[id.index()]) {
      value_.main_from = a.tick;
    } else {
      value_.written_by = id;
      if (Replaceable(a.tick)) value_.copied_at = a.tick;
    }
    return;
  }
  const bool fast = Allocate(UseAt(i));
  value_.last_use = a.tick;
  if (a.kind != AccessKind::kUpdate) return;
  // The new value is where the old one was.
  const std::optional<int32_t> stay = fast ? value_.stay : std::nullopt;
  value_ = Value();
  value_.defined = value_.last_use = a.tick;
  value_.stay = stay;
  value_.newest_is_stay = fast;
  if (!fast) value_.main_from = a.tick;
}

size_t XlaBufferWalk::WalkLoop(size_t entry) {
  const Program& program = tables_.program;
  const Loop& loop = program.loop_at(access(entry).tick);
  size_t end = entry + 1;
  while (end < accesses_.size() && access(end).tick < loop.exit) ++end;
  const bool writes = access(entry).writes_in_loop;
  if (Allocate(LoopUse(entry, end))) {
    for (size_t i = entry + 1; i < end; ++i)
      proposal_.served.emplace_back(accesses_[i], *value_.stay);
    if (writes) value_.main_from.reset();
    value_.defined = value_.last_use = loop.exit;
    return end;
  }
  if ((failures_ & kMustUndo) != 0) return end;
  // In main memory at the boundary: condition and body each begin and end there.
  for (size_t i = entry + 1; i < end && (failures_ & kMustUndo) == 0;) {
    int32_t part = RegionAt(access(i).tick);
    while (region(part).parent != program.instruction(loop.entry).region)
      part = region(part).parent;
    size_t part_end = i;
    while (part_end < end && access(part_end).tick < region(part).end) ++part_end;
    value_ = InMain(region(part).begin);
    Walk(i, part_end);
    NeedInMain(region(part).end - 1);
    i = part_end;
  }
  value_ = InMain(loop.exit);
  return end;
}

XlaBufferWalk::Use XlaBufferWalk::UseAt(size_t i) const {
  const Access& a = access(i);
  const AccessId id = accesses_[i];
  Use use;
  use.access = id;
  use.tick = use.counts_at = a.tick;
  use.stay_end = a.tick + 1;
  use.may_be_fast = !in_main_[id.index()] && !(a.kind == AccessKind::kRead && Replaceable(a.tick));
  use.saved_ps = tables_.cost.SavedPs(id);
  return use;
}

XlaBufferWalk::Use XlaBufferWalk::LoopUse(size_t entry, size_t end) const {
  const Loop& loop = tables_.program.loop_at(access(entry).tick);
  Use use;
  use.access = accesses_[entry];
  use.tick = loop.entry;
  use.counts_at = loop.entry + 1;
  use.stay_end = loop.exit + 1;
  use.may_be_fast = LoopMayBeFast(entry, end, loop);
  return use;
}

// XLA lets a buffer enter a loop in fast memory if its first use inside is soon. There it may leave
// fast memory and come back inside the loop. Our plans can't say that, so all pauses inside count.
bool XlaBufferWalk::LoopMayBeFast(size_t entry, size_t end, const Loop& loop) const {
  Tick last = loop.entry;
  for (size_t i = entry; i < end; ++i) {
    if (in_main_[accesses_[i].index()] || !tables_.picker.MayStay(last, access(i).tick))
      return false;
    last = access(i).tick;
  }
  return tables_.picker.MayStay(last, loop.exit);
}

bool XlaBufferWalk::Replaceable(Tick copy) const {
  return CanBeReplaced(tables_.program, copy) &&
         !in_fast_[tables_.program.instruction(copy).first_access];
}

// What failed on the way counts only for a use that ends in main memory.
bool XlaBufferWalk::Allocate(const Use& use) {
  const uint32_t before = failures_;
  if (!Place(use)) return false;
  failures_ = before;
  return true;
}

bool XlaBufferWalk::Place(const Use& use) {
  if (use.may_be_fast && value_.copied_at && Prefetch(use, 0, value_.copied_at)) {
    proposal_.served.emplace_back(value_.written_by, *value_.stay);
    proposal_.served.emplace_back(use.access, *value_.stay);
    value_.defined = use.tick;
    value_.copied_at.reset();
    return true;
  }
  value_.copied_at.reset();
  if (use.may_be_fast && Stays(use)) {
    proposal_.served.emplace_back(use.access, *value_.stay);
    return true;
  }
  NeedInMain(use.tick);
  if ((failures_ & kMustUndo) != 0) return false;
  // XLA goes on from the memory that had to serve a use, so the next one needs a copy.
  if (in_main_[use.access.index()]) value_.newest_is_stay = false;
  if (use.may_be_fast && Prefetch(use, *value_.main_from, std::nullopt)) {
    proposal_.served.emplace_back(use.access, *value_.stay);
    return true;
  }
  return false;
}

// Serves the use from fast memory without a copy, if the value is there already or is made there.
bool XlaBufferWalk::Stays(const Use& use) {
  const bool undecided = !value_.stay && !value_.main_from;
  if (!undecided && !value_.newest_is_stay) return false;
  if (!tables_.picker.MayStay(value_.last_use, use.counts_at)) {
    failures_ |= kPauseTooLong;
    return false;
  }
  if (undecided) {
    if (!StayIsLegal(value_.defined, use.stay_end)) return false;
    Chunk chunk = {value_.defined, use.stay_end, 0, size_};
    if (!BestFit(chunk, use)) {
      failures_ |= kOutOfMemory;
      return false;
    }
    value_.stay = memory_.AddStay(proposal_, buffer_, chunk);
    value_.newest_is_stay = true;
    if (value_.written_by.valid()) proposal_.served.emplace_back(value_.written_by, *value_.stay);
    return true;
  }
  Stay& stay = proposal_.stays[*value_.stay];
  if (!StayIsLegal(stay.begin, std::max(stay.end, use.stay_end))) return false;
  if (!memory_.heap.IsFree(stay.end, use.stay_end, memory_.heap.chunk(stay.chunk).offset, size_)) {
    failures_ |= kOutOfMemory;
    return false;
  }
  memory_.ExtendStay(stay, use.stay_end);
  return true;
}

// Brings the value to main memory: one that has no place yet is made there, one in fast memory is
// evicted.
void XlaBufferWalk::NeedInMain(Tick latest) {
  if (value_.main_from) return;
  if (!value_.stay) {
    value_.main_from = value_.defined;
  } else if (!Eviction(latest)) {
    failures_ |= kMustUndo;
  } else {
    value_.newest_is_stay = false;
  }
}

bool XlaBufferWalk::Eviction(Tick latest) {
  Stay& stay = proposal_.stays[*value_.stay];
  const int64_t offset = memory_.heap.chunk(stay.chunk).offset;
  const Tick begin = value_.defined + 1;
  const Tick scope_end = tables_.program.scope_end(stay.begin);
  latest = std::min(latest, scope_end);
  if (begin > latest || (begin >= scope_end && begin < tables_.program.ticks())) {
    failures_ |= kOutOfCopies;
    return false;
  }
  const double wanted_ps = (1 + 2 * retry_) * kPreferredEviction * static_cast<double>(window_ps_);
  Tick end =
      std::min(std::max(tables_.picker.HiddenBy(value_.defined, wanted_ps), stay.end - 1), latest);
  // XLA holds the bytes until after the tick at which the copy is done.
  const Tick hold = std::min(end + 1, scope_end);
  if (hold > stay.end) {
    const Tick free_until = memory_.heap.FreeUntil(stay.end, hold, offset, size_);
    // XLA tries the end that it prefers, and then edges only.
    if (free_until < hold) end = memory_.LastEdge(stay.end, free_until).value_or(stay.end - 1);
  }
  if (end < begin) {
    failures_ |= kOutOfCopies;
    return false;
  }
  // XLA's copy may end inside a loop that it doesn't begin in, and holds its bytes until then. In a
  // plan, and in the program, it is done where the loop begins.
  const Tick window_end = tables_.picker.WindowEndFrom(begin, end);
  const bool ends_in_loop =
      window_end < end && window_end > begin && region(RegionAt(window_end)).loop >= 0;
  if (!ends_in_loop) end = window_end;
  const Tick held = std::max(stay.end, std::min(end + 1, scope_end));
  const Tick stay_end = ends_in_loop ? std::max(stay.end, window_end - 1) : held;
  if (end > latest || !StayIsLegal(stay.begin, stay_end) ||
      !memory_.heap.IsFree(stay.end, held, offset, size_) ||
      memory_.evictions.windows.Overlapping(begin, end) >= memory_.evictions.limit) {
    failures_ |= kOutOfCopies;
    return false;
  }
  const int64_t work_ps = last_retry_ ? 0 : copy_ps_;
  if (!memory_.evictions.resource.HasRoom(begin, end, work_ps)) {
    failures_ |= kOutOfService;
    return false;
  }
  stay.end = stay_end;
  memory_.heap.Extend(stay.chunk, held);
  memory_.AddCopy(proposal_, CopyKind::kEviction, *value_.stay, begin, end, work_ps);
  value_.main_from = end;
  return true;
}

bool XlaBufferWalk::Prefetch(const Use& use, Tick from, std::optional<Tick> replaces) {
  const Tick end = tables_.picker.WindowEnd(use.tick);
  if (end == 0 || (replaces && RegionAt(end - 1) != RegionAt(*replaces))) return false;
  const Tick room = memory_.heap.RoomFrom(from + 1, use.stay_end, size_);
  if (room > use.tick) {
    failures_ |= kOutOfMemory;
    return false;
  }
  const bool in_slices = slices_.parts > 1;
  // Slices may begin before there is room for all of them.
  const Tick earliest = in_slices ? from : std::max(from, room - 1);
  IntervalPicker::Candidates begins =
      tables_.picker.Begins(earliest, end, window_ps_, use.saved_ps);
  if (!begins.latest()) {
    failures_ |= kWindowTooShort;
    return false;
  }
  Chunk latest = {*begins.latest() + 1, use.stay_end, 0, size_};
  if (!BestFit(latest, use)) {
    failures_ |= kOutOfMemory;
    return false;
  }
  std::optional<Chunk> whole;     // the first begin at which a prefetch in one piece is possible
  std::optional<Tick> no_memory;  // there are no bytes from this begin, or an earlier one, on
  for (int tries = 0; tries < kMostBegins; ++tries) {
    const std::optional<Tick> s = begins.Next();
    if (!s) break;
    const Tick begin = *s + 1;
    if (no_memory && begin <= *no_memory) {
      failures_ |= kOutOfMemory;
      return false;
    }
    if (!StayIsLegal(begin, use.stay_end)) continue;
    if (in_slices) {
      const uint32_t failure = PrefetchInSlices(use, *s, end, replaces);
      if (failure == kNoFailure) return true;
      failures_ |= failure & ~kSameBegins;
      if (failure == kOutOfMemory) no_memory = std::max(no_memory.value_or(0), begin);
    }
    if (whole) continue;
    Chunk chunk = {begin, use.stay_end, 0, size_};
    if (memory_.prefetches.windows.Overlapping(*s, end) >= memory_.prefetches.limit) {
      failures_ |= kOutOfCopies;
    } else if (!memory_.prefetches.resource.HasRoom(begin, end, copy_ps_)) {
      failures_ |= kOutOfService;
    } else if (!BestFit(chunk, use)) {
      failures_ |= kOutOfMemory;
      if (!in_slices) no_memory = std::max(no_memory.value_or(0), begin);
    } else {
      whole = chunk;
      if (!in_slices) break;
    }
  }
  if (!whole) return false;
  value_.stay = memory_.AddStay(proposal_, buffer_, *whole);
  value_.newest_is_stay = true;
  memory_.AddCopy(proposal_, CopyKind::kPrefetch, *value_.stay, whole->begin, end, copy_ps_)
      .replaces = replaces;
  return true;
}

// Each slice is a copy of its own, and takes its bytes from its own begin on.
uint32_t XlaBufferWalk::PrefetchInSlices(const Use& use, Tick s, Tick end,
                                         std::optional<Tick> replaces) {
  Chunk chunk = slices_;
  const std::vector<Tick> begins = tables_.picker.SliceBegins(s, end, chunk.parts);
  if (begins.front() == begins.back()) return kSameBegins;
  chunk.begin = s + 1;
  chunk.end = use.stay_end;
  for (int part = 0; part < chunk.parts; ++part) chunk.part_begin[part] = begins[part] + 1;
  CopyLane& lane = memory_.prefetches;
  for (int part = 0; part < chunk.parts; ++part) {
    if (lane.windows.Overlapping(begins[part], end) + part >= lane.limit) return kOutOfCopies;
  }
  const auto in_time = [&] {
    std::vector<CopyResource::Key> booked;
    bool fits = true;
    for (int part = 0; part < chunk.parts && fits; ++part) {
      const auto work_ps = static_cast<int64_t>(
          tables_.options.slice_work *
          static_cast<double>(tables_.hardware.TransferPs(chunk.PartBytes(part))));
      fits = lane.resource.HasRoom(chunk.PartBegin(part), end, work_ps);
      if (fits) booked.push_back(lane.resource.Add(chunk.PartBegin(part), end, work_ps));
    }
    for (const CopyResource::Key& key : booked) lane.resource.Remove(key);
    return fits;
  };
  // First as if the smallest slice were the first.
  for (int part = 0; part < chunk.parts; ++part)
    chunk.part_place[part] = static_cast<uint8_t>(part == 0 ? chunk.parts - 1 : part - 1);
  if (!in_time()) return kOutOfService;
  if (!BestFit(chunk, use)) return kOutOfMemory;
  if (!in_time()) return kOutOfService;
  value_.stay = memory_.AddStay(proposal_, buffer_, chunk);
  value_.newest_is_stay = true;
  for (int part = 0; part < chunk.parts; ++part) {
    const int64_t part_ps = tables_.hardware.TransferPs(chunk.PartBytes(part));
    memory_
        .AddCopy(proposal_, CopyKind::kPrefetch, *value_.stay, chunk.PartBegin(part), end, part_ps,
                 part)
        .replaces = replaces;
  }
  return kNoFailure;
}

bool XlaBufferWalk::BestFit(Chunk& chunk, const Use& use) const {
  std::optional<Chunk> best;
  if (Chunk first = chunk; memory_.heap.BestFit(first)) best = first;
  if (!best) return false;
  // The uses from this one on that might be reached without a copy; those before `low` are.
  size_t low = static_cast<size_t>(
      std::lower_bound(use_ticks_.begin(), use_ticks_.end(), use.counts_at) - use_ticks_.begin());
  size_t high = low < reach_.size() ? reach_[low] + 1 : low;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    Chunk longer = chunk;
    longer.end = std::max(use.stay_end, use_ticks_[middle] + 1);
    if (memory_.heap.BestFit(longer)) {
      best = longer;
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  best->end = chunk.end;
  chunk = *best;
  return true;
}

// The slices of this buffer, with sizes but no times. One part: it is not sliced.
Chunk XlaBufferWalk::SlicesOf() const {
  Chunk chunk;
  chunk.size = size_;
  const XlaOptions& options = tables_.options;
  if (size_ < options.min_sliced_bytes || options.max_slices < 2) return chunk;
  const int64_t known = tables_.program.buffer(buffer_).unit_bytes;
  const int64_t unit = known > 0 ? known : tables_.hardware.alignment_bytes;
  const int64_t units = DivideUp(size_, unit);
  const int64_t each = options.slice_bytes > 0 ? std::max<int64_t>(1, options.slice_bytes / unit)
                                               : DivideUp(units, options.max_slices);
  if (each >= units || DivideUp(units, each) > kMaxParts) return chunk;
  chunk.part_size = each * unit;
  chunk.parts = static_cast<int>(DivideUp(units, each));
  return chunk;
}

// A stay ends in the loop or branch that it begins in, and a loop that it enters it holds to its
// end.
bool XlaBufferWalk::StayIsLegal(Tick begin, Tick end) const {
  if (end > tables_.program.scope_end(begin)) return false;
  for (int32_t g = RegionAt(end - 1); g >= 0 && region(g).begin > begin; g = region(g).parent) {
    if (region(g).loop >= 0 && end < tables_.program.loops()[region(g).loop].exit) return false;
  }
  return true;
}

}  // namespace mallocgame
