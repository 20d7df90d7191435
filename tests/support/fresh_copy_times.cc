#include "tests/support/fresh_copy_times.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "mallocgame/base/rounding.h"

namespace mallocgame::testing {
namespace {

constexpr int64_t kSlices = 4;               // a prefetch has at least so many slices,
constexpr int64_t kMinSliceBytes = 1 << 20;  // unless they would be smaller than this

// Sorts indices by a tick, then by themselves.
uint64_t Key(Tick tick, int32_t index) {
  return static_cast<uint64_t>(tick) << 32 | static_cast<uint32_t>(index);
}
int32_t IndexOf(uint64_t key) { return static_cast<int32_t>(key & 0xffffffff); }

}  // namespace

int64_t FreshCopyTimes::Run(const Arrangement& arrangement) {
  arrangement_ = &arrangement;
  tables_ = &arrangement.tables();
  MakeTransfers();
  return Play();
}

void FreshCopyTimes::MakeTransfers() {
  const auto residences = static_cast<int32_t>(arrangement_->placed().size());
  transfers_.clear();
  waits_.clear();
  eviction_of_.assign(residences, -1);
  by_need_.clear();
  by_end_.clear();
  leaving_.clear();
  for (int32_t r = 0; r < residences; ++r) {
    const PlannedResidence& planned = placed(r);
    by_need_.push_back(Key(planned.need, r));
    by_end_.push_back(Key(planned.end, r));
    if (planned.eviction_deadline >= 0) {
      AddEviction(r);
      leaving_.push_back(by_end_.back());
    }
  }
  std::sort(by_need_.begin(), by_need_.end());
  std::sort(by_end_.begin(), by_end_.end());
  std::sort(leaving_.begin(), leaving_.end());
  for (int32_t r = 0; r < residences; ++r) {
    if (eviction_of_[r] >= 0) HurryEviction(r);
  }
  for (int32_t r = 0; r < residences; ++r) {
    if (placed(r).fetched) AddSlices(r);
  }
  // Of transfers with one deadline, evictions go before the prefetches into the same bytes.
  by_deadline_keys_.clear();
  for (size_t j = 0; j < transfers_.size(); ++j) {
    const auto index = static_cast<int32_t>(j);
    by_deadline_keys_.push_back(
        Key(2 * transfers_[j].deadline + (transfers_[j].eviction ? 0 : 1), index));
  }
  std::sort(by_deadline_keys_.begin(), by_deadline_keys_.end());
  by_deadline_.clear();
  for (const uint64_t key : by_deadline_keys_) {
    transfers_[IndexOf(key)].place = static_cast<int32_t>(by_deadline_.size());
    by_deadline_.push_back(IndexOf(key));
  }
}

// The last tick up to `tick` that lies in the scope, but not before `least`.
Tick FreshCopyTimes::InScope(Tick tick, int32_t scope, Tick least) const {
  while (tick > least && tables_->scopes[tick] != scope) --tick;
  return tick;
}

void FreshCopyTimes::AddEviction(int32_t r) {
  const PlannedResidence& planned = placed(r);
  Transfer transfer;
  transfer.placed = r;
  transfer.eviction = true;
  transfer.part_end = arrangement_->size(planned);
  transfer.service_ps = tables_->tables.buffers[planned.buffer].copy_ps;
  transfer.free_from = planned.written;
  transfer.scope = planned.scope;
  transfer.deadline = planned.eviction_deadline;
  if (tables_->scope_ends[transfer.deadline] == 0 ||
      tables_->scopes[transfer.deadline - 1] != planned.scope)
    transfer.deadline = InScope(transfer.deadline, planned.scope, transfer.free_from);
  eviction_of_[r] = static_cast<int32_t>(transfers_.size());
  transfers_.push_back(transfer);
}

// Sets the deadline of an eviction: it must be done before the next residence, or an instruction
// for itself, needs the bytes that it frees.
void FreshCopyTimes::HurryEviction(int32_t r) {
  const PlannedResidence& planned = placed(r);
  Transfer& transfer = transfers_[eviction_of_[r]];
  const Tick needed =
      tables_->tables.reserved.FirstAbove(planned.end, transfer.deadline, planned.offset);
  if (needed < transfer.deadline)
    transfer.deadline = InScope(needed, transfer.scope, transfer.free_from);
  for (auto next = std::lower_bound(by_need_.begin(), by_need_.end(), Key(planned.end, 0));
       next != by_need_.end(); ++next) {
    const PlannedResidence& other = placed(IndexOf(*next));
    if (other.need >= transfer.deadline) return;
    if (other.offset >= top(planned) || planned.offset >= top(other)) continue;
    transfer.deadline = InScope(other.need, transfer.scope, transfer.free_from);
    return;
  }
}

// Adds the slices of a prefetch. Each part of its bytes can be filled as soon as the last residence
// that was there has gone.
void FreshCopyTimes::AddSlices(int32_t r) {
  const PlannedResidence& planned = placed(r);
  Tick earliest = planned.earliest_fetch;
  if (tables_->tables.reserved.Most(earliest, planned.begin) > planned.offset)
    earliest = planned.begin;
  open_.assign(1, {planned.offset, top(planned)});
  // What leaves behind `earliest`, the last first; before that, what is perhaps still evicted.
  const auto upper = [](const std::vector<uint64_t>& keys, Tick tick) {
    return std::lower_bound(keys.begin(), keys.end(), Key(tick + 1, 0));
  };
  const auto leaves = upper(by_end_, earliest);
  for (auto next = upper(by_end_, planned.need); next != leaves && !open_.empty();)
    TakeOver(r, IndexOf(*--next), earliest);
  for (auto next = upper(leaving_, earliest); next != leaving_.begin() && !open_.empty();) {
    const int32_t other = IndexOf(*--next);
    if (transfers_[eviction_of_[other]].deadline > earliest) TakeOver(r, other, earliest);
  }
  for (const auto& [from, to] : open_) AddSlice(r, from, to, earliest, -1);
}

// Adds slices for the open bytes that residence `r` takes over from `other`.
void FreshCopyTimes::TakeOver(int32_t r, int32_t other, Tick earliest) {
  const PlannedResidence& occupied = placed(other);
  if (occupied.offset >= open_.back().second || open_.front().first >= top(occupied)) return;
  still_open_.clear();
  for (const auto& [from, to] : open_) {
    const int64_t lower = std::max(from, occupied.offset), upper = std::min(to, top(occupied));
    if (lower >= upper) {
      still_open_.emplace_back(from, to);
      continue;
    }
    AddSlice(r, lower, upper, std::max(earliest, occupied.end), eviction_of_[other]);
    if (from < lower) still_open_.emplace_back(from, lower);
    if (upper < to) still_open_.emplace_back(upper, to);
  }
  open_.swap(still_open_);
}

// The bytes [begin, end) of fast memory are free for residence `r` from `free_from` on, when the
// eviction `after` (-1: none) is done. Adds slices that fill them, so that a more urgent copy
// never waits long for one of them.
void FreshCopyTimes::AddSlice(int32_t r, int64_t begin, int64_t end, Tick free_from,
                              int32_t after) {
  const int64_t piece = std::max(kMinSliceBytes, DivideUp(arrangement_->size(placed(r)), kSlices));
  for (; begin < end; begin += piece) {
    AddPrefetch(r, begin, std::min(begin + piece, end), free_from);
    WaitFor(static_cast<int32_t>(transfers_.size()) - 1, after);
  }
}

void FreshCopyTimes::AddPrefetch(int32_t r, int64_t begin, int64_t end, Tick free_from) {
  const PlannedResidence& planned = placed(r);
  Transfer transfer;
  transfer.placed = r;
  transfer.part_begin = begin - planned.offset;
  transfer.part_end = end - planned.offset;
  transfer.service_ps = tables_->game.hardware().CopyPs(end - begin);
  transfer.free_from = free_from;
  transfer.deadline = planned.need;
  transfer.scope = planned.scope;
  transfers_.push_back(transfer);
  WaitFor(static_cast<int32_t>(transfers_.size()) - 1, SourceOf(planned));
}

// The eviction that brings the value of a prefetch to main memory; -1: there is none.
int32_t FreshCopyTimes::SourceOf(const PlannedResidence& planned) const {
  if (planned.replaces >= 0) return -1;
  const auto of = tables_->decisions_of(planned.buffer);
  for (int32_t i = planned.first; i-- > 0;) {
    if (!tables_->tables.decisions[of[i]].writes) continue;
    const int32_t writer = arrangement_->served_by()[of[i]];
    return writer >= 0 ? eviction_of_[writer] : -1;
  }
  return -1;
}

// Lets the transfer wait for the eviction; -1: for none.
void FreshCopyTimes::WaitFor(int32_t transfer, int32_t eviction) {
  if (eviction < 0) return;
  ++transfers_[transfer].missing;
  waits_.push_back({transfer, transfers_[eviction].first_wait});
  transfers_[eviction].first_wait = static_cast<int32_t>(waits_.size()) - 1;
}

int64_t FreshCopyTimes::Play() {
  const Program& program = tables_->program;
  queue_.clear();
  issued_.clear();
  ready_at_.assign(program.ticks() + 1, -1);
  next_ready_.assign(transfers_.size(), -1);
  ready_.assign(transfers_.size() / 64 + 1, 0);
  for (size_t j = 0; j < transfers_.size(); ++j) {
    if (transfers_[j].missing == 0) CanBegin(static_cast<int32_t>(j), transfers_[j].free_from);
  }
  outstanding_ = {0, 0};
  last_issued_ = {-1, -1};
  int64_t stall = 0;
  size_t forced = 0, pins = 0;
  for (Tick t = 0; t <= program.ticks(); ++t) {
    const bool inside = t < program.ticks();
    // A copy window ends where its segment ends. In a loop every pass waits there.
    const bool starts = tables_->tables.starts_segment[t] != 0;
    if (inside && (starts || !Outstanding())) {
      const int64_t passes = tables_->passes[starts && t > 0 ? t - 1 : t];
      while (!queue_.empty()) stall += ServeFront(t) * passes;
      Outstanding();
    }
    const int64_t passes = tables_->passes[t];
    // Evictions that are due at this tick go before the prefetches into the same bytes.
    const size_t first = forced;
    for (; forced < by_deadline_.size() && transfers_[by_deadline_[forced]].deadline <= t;
         ++forced) {
      if (transfers_[by_deadline_[forced]].begin < 0) Issue(by_deadline_[forced], t);
    }
    for (size_t i = first; i < forced; ++i) {
      while (transfers_[by_deadline_[i]].done < 0) stall += ServeFront(t) * passes;
    }
    // The time of these copies themselves is counted already.
    for (; pins < tables_->tables.fetched_pins.size() && tables_->tables.FetchedAt(pins) == t;
         ++pins) {
      while (!queue_.empty()) stall += ServeFront(t) * passes;
      Outstanding();
      issued_.push_back(-1 - static_cast<int32_t>(pins));
    }
    if (!inside) break;
    if (tables_->scope_ends[t + 1] != 0) {
      // What must be done when the scope ends can't begin behind it.
      for (size_t i = forced;
           i < by_deadline_.size() && transfers_[by_deadline_[i]].deadline == t + 1; ++i) {
        const Transfer& transfer = transfers_[by_deadline_[i]];
        if (transfer.begin >= 0 || transfer.free_from > t || transfer.scope != tables_->scopes[t])
          continue;
        Issue(by_deadline_[i], t);
        if (Outstanding()) continue;
        while (!queue_.empty()) stall += ServeFront(t) * passes;
      }
    }
    for (int32_t j = ready_at_[t]; j >= 0; j = next_ready_[j]) SetReady(j);
    ServeIdle(t);
  }
  return stall;
}

void FreshCopyTimes::CanBegin(int32_t j, Tick tick) {
  next_ready_[j] = ready_at_[tick];
  ready_at_[tick] = j;
}

void FreshCopyTimes::SetReady(int32_t j) {
  const Transfer& transfer = transfers_[j];
  if (transfer.begin < 0) ready_[transfer.place / 64] |= uint64_t{1} << transfer.place % 64;
}

// Serves the transfer at the front of the queue, which is done at tick `done`; returns the time
// that this takes.
int64_t FreshCopyTimes::ServeFront(Tick done) {
  const QueuedTransfer front = queue_.front();
  queue_.pop_front();
  transfers_[front.transfer].done = done;
  for (int32_t w = transfers_[front.transfer].first_wait; w >= 0; w = waits_[w].next) {
    Transfer& waiting = transfers_[waits_[w].transfer];
    if (--waiting.missing == 0) CanBegin(waits_[w].transfer, std::max(done, waiting.free_from));
  }
  return front.left_ps;
}

// Counts the outstanding copies and says whether there are no more than may be.
bool FreshCopyTimes::Outstanding() {
  outstanding_ = {0, 0};
  last_issued_ = {-1, -1};
  for (const QueuedTransfer& queued : queue_) {
    const Transfer& transfer = transfers_[queued.transfer];
    outstanding_[transfer.eviction] += last_issued_[transfer.eviction] != transfer.placed;
    last_issued_[transfer.eviction] = transfer.placed;
  }
  const Hardware& hardware = tables_->game.hardware();
  return outstanding_[0] <= hardware.max_outstanding_prefetches &&
         outstanding_[1] <= hardware.max_outstanding_evictions;
}

void FreshCopyTimes::ServeIdle(Tick t) {
  int64_t left = arrangement_->idle_ps(t);
  while (left > 0) {
    if (queue_.empty() && !IssueNext(t)) return;
    if (queue_.front().left_ps > left) {
      queue_.front().left_ps -= left;
      return;
    }
    left -= ServeFront(t + 1);
  }
}

// Begins the transfer that is needed first of those that can begin.
bool FreshCopyTimes::IssueNext(Tick t) {
  for (size_t word = 0; word < ready_.size(); ++word) {
    for (uint64_t bits = ready_[word]; bits != 0; bits &= bits - 1) {
      if (TryIssue(by_deadline_[64 * word + std::countr_zero(bits)], t)) return true;
    }
  }
  return false;
}

// Begins the transfer at tick `t` if it hasn't begun, may begin there and there are not too many.
bool FreshCopyTimes::TryIssue(int32_t j, Tick t) {
  const Transfer& transfer = transfers_[j];
  if (transfer.begin >= 0 || transfer.scope != tables_->scopes[t]) return false;
  const Hardware& hardware = tables_->game.hardware();
  const std::array<int32_t, 2> most = {hardware.max_outstanding_prefetches,
                                       hardware.max_outstanding_evictions};
  const bool another = last_issued_[transfer.eviction] != transfer.placed;
  if (another && outstanding_[transfer.eviction] >= most[transfer.eviction]) return false;
  outstanding_[transfer.eviction] += another;
  last_issued_[transfer.eviction] = transfer.placed;
  Issue(j, t);
  return true;
}

void FreshCopyTimes::Issue(int32_t j, Tick tick) {
  Transfer& transfer = transfers_[j];
  transfer.begin = tick;
  ready_[transfer.place / 64] &= ~(uint64_t{1} << transfer.place % 64);
  issued_.push_back(j);
  queue_.push_back({j, transfer.service_ps});
}

Plan FreshCopyTimes::ToPlan(const Arrangement& arrangement) const {
  const Program& program = tables_->program;
  Plan plan = AllMainPlan(program, tables_->game.hardware());
  const std::vector<Copy> of_pins = std::exchange(plan.copies, {});
  const size_t first = plan.residences.size();
  for (const PlannedResidence& planned : arrangement.placed()) {
    const auto id = ResidenceId(plan.residences.size());
    const BufferId buffer = tables_->tables.buffers[planned.buffer].id;
    plan.residences.push_back({buffer, planned.offset, planned.need, planned.end});
    if (!planned.preload) continue;
    plan.copies.push_back({CopyKind::kPrefetch, id, 0,
                           tables_->decision(planned.buffer, planned.first).tick, 0,
                           arrangement.size(planned), true, -1});
  }
  for (size_t d = 0; d < arrangement.served_by().size(); ++d) {
    if (arrangement.served_by()[d] < 0) continue;
    plan.served_by[tables_->tables.decisions[d].access.index()] =
        ResidenceId(first + arrangement.served_by()[d]);
  }
  for (const int32_t j : issued_) {
    if (j < 0) {
      plan.copies.push_back(of_pins[-1 - j]);
      continue;
    }
    const Transfer& transfer = transfers_[j];
    const auto id = ResidenceId(first + transfer.placed);
    Residence& residence = plan.residences[id.index()];
    residence.begin = std::min(residence.begin, transfer.begin);
    residence.end = std::max(residence.end, transfer.done);
    plan.copies.push_back({transfer.eviction ? CopyKind::kEviction : CopyKind::kPrefetch, id,
                           transfer.begin, transfer.done, transfer.part_begin, transfer.part_end,
                           false, transfer.eviction ? -1 : placed(transfer.placed).replaces});
  }
  return plan;
}

}  // namespace mallocgame::testing
