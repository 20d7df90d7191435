// The copies of an arrangement: which there are, when each may begin, and the play of the channel
// that decides when it does.
#include <algorithm>
#include <tuple>

#include "mallocgame/base/rounding.h"
#include "mallocgame/solvers/planning/arranger.h"

namespace mallocgame {
namespace {

constexpr int64_t kSlices = 4;               // that a prefetch goes in, at least,
constexpr int64_t kMinSliceBytes = 1 << 20;  // if they are so large
constexpr int kMostLookedAt = 64;            // jobs, for one that can begin

}  // namespace

void Arranger::MakeJobs() {
  jobs_.clear();
  for (size_t r = 0; r < runs_.size(); ++r) {
    if (runs_[r].offset >= 0 && runs_[r].written >= 0) AddWriteBack(static_cast<int32_t>(r));
  }
  by_need_.clear();
  for (const Place& place : places_) by_need_.push_back(&place);
  by_end_ = by_need_;
  std::sort(by_need_.begin(), by_need_.end(), [this](const Place* a, const Place* b) {
    return std::pair(NeedOf(*a), a) < std::pair(NeedOf(*b), b);
  });
  std::sort(by_end_.begin(), by_end_.end(), [](const Place* a, const Place* b) {
    return std::pair(a->end, a) < std::pair(b->end, b);
  });
  for (const Place& place : places_) {
    if (place.run >= 0 && run(place.run).write_back >= 0) HurryWriteBack(place);
  }
  for (size_t r = 0; r < runs_.size(); ++r) {
    if (runs_[r].offset >= 0 && runs_[r].fetched) AddSlices(static_cast<int32_t>(r));
  }
  by_deadline_.resize(jobs_.size());
  for (size_t j = 0; j < jobs_.size(); ++j) by_deadline_[j] = static_cast<int32_t>(j);
  std::sort(by_deadline_.begin(), by_deadline_.end(), [this](int32_t a, int32_t b) {
    const auto key = [this](int32_t j) {
      const Job& job = jobs_[j];
      return std::tuple(job.deadline, !job.write_back, j);
    };
    return key(a) < key(b);
  });
}

// Bytes must be written back before the next residence at their place needs them.
void Arranger::HurryWriteBack(const Place& place) {
  Job& job = jobs_[run(place.run).write_back];
  const auto behind =
      std::lower_bound(by_need_.begin(), by_need_.end(), place.end,
                       [this](const Place* other, Tick end) { return NeedOf(*other) < end; });
  for (auto next = behind; next != by_need_.end(); ++next) {
    Tick need = NeedOf(**next);
    if (need >= job.deadline) return;
    if ((*next)->offset >= place.top || place.offset >= (*next)->top) continue;
    while (need > job.free_from && !simple_[need]) --need;
    job.deadline = need;
    return;
  }
}

// If main memory needs the value that the run leaves behind.
void Arranger::AddWriteBack(int32_t r) {
  Run& run = runs_[r];
  Job job;
  if (run.last + 1 < static_cast<int32_t>(run.accesses.size())) {
    const Access& next = access(run, run.last + 1);
    if (next.kind == AccessKind::kWrite) return;
    job.deadline = next.tick;
  } else if (program_.buffer(run.buffer).is_output) {
    job.deadline = program_.ticks();
  } else {
    return;
  }
  job.run = r;
  job.write_back = true;
  job.part_end = run.size;
  job.service_ps = hardware_.TransferPs(run.size);
  job.free_from = run.written;
  run.write_back = static_cast<int32_t>(jobs_.size());
  jobs_.push_back(job);
}

// A prefetch takes each part of its bytes from when the last residence that was there has gone.
void Arranger::AddSlices(int32_t r) {
  const Run& run = runs_[r];
  const Tick earliest = EarliestFetch(run);
  std::vector<std::pair<int64_t, int64_t>>& open = taken_;
  open.assign(1, {run.offset, run.offset + run.size});
  auto next = std::upper_bound(by_end_.begin(), by_end_.end(), run.need,
                               [](Tick need, const Place* place) { return need < place->end; });
  while (next != by_end_.begin() && !open.empty()) {
    const Place* place = *--next;
    if (place->offset >= open.back().second || open.front().first >= place->top) continue;
    const int32_t after = place->run < 0 ? -1 : runs_[place->run].write_back;
    if (place->end <= earliest && after < 0) continue;
    still_open_.clear();
    for (const auto& [from, to] : open) {
      const int64_t lower = std::max(from, place->offset), upper = std::min(to, place->top);
      if (lower >= upper) {
        still_open_.emplace_back(from, to);
        continue;
      }
      AddSlice(r, lower, upper, std::max(earliest, place->end), after);
      if (from < lower) still_open_.emplace_back(from, lower);
      if (upper < to) still_open_.emplace_back(upper, to);
    }
    open.swap(still_open_);
  }
  const std::vector<std::pair<int64_t, int64_t>> rest = open;
  for (const auto& [from, to] : rest) AddSlice(r, from, to, earliest, -1);
}

// Bytes [begin, end) of fast memory, in pieces, so that what is more urgent waits for none of them
// for long.
void Arranger::AddSlice(int32_t r, int64_t begin, int64_t end, Tick free_from, int32_t after) {
  const Run& run = runs_[r];
  const int64_t piece = std::max(kMinSliceBytes, DivideUp(run.size, kSlices));
  int32_t source = -1;  // the write-back that brings the value to main memory
  if (run.replaces < 0) {
    for (int32_t i = run.first; i-- > 0 && source < 0;) {
      if (access(run, i).kind == AccessKind::kRead) continue;
      const int32_t writer = run_of_[id(run, i).index()];
      if (writer >= 0) source = runs_[writer].write_back;
      break;
    }
  }
  for (; begin < end; begin += piece) {
    Job job;
    job.run = r;
    job.part_begin = begin - run.offset;
    job.part_end = std::min(begin + piece, end) - run.offset;
    job.service_ps = hardware_.TransferPs(job.part_end - job.part_begin);
    job.free_from = free_from;
    job.deadline = run.need;
    job.after[0] = after;
    job.after[1] = source;
    jobs_.push_back(job);
  }
}

int64_t Arranger::PricePs() {
  masks_.assign(prices_.size(), 0);
  replaced_.assign(prices_.size(), false);
  for (size_t a = 0; a < run_of_.size(); ++a) {
    if (run_of_[a] < 0 && !fixed_.served_by[a].valid()) continue;
    const AccessId id(static_cast<int64_t>(a));
    masks_[program_.access(id).tick] |= uint64_t{1} << program_.slot(id);
  }
  for (const Copy& copy : fixed_.copies) {
    if (copy.replaces >= 0) replaced_[copy.replaces] = true;
  }
  for (const Run& run : runs_) {
    if (run.offset >= 0 && run.replaces >= 0) replaced_[run.replaces] = true;
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

// Plays the channel once, first in, first out, as Simulate does, and begins a copy whenever it
// would be idle: of those that can begin, the one that is needed first. Returns the stalls.
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
    // A window ends where its segment does.
    if (inside && (program_.segment_begin(t) == t || !Outstanding(t))) {
      while (!queue_.empty()) stall += ServeFront(t);
      Outstanding(t);
    }
    // What leaves its place at this tick goes before what comes there.
    const size_t first = forced;
    const auto due = [&](size_t i) {
      return i < by_deadline_.size() && jobs_[by_deadline_[i]].deadline <= t;
    };
    const auto issue = [&](size_t i) {
      if (jobs_[by_deadline_[i]].begin < 0) Issue(by_deadline_[i], t);
    };
    for (; due(forced) && jobs_[by_deadline_[forced]].write_back; ++forced) issue(forced);
    for (const int32_t c : fixed_begins_[t]) {
      const Copy& copy = fixed_.copies[c];
      issued_.push_back(-1 - c);
      fixed_done_[c] = inside && !simple;  // in loops, the simulator looks after it
      if (!inside || simple)
        queue_.push_back({-1 - c, hardware_.TransferPs(copy.part_end - copy.part_begin)});
    }
    for (; due(forced); ++forced) issue(forced);
    for (size_t i = first; i < forced; ++i) {
      while (jobs_[by_deadline_[i]].done < 0) stall += ServeFront(t);
    }
    for (const int32_t c : fixed_ends_[t]) {
      while (!fixed_done_[c] && !queue_.empty()) stall += ServeFront(t);
    }
    if (simple) ServeIdle(t, open);
  }
  return stall;
}

// Serves the front of the queue to its end, which is at tick `done`; returns the time that takes.
int64_t Arranger::ServeFront(Tick done) {
  const Queued front = queue_.front();
  queue_.pop_front();
  if (front.job < 0) {
    fixed_done_[-1 - front.job] = true;
  } else {
    jobs_[front.job].done = done;
    wake_ = 0;
  }
  return front.left_ps;
}

// Counts the copies on their way; false if they are too many.
bool Arranger::Outstanding(Tick t) {
  outstanding_ = {0, 0};
  last_issued_ = {-1, -1};
  for (const Queued& queued : queue_) {
    if (queued.job < 0) continue;
    const Job& job = jobs_[queued.job];
    outstanding_[job.write_back] += last_issued_[job.write_back] != job.run;
    last_issued_[job.write_back] = job.run;
  }
  const auto fits = [&](size_t direction) {
    return outstanding_[direction] == 0 || outstanding_[direction] <= free_windows_[direction][t];
  };
  return fits(0) && fits(1);
}

// `open`: the first job in order of deadline that hasn't begun, or one before.
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
  while (open < by_deadline_.size() && jobs_[by_deadline_[open]].begin >= 0) ++open;
  int looked_at = 0;
  wake_ = program_.ticks();
  for (size_t i = open; i < by_deadline_.size() && looked_at < kMostLookedAt; ++i) {
    const Job& job = jobs_[by_deadline_[i]];
    if (job.begin >= 0) continue;
    ++looked_at;
    const bool another = last_issued_[job.write_back] != job.run;
    const bool too_many =
        another && outstanding_[job.write_back] >= free_windows_[job.write_back][t];
    const Tick ready = std::max(ReadyAt(job), too_many ? t + 1 : 0);
    wake_ = std::min(wake_, ready);
    if (ready > t) continue;
    outstanding_[job.write_back] += another;
    last_issued_[job.write_back] = job.run;
    Issue(by_deadline_[i], t);
    return true;
  }
  return false;
}

// The tick from which on the job can begin; the end, if it waits for a write-back that is not done.
Tick Arranger::ReadyAt(const Job& job) const {
  Tick ready = job.free_from;
  for (const int32_t before : job.after) {
    if (before < 0) continue;
    const Tick done = jobs_[before].done;
    ready = std::max(ready, done < 0 ? program_.ticks() : done);
  }
  return ready;
}

void Arranger::Issue(int32_t j, Tick tick) {
  Job& job = jobs_[j];
  job.begin = tick;
  issued_.push_back(j);
  queue_.push_back({j, job.service_ps});
}

}  // namespace mallocgame
