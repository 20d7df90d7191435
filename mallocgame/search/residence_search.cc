#include "mallocgame/search/residence_search.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <tuple>

#include "mallocgame/base/rounding.h"
#include "mallocgame/search/game_variants.h"

namespace mallocgame {
namespace {

constexpr int64_t kSeldomMovedBytes = 16 << 10;  // smaller buffers are seldom worth a move
constexpr int32_t kNear = 48;                    // decisions, to either side
constexpr int kFills = 3, kManyFills = 32;       // accesses that freed bytes are offered to
constexpr int kOffsets = 3;                      // that an ejection chooses from
constexpr size_t kMostEjected = 12, kMostNear = 512;

std::shared_ptr<const Game> AskingAboutSmall(const Game& game) {
  const std::shared_ptr<const Game> fine = GameOfSmallBuffers(game);
  return fine != nullptr ? fine : game.shared_from_this();
}

}  // namespace

ResidenceSearch::ResidenceSearch(const Game& game, const Plan& plan)
    : game_(AskingAboutSmall(game)), other_(GameAtOtherPrices(*game_)),
      tables_(*game_, other_.get()), repeats_(*game_), arrangement_(tables_),
      position_of_(game_->tables().decisions.size()) {
  const GameTables& tables = game_->tables();
  std::vector<bool> preloaded(plan.residences.size());
  // All bytes are reserved from the start of the last slice on, while the first ones may be filled
  // before the others are free.
  std::vector<Tick> reserved(plan.residences.size());
  for (const Copy& copy : plan.copies) {
    if (copy.kind != CopyKind::kPrefetch) continue;
    if (copy.preload) preloaded[copy.residence.index()] = true;
    Tick& from = reserved[copy.residence.index()];
    from = std::max(from, copy.begin);
  }
  for (size_t b = 0; b < tables.buffers.size(); ++b) {
    const auto buffer = static_cast<int32_t>(b);
    const auto of = tables_.decisions_of(buffer);
    const auto size = static_cast<int32_t>(of.size());
    for (int32_t i = 0; i < size; ++i) position_of_[of[i]] = i;
    const auto residence = [&](int32_t i) {
      return plan.served_by[tables.decisions[of[i]].access.index()];
    };
    for (int32_t i = 0; i < size;) {
      const ResidenceId r = residence(i);
      const int32_t first = i;
      while (i < size && residence(i) == r) ++i;
      if (!r.valid()) continue;
      const bool preload = first == 0 && preloaded[r.index()];
      const auto planned = Planned(buffer, first, i - 1, preload);
      if (!planned.has_value()) continue;
      const Residence& is = plan.residences[r.index()];
      PlaceNear(*planned, std::clamp(reserved[r.index()], planned->earliest_fetch, planned->need),
                is.offset);
    }
  }
  for (size_t d = 0; d < tables.decisions.size(); ++d) {
    if (tables_.may_be_fast[d] == 0) continue;
    all_.push_back(static_cast<int32_t>(d));
  }
  FindLarge();
  trial_ = arrangement_.compute_ps() + copy_times_.Run(arrangement_);
  Accept();
  Remember();
}

void ResidenceSearch::FindLarge() {
  large_.clear();
  const GameTables& tables = game_->tables();
  std::copy_if(all_.begin(), all_.end(), std::back_inserter(large_), [&](int32_t d) {
    return tables.buffers[tables.decisions[d].buffer].size_bytes >= kSeldomMovedBytes;
  });
  if (large_.empty()) large_ = all_;
}

bool ResidenceSearch::Try(int64_t most) {
  // Stalls only add to it.
  if (arrangement_.steps().empty() || arrangement_.compute_ps() > most) return false;
  trial_ =
      arrangement_.compute_ps() + copy_times_.Try(arrangement_, most - arrangement_.compute_ps());
  return trial_ <= most;
}

void ResidenceSearch::Accept() {
  copy_times_.Keep();
  latency_ = trial_;
  for (const Arrangement::Step& step : arrangement_.steps()) changed_.push_back(step.residence);
  arrangement_.Settle();
}

void ResidenceSearch::Reject() {
  while (!arrangement_.steps().empty()) arrangement_.Undo();
}

void ResidenceSearch::Remember() {
  remembered_.resize(arrangement_.placed().size());
  for (const int32_t r : changed_) {
    if (r < std::ssize(remembered_)) remembered_[r] = arrangement_.placed()[r];
  }
  changed_.clear();
  remembered_ps_ = latency_;
}

void ResidenceSearch::PlaceRemembered(Arrangement& arrangement) const {
  for (const PlannedResidence& planned : remembered_) {
    if (planned.buffer >= 0) arrangement.PlaceAt(planned, planned.begin, planned.offset);
  }
}

void ResidenceSearch::Return() {
  arrangement_.Clear();
  PlaceRemembered(arrangement_);
  arrangement_.Settle();
  remembered_.assign(arrangement_.placed().begin(), arrangement_.placed().end());
  changed_.clear();
  latency_ = arrangement_.compute_ps() + copy_times_.Run(arrangement_);
}

Plan ResidenceSearch::Remembered() const {
  Arrangement arrangement(tables_);
  PlaceRemembered(arrangement);
  CopyTimes times;
  times.Run(arrangement);
  return times.ToPlan(arrangement);
}

int32_t ResidenceSearch::AnyDecision(Rng& rng) const {
  return rng.Pick(rng.Below(8) == 0 ? all_ : large_);
}

// A decision near another one in time.
int32_t ResidenceSearch::Near(int32_t decision, Rng& rng) const {
  const auto count = static_cast<int32_t>(all_.size());
  const auto at =
      static_cast<int32_t>(std::lower_bound(all_.begin(), all_.end(), decision) - all_.begin());
  const int32_t begin = std::max(0, at - kNear), end = std::min(count, at + kNear + 1);
  return all_[begin + rng.Below(end - begin)];
}

// Whether main memory serves it, but fast memory could.
bool ResidenceSearch::MayServe(int32_t decision) const {
  return tables_.may_be_fast[decision] != 0 && arrangement_.served_by()[decision] < 0;
}

// The residence from `first` on to `last`, or farther where it has to serve what a loop or a
// transfer covers.
std::optional<PlannedResidence> ResidenceSearch::Planned(int32_t buffer, int32_t first,
                                                         int32_t last, bool preload) const {
  const auto size = static_cast<int32_t>(tables_.decisions_of(buffer).size());
  Tick covered = 0;
  for (int32_t i = first; i < size; ++i) {
    const Decision& d = tables_.decision(buffer, i);
    if (i > last && d.tick >= covered) break;
    covered = std::max(covered, d.covered_until);
    last = std::max(last, i);
  }
  return tables_.Plan(buffer, first, last, preload);
}

// Half of the prefetches begin as late as their time is hidden, the others anywhere.
Tick ResidenceSearch::AnyBegin(const PlannedResidence& planned, Rng& rng) const {
  const uint32_t kind = rng.Below(4);
  if (kind < 2) return planned.latest_fetch;
  if (kind == 2) return planned.earliest_fetch;
  const auto range = static_cast<uint32_t>(planned.need - planned.earliest_fetch);
  const uint32_t most = rng.Below(2) == 0 ? std::min<uint32_t>(range, 16) : range;
  return planned.need - static_cast<Tick>(rng.Below(most + 1));
}

// At the offset if it is free, else where there is room, if need be with no time for its prefetch.
bool ResidenceSearch::PlaceNear(const PlannedResidence& planned, Tick begin, int64_t offset) {
  if (planned.preload && arrangement_.preloads() >= game_->hardware().max_preloads) return false;
  return arrangement_.Place(planned, begin, offset) ||
         (begin < planned.need && arrangement_.Place(planned, planned.need, offset));
}

// Places a residence at an offset at which others lie, which look for another place.
bool ResidenceSearch::Eject(const PlannedResidence& planned, Tick begin, Rng& rng) {
  const int64_t bytes = arrangement_.size(planned), alignment = game_->hardware().alignment_bytes,
                lowest = RoundUp(game_->tables().reserved.Most(begin, planned.end), alignment),
                highest = (game_->usable_bytes() - bytes) / alignment * alignment;
  if (lowest > highest) return false;
  if (!arrangement_.FindOver(begin, planned.end, kMostNear, over_) || over_.empty()) return false;
  const auto lies_at = [&](const PlannedResidence& one, int64_t offset) {
    return one.offset < offset + bytes && offset < one.offset + arrangement_.size(one);
  };
  int64_t best = -1;
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kOffsets; ++i) {
    const PlannedResidence& other = arrangement_.placed()[rng.Pick(over_)];
    const int64_t wanted =
        rng.Below(2) == 0 ? other.offset
                          : RoundUp(other.offset + arrangement_.size(other), alignment) - bytes;
    const int64_t offset = std::clamp(wanted / alignment * alignment, lowest, highest);
    double loss = 0;
    size_t count = 0;
    for (const int32_t r : over_) {
      const PlannedResidence& one = arrangement_.placed()[r];
      if (!lies_at(one, offset)) continue;
      ++count;
      loss +=
          static_cast<double>(arrangement_.size(one)) * static_cast<double>(one.end - one.begin);
    }
    if (count > kMostEjected || loss >= least) continue;
    least = loss;
    best = offset;
  }
  if (best < 0) return false;
  std::vector<PlannedResidence> ejected;
  for (const int32_t r : over_) {
    const PlannedResidence& one = arrangement_.placed()[r];
    if (!lies_at(one, best)) continue;
    ejected.push_back(one);
    arrangement_.Remove(r);
  }
  arrangement_.PlaceAt(planned, begin, best);
  // The largest choose first.
  std::sort(ejected.begin(), ejected.end(),
            [this](const PlannedResidence& a, const PlannedResidence& b) {
              return std::tuple(-arrangement_.size(a), a.offset, a.need) <
                     std::tuple(-arrangement_.size(b), b.offset, b.need);
            });
  for (const PlannedResidence& one : ejected) PlaceNear(one, one.begin, -1);
  return true;
}

// Places a residence, if need be in the place of others.
bool ResidenceSearch::Serve(const PlannedResidence& planned, Tick begin, int64_t offset, Rng& rng) {
  if (planned.preload && arrangement_.preloads() >= game_->hardware().max_preloads) return false;
  return arrangement_.Place(planned, begin, offset) ||
         (begin < planned.need && rng.Below(2) == 0 &&
          arrangement_.Place(planned, planned.need, offset)) ||
         Eject(planned, begin, rng);
}

// Serves these accesses by one residence, whatever served some of them.
bool ResidenceSearch::ServeAll(int32_t buffer, int32_t first, int32_t last, bool preload,
                               Rng& rng) {
  const auto planned = Planned(buffer, first, last, preload);
  if (!planned.has_value()) return false;
  const auto of = tables_.decisions_of(buffer);
  int64_t offset = -1;
  for (int32_t i = planned->first; i <= planned->last; ++i) {
    const int32_t r = arrangement_.served_by()[of[i]];
    if (r < 0) continue;
    if (offset < 0) offset = arrangement_.placed()[r].offset;
    arrangement_.Remove(r);
  }
  return Serve(*planned, AnyBegin(*planned, rng), offset, rng);
}

bool ResidenceSearch::Insert(int32_t decision, Rng& rng) {
  const int32_t buffer = game_->tables().decisions[decision].buffer;
  const auto of = tables_.decisions_of(buffer);
  const auto size = static_cast<int32_t>(of.size());
  int32_t first = position_of_[decision], last = first;
  // As far as main memory serves them; farther it may coalesce.
  const uint32_t kind = rng.Below(4);
  const auto goes_on = [&](int32_t i) {
    return i >= 0 && i < size && tables_.may_be_fast[of[i]] != 0 &&
           (kind == 3 ? rng.Below(8) != 0 : kind != 0 && MayServe(of[i])) && rng.Below(4) != 0;
  };
  while (goes_on(last + 1)) ++last;
  while (goes_on(first - 1)) --first;
  const bool preload = first == 0 && tables_.CanBePreloaded(buffer) &&
                       arrangement_.preloads() < game_->hardware().max_preloads &&
                       rng.Below(4) == 0;
  return ServeAll(buffer, first, last, preload, rng);
}

bool ResidenceSearch::Cut(int32_t r, int32_t at, Rng& rng) {
  const PlannedResidence whole = arrangement_.placed()[r];
  if (at <= whole.first) at = whole.first + 1;
  if (at > whole.last) return false;
  arrangement_.Remove(r);
  const uint32_t kind = rng.Below(4);
  bool any = false;
  if (kind != 0) {
    const auto left = Planned(whole.buffer, whole.first, at - 1, whole.preload);
    if (left.has_value() && left->last < at)
      any |=
          PlaceNear(*left, std::clamp(whole.begin, left->earliest_fetch, left->need), whole.offset);
  }
  if (kind != 1) {
    const auto right = Planned(whole.buffer, at, whole.last, false);
    if (right.has_value()) any |= PlaceNear(*right, AnyBegin(*right, rng), whole.offset);
  }
  return any;
}

bool ResidenceSearch::Coalesce(int32_t r, Rng& rng) {
  const PlannedResidence one = arrangement_.placed()[r];
  const auto of = tables_.decisions_of(one.buffer);
  int32_t first = one.first, last = one.last;
  if (rng.Below(2) == 0) {
    ++last;
    while (last < std::ssize(of) && arrangement_.served_by()[of[last]] < 0) ++last;
    if (last >= std::ssize(of)) return false;
    last = arrangement_.placed()[arrangement_.served_by()[of[last]]].last;
  } else {
    --first;
    while (first >= 0 && arrangement_.served_by()[of[first]] < 0) --first;
    if (first < 0) return false;
    first = arrangement_.placed()[arrangement_.served_by()[of[first]]].first;
  }
  return ServeAll(one.buffer, first, last, one.preload, rng);
}

bool ResidenceSearch::Shift(int32_t r, Rng& rng) {
  PlannedResidence shifted = arrangement_.placed()[r];
  const auto planned = Planned(shifted.buffer, shifted.first, shifted.last, shifted.preload);
  if (!planned.has_value()) return false;
  const bool can_hold = planned->eviction_deadline > planned->end;
  Tick begin = shifted.begin;
  if (can_hold && (!planned->fetched || rng.Below(2) == 0)) {
    const bool held = shifted.end > planned->end;
    shifted.end = held ? planned->end : planned->eviction_deadline;
  } else {
    if (!planned->fetched) return false;
    begin = AnyBegin(*planned, rng);
    if (begin == shifted.begin) return false;
  }
  arrangement_.Remove(r);
  return Serve(shifted, begin, shifted.offset, rng);
}

bool ResidenceSearch::Relocate(int32_t r, Rng& rng) {
  const PlannedResidence one = arrangement_.placed()[r];
  arrangement_.Remove(r);
  const Tick begin = rng.Below(2) == 0 ? one.begin : AnyBegin(one, rng);
  if (rng.Below(2) == 0 && arrangement_.Place(one, begin)) return true;
  return Eject(one, begin, rng);
}

// All accesses of a buffer, or those from one on: a block move.
bool ResidenceSearch::ReassignBuffer(int32_t decision, Rng& rng) {
  const int32_t buffer = game_->tables().decisions[decision].buffer;
  const auto of = tables_.decisions_of(buffer);
  const int32_t from = rng.Below(2) == 0 ? 0 : position_of_[decision];
  const auto last = static_cast<int32_t>(of.size()) - 1;
  if (rng.Below(2) == 0) return ServeAll(buffer, from, last, false, rng);
  bool any = false;
  for (int32_t i = from; i <= last; ++i) {
    const int32_t r = arrangement_.served_by()[of[i]];
    if (r < 0) continue;
    any = true;
    if (rng.Below(4) != 0) arrangement_.Remove(r);
  }
  return any;
}

bool ResidenceSearch::Preload(int32_t buffer, Rng& rng) {
  const int32_t r = arrangement_.served_by()[tables_.decisions_of(buffer)[0]];
  int32_t last = 0;
  if (r >= 0) {
    const PlannedResidence one = arrangement_.placed()[r];
    last = one.last;
    if (one.preload) return ServeAll(buffer, 0, last, false, rng);
  }
  if (arrangement_.preloads() >= game_->hardware().max_preloads) {
    // Another one gives way.
    std::vector<int32_t> others;
    for (int32_t other = 0; other < std::ssize(arrangement_.placed()); ++other) {
      const PlannedResidence& one = arrangement_.placed()[other];
      if (one.buffer >= 0 && one.preload) others.push_back(other);
    }
    const int32_t other = rng.Pick(others);
    const PlannedResidence one = arrangement_.placed()[other];
    arrangement_.Remove(other);
    if (const auto fetched = Planned(one.buffer, one.first, one.last, false))
      PlaceNear(*fetched, fetched->latest_fetch, one.offset);
  }
  return ServeAll(buffer, 0, last, true, rng);
}

// Offers what a trial has freed to accesses nearby.
void ResidenceSearch::Fill(Rng& rng) {
  int32_t freed = -1;
  Tick begin = 0, end = 0;
  for (const Arrangement::Removal& removal : arrangement_.removals()) {
    if (rng.Below(2) != 0 && freed >= 0) continue;
    const PlannedResidence& planned = removal.planned;
    freed = tables_.decisions_of(planned.buffer)[planned.first];
    begin = planned.begin;
    end = planned.end;
  }
  if (freed < 0) return;
  // Decisions stand in the order of time.
  const auto at = [this](Tick tick) {
    return std::lower_bound(all_.begin(), all_.end(), game_->tables().first_decision[tick]) -
           all_.begin();
  };
  const auto from = at(begin), to = at(end);
  if (from >= to) return;
  const int fills = rng.Below(8) == 0 ? kManyFills : kFills;
  for (int i = 0; i < fills; ++i) {
    const int32_t decision = all_[from + rng.Below(to - from)];
    if (!MayServe(decision)) continue;
    const int32_t buffer = game_->tables().decisions[decision].buffer;
    const int32_t first = position_of_[decision];
    int32_t last = first;
    const auto of = tables_.decisions_of(buffer);
    const bool grows = rng.Below(2) == 0;
    while (grows && last + 1 < std::ssize(of) && MayServe(of[last + 1]) && rng.Below(4) != 0)
      ++last;
    const auto planned = Planned(buffer, first, last, false);
    if (!planned.has_value() ||
        std::any_of(of.begin() + planned->first, of.begin() + planned->last + 1,
                    [this](int32_t d) { return arrangement_.served_by()[d] >= 0; }))
      continue;
    PlaceNear(*planned, AnyBegin(*planned, rng), -1);
  }
}

bool ResidenceSearch::Move(int32_t decision, Rng& rng) {
  const int32_t r = arrangement_.served_by()[decision];
  const int32_t buffer = game_->tables().decisions[decision].buffer;
  const uint32_t kind = rng.Below(16);
  if (kind == 15) return ReassignBuffer(decision, rng);
  if (kind == 14 && game_->hardware().max_preloads > 0 && tables_.CanBePreloaded(buffer))
    return Preload(buffer, rng);
  if (r < 0) return Insert(decision, rng);
  if (kind < 4) {
    arrangement_.Remove(r);
    return true;
  }
  if (kind < 7) return Cut(r, position_of_[decision], rng);
  if (kind < 9) return Coalesce(r, rng);
  if (kind < 12) return Shift(r, rng);
  return Relocate(r, rng);
}

bool ResidenceSearch::Propose(Rng& rng) {
  const int32_t decision = AnyDecision(rng);
  if (Move(decision, rng)) {
    if (rng.Below(4) == 0) Move(Near(decision, rng), rng);
    if (rng.Below(2) == 0) Fill(rng);
  } else {
    Reject();  // The trial is the accepted solution.
  }
  return true;
}

}  // namespace mallocgame
