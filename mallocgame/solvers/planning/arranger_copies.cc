// The copies of an arrangement: which ones it needs, when each may begin, and the simulation of the
// channel that decides when each does begin.
#include <algorithm>
#include <tuple>

#include "mallocgame/base/rounding.h"
#include "mallocgame/solvers/planning/arranger.h"

namespace mallocgame {
namespace {

constexpr int64_t kSlices = 4;               // a prefetch has at least so many slices,
constexpr int64_t kMinSliceBytes = 1 << 20;  // unless they would be smaller than this
constexpr int kMostLookedAt = 64;            // transfers, in search of one that can begin

}  // namespace

void Arranger::MakeTransfers() {
  transfers_.clear();
  for (size_t r = 0; r < planned_.size(); ++r) {
    if (planned_[r].offset >= 0 && planned_[r].written >= 0) AddWriteBack(static_cast<int32_t>(r));
  }
  by_need_.clear();
  for (const Occupied& occupied : occupied_) by_need_.push_back(&occupied);
  by_end_ = by_need_;
  std::sort(by_need_.begin(), by_need_.end(), [this](const Occupied* a, const Occupied* b) {
    return std::pair(NeedOf(*a), a) < std::pair(NeedOf(*b), b);
  });
  std::sort(by_end_.begin(), by_end_.end(), [](const Occupied* a, const Occupied* b) {
    return std::pair(a->end, a) < std::pair(b->end, b);
  });
  for (const Occupied& occupied : occupied_) {
    if (occupied.planned >= 0 && planned(occupied.planned).write_back >= 0)
      HurryWriteBack(occupied);
  }
  for (size_t r = 0; r < planned_.size(); ++r) {
    if (planned_[r].offset >= 0 && planned_[r].fetched) AddSlices(static_cast<int32_t>(r));
  }
  by_deadline_.resize(transfers_.size());
  for (size_t j = 0; j < transfers_.size(); ++j) by_deadline_[j] = static_cast<int32_t>(j);
  std::sort(by_deadline_.begin(), by_deadline_.end(), [this](int32_t a, int32_t b) {
    const auto key = [this](int32_t j) {
      const Transfer& transfer = transfers_[j];
      return std::tuple(transfer.deadline, !transfer.write_back, j);
    };
    return key(a) < key(b);
  });
}

// Sets the deadline of a write-back: it must be done before the next residence needs the bytes that
// it frees.
void Arranger::HurryWriteBack(const Occupied& occupied) {
  Transfer& transfer = transfers_[planned(occupied.planned).write_back];
  const auto behind =
      std::lower_bound(by_need_.begin(), by_need_.end(), occupied.end,
                       [this](const Occupied* other, Tick end) { return NeedOf(*other) < end; });
  for (auto next = behind; next != by_need_.end(); ++next) {
    Tick need = NeedOf(**next);
    if (need >= transfer.deadline) return;
    if ((*next)->offset >= occupied.top || occupied.offset >= (*next)->top) continue;
    while (need > transfer.free_from && !simple_[need]) --need;
    transfer.deadline = need;
    return;
  }
}

// Adds a write-back if main memory needs the value that the residence leaves behind.
void Arranger::AddWriteBack(int32_t r) {
  PlannedResidence& planned = planned_[r];
  Transfer transfer;
  if (planned.last + 1 < static_cast<int32_t>(planned.accesses.size())) {
    const Access& next = access(planned, planned.last + 1);
    if (next.kind == AccessKind::kWrite) return;
    transfer.deadline = next.tick;
  } else if (program_.buffer(planned.buffer).is_output) {
    transfer.deadline = program_.ticks();
  } else {
    return;
  }
  transfer.planned = r;
  transfer.write_back = true;
  transfer.part_end = planned.size;
  transfer.service_ps = hardware_.TransferPs(planned.size);
  transfer.free_from = planned.written;
  planned.write_back = static_cast<int32_t>(transfers_.size());
  transfers_.push_back(transfer);
}

// Adds the slices of a prefetch. Each part of its bytes can be filled as soon as the last residence
// that was there has gone.
void Arranger::AddSlices(int32_t r) {
  const PlannedResidence& planned = planned_[r];
  const Tick earliest = EarliestFetch(planned);
  std::vector<std::pair<int64_t, int64_t>>& open = taken_;
  open.assign(1, {planned.offset, planned.offset + planned.size});
  auto next =
      std::upper_bound(by_end_.begin(), by_end_.end(), planned.need,
                       [](Tick need, const Occupied* occupied) { return need < occupied->end; });
  while (next != by_end_.begin() && !open.empty()) {
    const Occupied* occupied = *--next;
    if (occupied->offset >= open.back().second || open.front().first >= occupied->top) continue;
    const int32_t after = occupied->planned < 0 ? -1 : planned_[occupied->planned].write_back;
    if (occupied->end <= earliest && after < 0) continue;
    still_open_.clear();
    for (const auto& [from, to] : open) {
      const int64_t lower = std::max(from, occupied->offset), upper = std::min(to, occupied->top);
      if (lower >= upper) {
        still_open_.emplace_back(from, to);
        continue;
      }
      AddSlice(r, lower, upper, std::max(earliest, occupied->end), after);
      if (from < lower) still_open_.emplace_back(from, lower);
      if (upper < to) still_open_.emplace_back(upper, to);
    }
    open.swap(still_open_);
  }
  const std::vector<std::pair<int64_t, int64_t>> rest = open;
  for (const auto& [from, to] : rest) AddSlice(r, from, to, earliest, -1);
}

// Adds bytes [begin, end) of fast memory in slices, so that a more urgent copy never waits long for
// one of them.
void Arranger::AddSlice(int32_t r, int64_t begin, int64_t end, Tick free_from, int32_t after) {
  const PlannedResidence& planned = planned_[r];
  const int64_t piece = std::max(kMinSliceBytes, DivideUp(planned.size, kSlices));
  int32_t source = -1;  // the write-back that brings the value to main memory; -1: none
  if (planned.replaces < 0) {
    for (int32_t i = planned.first; i-- > 0 && source < 0;) {
      if (access(planned, i).kind == AccessKind::kRead) continue;
      const int32_t writer = planned_for_[id(planned, i).index()];
      if (writer >= 0) source = planned_[writer].write_back;
      break;
    }
  }
  for (; begin < end; begin += piece) {
    Transfer transfer;
    transfer.planned = r;
    transfer.part_begin = begin - planned.offset;
    transfer.part_end = std::min(begin + piece, end) - planned.offset;
    transfer.service_ps = hardware_.TransferPs(transfer.part_end - transfer.part_begin);
    transfer.free_from = free_from;
    transfer.deadline = planned.need;
    transfer.after[0] = after;
    transfer.after[1] = source;
    transfers_.push_back(transfer);
  }
}

int64_t Arranger::PricePs() {
  masks_.assign(prices_.size(), 0);
  replaced_.assign(prices_.size(), false);
  for (size_t a = 0; a < planned_for_.size(); ++a) {
    if (planned_for_[a] < 0 && !fixed_.served_by[a].valid()) continue;
    const AccessId id(a);
    masks_[program_.access(id).tick] |= uint64_t{1} << program_.slot(id);
  }
  for (const Copy& copy : fixed_.copies) {
    if (copy.replaces >= 0) replaced_[copy.replaces] = true;
  }
  for (const PlannedResidence& planned : planned_) {
    if (planned.offset >= 0 && planned.replaces >= 0) replaced_[planned.replaces] = true;
  }
  int64_t total = 0;
  for (Tick t = 0; t < program_.ticks(); ++t) {
    const size_t i = t;
    if (replaced_[i]) {
      prices_[i] = {};
      continue;
    }
    const auto [known, fresh] = known_prices_.try_emplace(std::pair(t, masks_[i]));
    if (fresh) known->second = game_.cost_model().PriceOf(t, masks_[i]);
    prices_[i] = known->second;
    total += prices_[i].time_ps * program_.trips(t);
  }
  return total;
}

// Simulates the channel once, first in, first out, as Simulate does. Whenever the channel would be
// idle it begins a transfer: of those that can begin, the one that is needed first. Returns the
// time of all stalls.
int64_t Arranger::SchedulePs() {
  queue_.clear();
  issued_.clear();
  wake_ = 0;
  fixed_done_.assign(fixed_.copies.size(), false);
  int64_t stall = 0;
  size_t forced = 0, open = 0;
  for (Tick t = 0; t <= program_.ticks(); ++t) {
    const bool inside = t < program_.ticks();
    const bool simple = inside && simple_[t];
    // A copy window ends where its segment ends.
    if (inside && (program_.segment_begin(t) == t || !Outstanding(t))) {
      while (!queue_.empty()) stall += ServeFront(t);
      Outstanding(t);
    }
    // Write-backs that are due at this tick go before the prefetches into the same bytes.
    const size_t first = forced;
    const auto due = [&](size_t i) {
      return i < by_deadline_.size() && transfers_[by_deadline_[i]].deadline <= t;
    };
    const auto issue = [&](size_t i) {
      if (transfers_[by_deadline_[i]].begin < 0) Issue(by_deadline_[i], t);
    };
    for (; due(forced) && transfers_[by_deadline_[forced]].write_back; ++forced) issue(forced);
    for (const int32_t c : fixed_begins_[t]) {
      const Copy& copy = fixed_.copies[c];
      issued_.push_back(-1 - c);
      fixed_done_[c] = inside && !simple;  // copies in loops are left to the simulator
      if (!inside || simple)
        queue_.push_back({-1 - c, hardware_.TransferPs(copy.part_end - copy.part_begin)});
    }
    for (; due(forced); ++forced) issue(forced);
    for (size_t i = first; i < forced; ++i) {
      while (transfers_[by_deadline_[i]].done < 0) stall += ServeFront(t);
    }
    for (const int32_t c : fixed_ends_[t]) {
      while (!fixed_done_[c] && !queue_.empty()) stall += ServeFront(t);
    }
    if (simple) ServeIdle(t, open);
  }
  return stall;
}

// Serves the transfer at the front of the queue, which is done at tick `done`; returns the time
// that this takes.
int64_t Arranger::ServeFront(Tick done) {
  const QueuedTransfer front = queue_.front();
  queue_.pop_front();
  if (front.transfer < 0) {
    fixed_done_[-1 - front.transfer] = true;
  } else {
    transfers_[front.transfer].done = done;
    wake_ = 0;
  }
  return front.left_ps;
}

// Counts the outstanding copies and says whether there are no more than may be.
bool Arranger::Outstanding(Tick t) {
  outstanding_ = {0, 0};
  last_issued_ = {-1, -1};
  for (const QueuedTransfer& queued : queue_) {
    if (queued.transfer < 0) continue;
    const Transfer& transfer = transfers_[queued.transfer];
    outstanding_[transfer.write_back] += last_issued_[transfer.write_back] != transfer.planned;
    last_issued_[transfer.write_back] = transfer.planned;
  }
  const auto fits = [&](size_t direction) {
    return outstanding_[direction] == 0 || outstanding_[direction] <= free_windows_[direction][t];
  };
  return fits(0) && fits(1);
}

// `open` is the first transfer by deadline that hasn't begun, or an earlier one.
void Arranger::ServeIdle(Tick t, size_t& open) {
  int64_t left = prices_[t].idle_ps;
  while (left > 0) {
    if (queue_.empty() && !IssueNext(t, open)) return;
    if (queue_.front().left_ps > left) {
      queue_.front().left_ps -= left;
      return;
    }
    left -= ServeFront(t + 1);
  }
}

bool Arranger::IssueNext(Tick t, size_t& open) {
  if (t < wake_) return false;
  while (open < by_deadline_.size() && transfers_[by_deadline_[open]].begin >= 0) ++open;
  int looked_at = 0;
  wake_ = program_.ticks();
  for (size_t i = open; i < by_deadline_.size() && looked_at < kMostLookedAt; ++i) {
    const Transfer& transfer = transfers_[by_deadline_[i]];
    if (transfer.begin >= 0) continue;
    ++looked_at;
    const bool another = last_issued_[transfer.write_back] != transfer.planned;
    const bool too_many =
        another && outstanding_[transfer.write_back] >= free_windows_[transfer.write_back][t];
    const Tick ready = std::max(ReadyAt(transfer), too_many ? t + 1 : 0);
    wake_ = std::min(wake_, ready);
    if (ready > t) continue;
    outstanding_[transfer.write_back] += another;
    last_issued_[transfer.write_back] = transfer.planned;
    Issue(by_deadline_[i], t);
    return true;
  }
  return false;
}

// The first tick at which the transfer can begin; the end of the program if it waits for a
// write-back that is not done.
Tick Arranger::ReadyAt(const Transfer& transfer) const {
  Tick ready = transfer.free_from;
  for (const int32_t before : transfer.after) {
    if (before < 0) continue;
    const Tick done = transfers_[before].done;
    ready = std::max(ready, done < 0 ? program_.ticks() : done);
  }
  return ready;
}

void Arranger::Issue(int32_t j, Tick tick) {
  Transfer& transfer = transfers_[j];
  transfer.begin = tick;
  issued_.push_back(j);
  queue_.push_back({j, transfer.service_ps});
}

}  // namespace mallocgame
