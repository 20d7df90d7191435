#include "mallocgame/game/schedule/partial_order.h"

#include <algorithm>

#include "absl/container/inlined_vector.h"
#include "mallocgame/base/error.h"

namespace mallocgame {

PartialOrder::PartialOrder(const ScheduleTables& tables)
    : tables_(&tables), waits_(tables.all.size()), ready_(tables.all.size() / 64 + 1),
      done_(tables.all.size() / 64 + 1), ready_count_(tables.decided.size()),
      lowest_(tables.first_unit.begin(), tables.first_unit.end() - 1), left_(tables.uses) {
  for (size_t u = 0; u < waits_.size(); ++u)
    waits_[u] = static_cast<int32_t>(tables.all[u].before.size());
  for (size_t u = 0; u < waits_.size(); ++u) {
    const auto unit = static_cast<int32_t>(u);
    if (!of(unit).before.empty()) continue;
    if (of(unit).works) {
      ready_[u / 64] |= uint64_t{1} << u % 64;
      ++ready_count_[of(unit).region];
    } else {
      Release(unit);
    }
  }
  frames_.push_back({0, -1, -1});
  Sweep(0);
  Advance(/*within_limit=*/true);
}

void PartialOrder::SetDone(int32_t unit, bool done) {
  const uint64_t bit = uint64_t{1} << unit % 64;
  if (done) {
    done_[unit / 64] |= bit;
  } else {
    done_[unit / 64] &= ~bit;
    int32_t& lowest = lowest_[of(unit).region];
    lowest = std::min(lowest, unit);
  }
}

// The unit counts as done for those that depend on it.
void PartialOrder::Release(int32_t unit) {
  for (const int32_t after : of(unit).after) {
    if (--waits_[after] > 0) continue;
    if (of(after).works) {
      ready_[after / 64] |= uint64_t{1} << after % 64;
      ++ready_count_[of(after).region];
    } else {
      Release(after);
    }
  }
}

// Takes back what the last Release did.
void PartialOrder::Retain(int32_t unit) {
  for (const int32_t after : of(unit).after) {
    if (waits_[after]++ > 0) continue;
    if (of(after).works) {
      ready_[after / 64] &= ~(uint64_t{1} << after % 64);
      --ready_count_[of(after).region];
    } else {
      Retain(after);
    }
  }
}

// Returns the most live bytes on the way.
int64_t PartialOrder::Use(Tick begin, Tick end) const {
  int64_t most = live_;
  for (Tick t = begin; t < end; ++t) {
    for (const int32_t buffer : tables_->Begin(t)) {
      if (left_[buffer] == tables_->uses[buffer]) live_ += tables_->bytes[buffer];
    }
    most = std::max(most, live_);
    for (const int32_t buffer : tables_->End(t)) {
      if (--left_[buffer] == 0) live_ -= tables_->bytes[buffer];
    }
  }
  return most;
}

void PartialOrder::Unuse(Tick begin, Tick end) const {
  for (Tick t = end; t-- > begin;) {
    for (const int32_t buffer : tables_->End(t)) {
      if (left_[buffer]++ == 0) live_ += tables_->bytes[buffer];
    }
    for (const int32_t buffer : tables_->Begin(t)) {
      if (left_[buffer] == tables_->uses[buffer]) live_ -= tables_->bytes[buffer];
    }
  }
}

int64_t PartialOrder::PutUnit(int32_t unit) {
  events_.push_back({Step::kUnit, unit, 0});
  const int64_t most = Use(of(unit).begin, of(unit).end);
  ticks_put_ += of(unit).end - of(unit).begin;
  SetDone(unit, true);
  if (of(unit).works) Release(unit);
  return most;
}

// Puts the units that take no time and that the unit needs.
int64_t PartialOrder::PutBefore(int32_t unit) {
  int64_t most = live_;
  for (const int32_t before : of(unit).before) {
    if (IsDone(before)) continue;
    most = std::max(most, PutBefore(before));
    most = std::max(most, PutUnit(before));
  }
  return most;
}

// Puts the units that take no time and stand in front of all others that are left.
int64_t PartialOrder::Sweep(int32_t region) {
  int64_t most = live_;
  int32_t& lowest = lowest_[region];
  for (const int32_t end = tables_->first_unit[region + 1]; lowest < end; ++lowest) {
    if (IsDone(lowest)) continue;
    if (of(lowest).works) break;
    most = std::max(most, PutUnit(lowest));
  }
  return most;
}

int64_t PartialOrder::PutReady(int32_t unit) {
  int64_t most = PutBefore(unit);
  ready_[unit / 64] &= ~(uint64_t{1} << unit % 64);
  --ready_count_[of(unit).region];
  if (of(unit).parts.empty()) {
    most = std::max(most, PutUnit(unit));
    return std::max(most, Sweep(of(unit).region));
  }
  events_.push_back({Step::kOpen, unit, 0});
  return std::max(most, GoOn(unit, 0));
}

// Puts the parts of a unit from `part` on, up to a region that is ordered first.
int64_t PartialOrder::GoOn(int32_t unit, int32_t part) {
  int64_t most = live_;
  const std::vector<UnitPart>& parts = of(unit).parts;
  for (; part < std::ssize(parts); ++part) {
    const UnitPart& next = parts[part];
    if (next.region >= 0) {
      events_.push_back({Step::kEnter, unit, part});
      frames_.push_back({next.region, unit, part});
      return std::max(most, Sweep(next.region));
    }
    events_.push_back({Step::kPart, unit, part});
    most = std::max(most, Use(next.begin, next.end));
    ticks_put_ += next.end - next.begin;
  }
  events_.push_back({Step::kClose, unit, 0});
  SetDone(unit, true);
  Release(unit);
  return std::max(most, Sweep(of(unit).region));
}

// Puts what can only come next, and leaves regions that are done; or, without the limit, puts
// everything in the program's order.
int64_t PartialOrder::Advance(bool within_limit) {
  int64_t most = live_;
  while (!frames_.empty()) {
    const Frame frame = frames_.back();
    if (lowest_[frame.region] == tables_->first_unit[frame.region + 1]) {
      events_.push_back({Step::kLeave, frame.unit, frame.part});
      frames_.pop_back();
      if (frame.unit >= 0) most = std::max(most, GoOn(frame.unit, frame.part + 1));
      continue;
    }
    // Where nobody knows what depends on what there is no choice, though all seem ready.
    if (within_limit && tables_->decided[frame.region] != 0 && ready_count_[frame.region] > 1)
      break;
    int32_t next = -1;
    VisitReady([&next](int32_t unit) {
      next = unit;
      return false;
    });
    if (within_limit && !Fits(next)) break;
    most = std::max(most, PutReady(next));
  }
  return most;
}

// What is left of each region stands as in the program, and so do the ticks of each unit.
PartialOrder::Outlook PartialOrder::LookAhead() const {
  // Scratch space of the thread.
  static thread_local std::vector<int64_t> peaks, before, behind;
  static thread_local std::vector<int32_t> left;
  Outlook ahead;
  if (frames_.empty()) return ahead;
  int64_t unborn = 0;
  for (size_t b = 0; b < left_.size(); ++b) {
    if (left_[b] == tables_->uses[b]) unborn += tables_->bytes[b];
  }
  ahead.certain = live_ + unborn <= tables_->sure_bytes;
  if (ahead.certain) return ahead;
  left = left_;
  int64_t live = live_;
  const auto use = [&](Tick begin, Tick end) {
    int64_t most = live;
    for (Tick t = begin; t < end; ++t) {
      for (const int32_t buffer : tables_->Begin(t)) {
        if (left[buffer] == tables_->uses[buffer]) live += tables_->bytes[buffer];
      }
      most = std::max(most, live);
      for (const int32_t buffer : tables_->End(t)) {
        if (--left[buffer] == 0) live -= tables_->bytes[buffer];
      }
    }
    return most;
  };
  const int32_t first = tables_->first_unit[region()], end = tables_->first_unit[region() + 1];
  peaks.assign(end - first, 0);
  before.resize(end - first);
  behind.resize(end - first);
  int64_t most = 0;
  for (int32_t unit = first; unit < end; ++unit) {
    before[unit - first] = most;
    if (IsDone(unit)) continue;
    peaks[unit - first] = use(of(unit).begin, of(unit).end);
    most = std::max(most, peaks[unit - first]);
  }
  // What is around the region: the rest of the unit that it is in, then the units behind.
  most = 0;
  for (size_t f = frames_.size(); f-- > 1;) {
    const int32_t open = frames_[f].unit;
    const std::vector<UnitPart>& parts = of(open).parts;
    for (size_t part = frames_[f].part + 1; part < parts.size(); ++part)
      most = std::max(most, use(parts[part].begin, parts[part].end));
    const int32_t around = frames_[f - 1].region;
    for (int32_t unit = lowest_[around]; unit < tables_->first_unit[around + 1]; ++unit) {
      if (unit != open && !IsDone(unit)) most = std::max(most, use(of(unit).begin, of(unit).end));
    }
  }
  for (int32_t unit = end; unit-- > first;) {
    behind[unit - first] = most;
    most = std::max(most, peaks[unit - first]);
  }
  ahead.before = before;
  ahead.behind = behind;
  return ahead;
}

// What stands before it in the program comes behind it, and has to do with what it leaves.
bool PartialOrder::IsSure(int32_t unit, const Outlook& ahead) const {
  if (ahead.certain) return true;
  const int64_t limit = tables_->sure_bytes;
  const size_t at = unit - tables_->first_unit[of(unit).region];
  if (ahead.behind[at] > limit) return false;
  const int64_t live = live_;
  bool sure = false;
  WithUnitPut(unit, /*whole=*/true, [&](int64_t most) {
    sure = most <= limit && ahead.before[at] + live_ - live <= limit;
  });
  return sure;
}

void PartialOrder::Take(int32_t unit) {
  PutReady(unit);
  Advance(/*within_limit=*/true);
}

int64_t PartialOrder::Complete() { return Advance(/*within_limit=*/false); }

void PartialOrder::Return(size_t mark) {
  const auto set_ready = [this](int32_t unit) {
    ready_[unit / 64] |= uint64_t{1} << unit % 64;
    ++ready_count_[of(unit).region];
  };
  for (; events_.size() > mark; events_.pop_back()) {
    const auto [step, unit, part] = events_.back();
    switch (step) {
      case Step::kUnit:
        if (of(unit).works) Retain(unit);
        SetDone(unit, false);
        ticks_put_ -= of(unit).end - of(unit).begin;
        Unuse(of(unit).begin, of(unit).end);
        if (of(unit).works) set_ready(unit);
        break;
      case Step::kOpen: set_ready(unit); break;
      case Step::kPart: {
        const UnitPart& put = of(unit).parts[part];
        ticks_put_ -= put.end - put.begin;
        Unuse(put.begin, put.end);
        break;
      }
      case Step::kEnter: frames_.pop_back(); break;
      case Step::kLeave:
        frames_.push_back({unit < 0 ? 0 : of(unit).parts[part].region, unit, part});
        break;
      case Step::kClose:
        Retain(unit);
        SetDone(unit, false);
        break;
    }
  }
}

// Visits the units that PutBefore would put, in its order.
template <class Visit>
void PartialOrder::VisitMissing(int32_t unit, const Visit& visit) const {
  absl::InlinedVector<int32_t, 16> seen;
  const auto walk = [&](const auto& self, int32_t of_unit) -> void {
    for (const int32_t before : of(of_unit).before) {
      if (IsDone(before) || std::find(seen.begin(), seen.end(), before) != seen.end()) continue;
      seen.push_back(before);
      self(self, before);
      visit(before);
    }
  };
  walk(walk, unit);
}

template <class Function>
void PartialOrder::WithUnitPut(int32_t unit, bool whole, const Function& function) const {
  absl::InlinedVector<std::pair<Tick, Tick>, 16> used;
  int64_t most = live_;
  const auto use = [&](Tick begin, Tick end) {
    most = std::max(most, Use(begin, end));
    used.emplace_back(begin, end);
  };
  VisitMissing(unit, [&](int32_t before) { use(of(before).begin, of(before).end); });
  if (whole || of(unit).parts.empty()) {
    use(of(unit).begin, of(unit).end);
  } else {
    for (const UnitPart& part : of(unit).parts) {
      if (part.region >= 0) break;
      use(part.begin, part.end);
    }
  }
  function(most);
  for (; !used.empty(); used.pop_back()) Unuse(used.back().first, used.back().second);
}

bool PartialOrder::Fits(int32_t unit) const {
  const int64_t limit = tables_->limit_bytes;
  const GameUnit& put = of(unit);
  const bool alone = std::all_of(put.before.begin(), put.before.end(),
                                 [this](int32_t before) { return IsDone(before); });
  if (alone && live_ + put.grows_at_most <= limit) return true;
  bool fits = false;
  WithUnitPut(unit, /*whole=*/false, [&](int64_t most) { fits = most <= limit; });
  return fits;
}

int64_t PartialOrder::GrowthOf(int32_t unit) const {
  const int64_t before = live_;
  int64_t growth = 0;
  WithUnitPut(unit, /*whole=*/false, [&](int64_t) { growth = live_ - before; });
  return growth;
}

std::vector<int32_t> PartialOrder::LastUnits(int count) const {
  std::vector<int32_t> last;
  for (size_t e = events_.size(); e-- > 0 && std::ssize(last) < count;) {
    const auto [step, unit, part] = events_[e];
    if (step == Step::kEnter) break;
    const bool put = step == Step::kUnit || step == Step::kClose;
    if (put && of(unit).works && of(unit).region == region()) last.push_back(unit);
  }
  return last;
}

std::vector<Tick> PartialOrder::Ticks() const {
  std::vector<Tick> ticks;
  ticks.reserve(ticks_put_);
  const auto append = [&ticks](Tick begin, Tick end) {
    for (Tick t = begin; t < end; ++t) ticks.push_back(t);
  };
  for (const auto& [step, unit, part] : events_) {
    if (step == Step::kUnit) append(of(unit).begin, of(unit).end);
    if (step == Step::kPart) append(of(unit).parts[part].begin, of(unit).parts[part].end);
  }
  return ticks;
}

}  // namespace mallocgame
