#include "mallocgame/game/priority/copy_times.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

namespace mallocgame {
namespace {

constexpr Tick kStateTicks = 32;  // ticks between two states that are kept
constexpr int kSoonBlocks = 4;    // of so many ticks: so far a change saves stalls, as a rule

}  // namespace

int64_t CopyTimes::Run(const Arrangement& arrangement) {
  const int64_t stall = Try(arrangement, std::numeric_limits<int64_t>::max());
  Keep();
  return stall;
}

int64_t CopyTimes::Try(const Arrangement& arrangement, int64_t most) {
  if (!is_kept_) TakeBack();
  arrangement_ = &arrangement;
  tables_ = &arrangement.tables();
  most_ = most;
  transfers_.Update(arrangement);
  if (transfers_.begun_anew()) {
    const Tick ticks = tables_->program.ticks();
    states_.assign(ticks / kStateTicks + 1, {});
    stall_of_.assign(ticks + 1, {});
    stall_of_block_.assign(ticks / kStateTicks + 1, {});
    stall_ = {};
    idle_of_.resize(ticks);
    for (Tick t = 0; t < ticks; ++t) idle_of_[t] = arrangement.idle_times(t);
    moved_.clear();
    pin_turns_.assign(tables_->tables.fetched_pins.size(), 0);
    services_.clear();
  }
  is_kept_ = false;
  FindChanges();
  savings_.resize(changes_.size() + 1);
  savings_.back() = {};
  for (size_t i = changes_.size(); i-- > 0;)
    savings_[i] = savings_[i + 1] + StallsSoon(changes_[i].begin);
  for (next_change_ = 0; next_change_ < changes_.size();) {
    if (IsTooMuch(savings_[next_change_]) || !PlayFrom(next_change_)) break;
  }
  return ValueOf(stall_);
}

int64_t CopyTimes::ValueOf(const Times& stall) const {
  return tables_->Value(arrangement_->compute_times() + stall) - arrangement_->compute_ps();
}

// Whether the stalls are too much, even with so much less of them.
bool CopyTimes::IsTooMuch(const Times& savings) const {
  return ValueOf(stall_) > most_ && ValueOf(stall_ - savings) > most_;
}

void CopyTimes::Keep() {
  is_kept_ = true;
  transfers_.Keep();
  for (const auto& [tick, idle] : moved_) idle_of_[tick] = idle;
  moved_.clear();
  journal_.services.clear();
  journal_.stalls.clear();
  journal_.pin_turns.clear();
  journal_.num_states = 0;
}

void CopyTimes::TakeBack() {
  const auto restore = [](auto& journal, auto& values) {
    for (; !journal.empty(); journal.pop_back())
      values[journal.back().first] = journal.back().second;
  };
  restore(journal_.services, services_);
  for (; !journal_.stalls.empty(); journal_.stalls.pop_back())
    SetStall(journal_.stalls.back().first, journal_.stalls.back().second);
  restore(journal_.pin_turns, pin_turns_);
  while (journal_.num_states > 0) {
    auto& [block, state] = journal_.states[--journal_.num_states];
    std::swap(states_[block], state);
  }
}

void CopyTimes::FindChanges() {
  changes_.clear();
  for (const Tick tick : transfers_.moved()) moved_.emplace_back(tick, Times{});
  std::erase_if(moved_, [this](auto& moved) {
    moved.second = arrangement_->idle_times(moved.first);
    return moved.second == idle_of_[moved.first];
  });
  for (const auto& [tick, idle] : moved_) changes_.push_back({tick, tick + 1, -1});
  services_.resize(transfers_.size());
  for (const auto& [id, kept] : transfers_.changed()) {
    if (kept.residence >= 0) {
      // What is due before its bytes are free begins then.
      const Tick begin = std::min(kept.free_from, services_[id].begin);
      changes_.push_back({begin, services_[id].done, -1});
    }
    if (!transfers_.Has(id)) continue;
    const Tick begin = std::min(transfers_[id].free_from, transfers_[id].deadline);
    changes_.push_back({begin, begin, id});
    SetService(id, {});
  }
  std::sort(changes_.begin(), changes_.end(), [](const Change& a, const Change& b) {
    return std::tuple(a.begin, a.added) < std::tuple(b.begin, b.added);
  });
}

void CopyTimes::SetService(int32_t id, const Service& service) {
  journal_.services.emplace_back(id, services_[id]);
  services_[id] = service;
}

// Replaces the state that is kept for this tick.
void CopyTimes::KeepState(Tick tick) {
  const size_t block = tick / kStateTicks;
  if (journal_.num_states == journal_.states.size()) journal_.states.emplace_back();
  auto& [place, state] = journal_.states[journal_.num_states++];
  place = block;
  std::swap(state, states_[block]);
  states_[block].queue.assign(queue_.begin(), queue_.end());
  states_[block].ready = ready_;
}

// The stalls that a change which has begun, or goes on, at this tick may save.
Times CopyTimes::StallsSoon(Tick tick) const {
  const auto begin = stall_of_block_.begin() + tick / kStateTicks;
  return std::accumulate(
      begin, begin + std::min<std::ptrdiff_t>(kSoonBlocks, stall_of_block_.end() - begin), Times{});
}

void CopyTimes::SetStall(Tick tick, const Times& stall) {
  const Times more = stall - stall_of_[tick];
  stall_ += more;
  stall_of_[tick] = stall;
  stall_of_block_[tick / kStateTicks] += more;
}

// Plays from the block of this change on, until the state is as it was. False: it was broken off.
bool CopyTimes::PlayFrom(size_t first_change) {
  ++play_;
  from_ = changes_[first_change].begin / kStateTicks * kStateTicks;
  const State& state = states_[from_ / kStateTicks];
  queue_.assign(state.queue.begin(), state.queue.end());
  for (const Queued& queued : queue_) {
    services_[queued.transfer].play = play_;
    services_[queued.transfer].is_done = false;
  }
  ready_ = state.ready;
  soon_.clear();
  changed_until_ = from_;
  added_.clear();
  const Tick ticks = tables_->program.ticks();
  for (Tick t = from_; t <= ticks; ++t) {
    if (t > from_ && t % kStateTicks == 0) {
      for (; next_change_ < changes_.size() && changes_[next_change_].begin < t; ++next_change_) {
        const Change& change = changes_[next_change_];
        changed_until_ = std::max(changed_until_, change.end);
        if (change.added >= 0) added_.push_back(change.added);
      }
      if (IsAsBefore(t)) return true;
      KeepState(t);
      if (IsTooMuch(StallsSoon(t) + savings_[next_change_])) return false;
    }
    PlayTick(t);
  }
  next_change_ = changes_.size();
  return true;
}

// Whether before tick `t` nothing is left of the changes, so that all goes on as it did.
bool CopyTimes::IsAsBefore(Tick t) const {
  const State& kept = states_[t / kStateTicks];
  return changed_until_ <= t && ready_ == kept.ready &&
         std::equal(queue_.begin(), queue_.end(), kept.queue.begin(), kept.queue.end()) &&
         std::all_of(added_.begin(), added_.end(), [this](int32_t id) { return IsDone(id); });
}

void CopyTimes::PlayTick(Tick t) {
  turn_ = 0;
  Times stall;
  const bool inside = t < tables_->program.ticks();
  // A copy window ends where its segment ends. In a loop every pass waits there.
  const bool starts = tables_->tables.starts_segment[t] != 0;
  if (inside && (starts || !Outstanding())) {
    const int64_t passes = tables_->passes[starts && t > 0 ? t - 1 : t];
    while (!queue_.empty()) stall += ServeFront(t) * passes;
    Outstanding();
  }
  const int64_t passes = tables_->passes[t];
  // Evictions that are due at this tick go before the prefetches into the same bytes.
  for (const int32_t id : transfers_.due_at(t)) {
    if (!IsBegun(id)) Issue(id, t);
  }
  for (const int32_t id : transfers_.due_at(t)) {
    while (!IsDone(id)) stall += ServeFront(t) * passes;
  }
  stall += FillPins(t) * passes;
  if (inside) {
    if (tables_->scope_ends[t + 1] != 0) {
      // What must be done when the scope ends can't begin behind it.
      for (const int32_t id : transfers_.due_at(t + 1)) {
        if (IsBegun(id) || transfers_[id].free_from > t ||
            transfers_[id].scope != tables_->scopes[t])
          continue;
        Issue(id, t);
        if (Outstanding()) continue;
        while (!queue_.empty()) stall += ServeFront(t) * passes;
      }
    }
    for (const int32_t id : transfers_.free_at(t)) {
      if (CanBegin(id)) SetReady(id);
    }
    for (const int32_t id : soon_) SetReady(id);
    soon_.clear();
    ServeIdle(t);
    for (const int32_t id : soon_) SetReady(id);
    soon_.clear();
  }
  if (stall == stall_of_[t]) return;
  journal_.stalls.emplace_back(t, stall_of_[t]);
  SetStall(t, stall);
}

// Copies that fill pins at this tick come behind all that the channel has, for which the program
// waits; returns how long. Their own time is part of the program's.
Times CopyTimes::FillPins(Tick t) {
  const GameTables& tables = tables_->tables;
  Times stall;
  for (size_t k = tables.FirstFetched(t); k < pin_turns_.size() && tables.FetchedAt(k) == t; ++k) {
    while (!queue_.empty()) stall += ServeFront(t);
    Outstanding();
    journal_.pin_turns.emplace_back(k, pin_turns_[k]);
    pin_turns_[k] = turn_++;
  }
  return stall;
}

bool CopyTimes::IsBegun(int32_t id) const {
  const Service& service = services_[id];
  return service.play == play_ || (service.begin >= 0 && service.begin < from_);
}

// What had begun before this play and was done before it isn't in the queue that it began with.
bool CopyTimes::IsDone(int32_t id) const {
  const Service& service = services_[id];
  return service.play == play_ ? service.is_done : service.begin >= 0 && service.begin < from_;
}

bool CopyTimes::CanBegin(int32_t id) const {
  if (IsBegun(id)) return false;
  const auto& after = transfers_[id].after;
  return std::all_of(after.begin(), after.end(),
                     [this](int32_t eviction) { return eviction < 0 || IsDone(eviction); });
}

void CopyTimes::SetReady(int32_t id) {
  const auto is_before = [this](int32_t a, int32_t b) { return transfers_.IsBefore(a, b); };
  if (!IsBegun(id))
    ready_.insert(std::upper_bound(ready_.begin(), ready_.end(), id, is_before), id);
}

// Serves the transfer at the front of the queue, which is done at tick `done`; returns the time
// that this takes.
Times CopyTimes::ServeFront(Tick done) {
  const Queued front = queue_.front();
  queue_.pop_front();
  Service served = services_[front.transfer];
  served.done = done;
  served.is_done = true;
  SetService(front.transfer, served);
  for (const int32_t id : transfers_.waiting_for(front.transfer)) {
    // What is free from this tick on, or later, is asked then.
    if (transfers_[id].free_from < done && CanBegin(id) &&
        std::find(soon_.begin(), soon_.end(), id) == soon_.end())
      soon_.push_back(id);
  }
  return front.left_ps;
}

// Counts the outstanding copies and says whether there are no more than may be.
bool CopyTimes::Outstanding() {
  outstanding_ = {0, 0};
  last_issued_ = {-1, -1};
  for (const Queued& queued : queue_) {
    const Transfer& transfer = transfers_[queued.transfer];
    outstanding_[transfer.eviction] += last_issued_[transfer.eviction] != transfer.residence;
    last_issued_[transfer.eviction] = transfer.residence;
  }
  const Hardware& hardware = tables_->game.hardware();
  return outstanding_[0] <= hardware.max_outstanding_prefetches &&
         outstanding_[1] <= hardware.max_outstanding_evictions;
}

void CopyTimes::ServeIdle(Tick t) {
  Times left = arrangement_->idle_times(t);
  // In the order of the queue, whose front one of the channels may have served already.
  const auto serve = [this](int64_t Times::* of, int64_t& left_ps) {
    for (auto next = queue_.begin(); left_ps > 0 && next != queue_.end(); ++next) {
      const int64_t served_ps = std::min(next->left_ps.*of, left_ps);
      next->left_ps.*of -= served_ps;
      left_ps -= served_ps;
    }
  };
  do {
    serve(&Times::own, left.own);
    serve(&Times::other, left.other);
    while (!queue_.empty() && queue_.front().left_ps == Times{}) ServeFront(t + 1);
  } while ((left.own > 0 || left.other > 0) && IssueNext(t));
}

// Begins the transfer that is needed first of those that can begin.
bool CopyTimes::IssueNext(Tick t) {
  return std::any_of(ready_.begin(), ready_.end(), [&](int32_t id) { return TryIssue(id, t); });
}

// Begins the transfer at tick `t` if it may begin there and there are not too many.
bool CopyTimes::TryIssue(int32_t id, Tick t) {
  const Transfer& transfer = transfers_[id];
  if (transfer.scope != tables_->scopes[t]) return false;
  const Hardware& hardware = tables_->game.hardware();
  const std::array<int32_t, 2> most = {hardware.max_outstanding_prefetches,
                                       hardware.max_outstanding_evictions};
  const bool another = last_issued_[transfer.eviction] != transfer.residence;
  if (another && outstanding_[transfer.eviction] >= most[transfer.eviction]) return false;
  outstanding_[transfer.eviction] += another;
  last_issued_[transfer.eviction] = transfer.residence;
  Issue(id, t);
  return true;
}

void CopyTimes::Issue(int32_t id, Tick tick) {
  SetService(id, {tick, services_[id].done, turn_++, play_, false});
  const auto at = std::find(ready_.begin(), ready_.end(), id);
  if (at != ready_.end()) ready_.erase(at);
  queue_.push_back({id, transfers_[id].service_ps});
}

Plan CopyTimes::ToPlan(const Arrangement& arrangement) const {
  const Program& program = tables_->program;
  Plan plan = AllMainPlan(program, tables_->game.hardware());
  const std::vector<Copy> of_pins = std::exchange(plan.copies, {});
  const size_t first = plan.residences.size();
  // Begin, turn, transfer, its residence's place. A place of -1: the transfer is that of a pin.
  std::vector<std::tuple<Tick, int32_t, int32_t, int32_t>> issued;
  for (int32_t k = 0; k < std::ssize(pin_turns_); ++k)
    issued.emplace_back(tables_->tables.FetchedAt(k), pin_turns_[k], k, -1);
  std::vector<int32_t> residence_of(arrangement.placed().size(), -1);  // without the holes
  for (size_t place = 0; place < arrangement.placed().size(); ++place) {
    const PlannedResidence& planned = arrangement.placed()[place];
    if (planned.buffer < 0) continue;
    const auto r = static_cast<int32_t>(plan.residences.size() - first);
    residence_of[place] = r;
    transfers_.VisitOf(static_cast<int32_t>(place), [&](int32_t id) {
      issued.emplace_back(services_[id].begin, services_[id].turn, id, place);
    });
    const BufferId buffer = tables_->tables.buffers[planned.buffer].id;
    plan.residences.push_back({buffer, planned.offset, planned.need, planned.end});
    if (!planned.preload) continue;
    plan.copies.push_back({CopyKind::kPrefetch, ResidenceId(first + r), 0,
                           tables_->decision(planned.buffer, planned.first).tick, 0,
                           arrangement.size(planned), true, -1});
  }
  for (size_t d = 0; d < arrangement.served_by().size(); ++d) {
    if (arrangement.served_by()[d] < 0) continue;
    plan.served_by[tables_->tables.decisions[d].access.index()] =
        ResidenceId(first + residence_of[arrangement.served_by()[d]]);
  }
  std::sort(issued.begin(), issued.end());
  for (const auto& [begin, turn, id, place] : issued) {
    if (place < 0) {
      plan.copies.push_back(of_pins[id]);
      continue;
    }
    const int32_t r = residence_of[place];
    const Transfer& transfer = transfers_[id];
    const Tick done = services_[id].done;
    Residence& residence = plan.residences[first + r];
    residence.begin = std::min(residence.begin, begin);
    residence.end = std::max(residence.end, done);
    plan.copies.push_back({transfer.eviction ? CopyKind::kEviction : CopyKind::kPrefetch,
                           ResidenceId(first + r), begin, done, transfer.part_begin,
                           transfer.part_end, false,
                           transfer.eviction ? -1 : arrangement.placed()[place].replaces});
  }
  return plan;
}

}  // namespace mallocgame
