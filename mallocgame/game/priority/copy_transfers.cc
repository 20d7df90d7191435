#include "mallocgame/game/priority/copy_transfers.h"

#include <algorithm>
#include <utility>

#include "mallocgame/base/rounding.h"

namespace mallocgame {
namespace {

constexpr int64_t kSlices = 4;               // a prefetch has at least so many slices,
constexpr int64_t kMinSliceBytes = 1 << 20;  // unless they would be smaller than this
constexpr size_t kFew = 24;  // of so many changes each is cheaper alone than a walk over all

}  // namespace

void CopyTransfers::Update(const Arrangement& arrangement) {
  moved_.clear();
  begun_anew_ = arrangement.tables().tables.id != game_;
  arrangement_ = &arrangement;
  tables_ = &arrangement.tables();
  if (begun_anew_) Reset(arrangement);
  FindChanged();
  if (changed_.empty()) return;
  gone_.clear();
  come_.clear();
  if (changed_.size() <= std::max(kFew, order_.size() / 16))
    ReplaceChanged();
  else
    ReplaceFrom(changed_[0]);
  for (const int32_t id : come_) {
    begins_with_[first_decision(residences_[id].planned)] = id;
    NoteMoved(residences_[id].planned);
  }

  hurried_.clear();
  refilled_.clear();
  if (2 * (gone_.size() + come_.size()) > order_.size()) {
    for (const int32_t id : order_) {
      if (id < 0) continue;
      if (residences_[id].eviction >= 0) hurried_.push_back(id);
      Refill(id);
    }
  } else {
    for (const int32_t id : gone_) Affect(residences_[id].planned);
    for (const int32_t id : come_) Affect(residences_[id].planned);
  }
  for (const int32_t id : come_) {
    AddEviction(id);
    Refill(id);
  }
  for (const int32_t id : hurried_) Hurry(id);
  for (const int32_t id : refilled_) MakeSlices(id);
  for (const int32_t id : gone_) {
    residences_[id].slices.clear();
    residences_[id].eviction = -1;
    (residences_[id].keeps == keeps_ ? free_residences_ : left_).push_back(id);
  }
  DropUnchanged();
}

void CopyTransfers::Keep() {
  KeepTransfers();
  ++keeps_;
  free_residences_.insert(free_residences_.end(), left_.begin(), left_.end());
  left_.clear();
}

// Finds the places of placed() that hold another residence, or none.
void CopyTransfers::FindChanged() {
  changed_.clear();
  const absl::Span<const uint64_t> stamps = arrangement_->stamps(),
                                   versions = arrangement_->versions();
  const size_t both = std::min(stamps_.size(), stamps.size());
  for (size_t v = 0; v < versions.size(); ++v) {
    if (v < versions_.size() && versions_[v] == versions[v]) continue;
    const size_t end = std::min(both, (v + 1) * Arrangement::kPlaces);
    for (size_t r = v * Arrangement::kPlaces; r < end; ++r) {
      if (stamps_[r] != stamps[r]) changed_.push_back(static_cast<int32_t>(r));
    }
  }
  for (size_t r = both; r < std::max(stamps_.size(), stamps.size()); ++r)
    changed_.push_back(static_cast<int32_t>(r));
  versions_.assign(versions.begin(), versions.end());
}

// Gives a residence the place `r`.
void CopyTransfers::Come(int32_t r) {
  const PlannedResidence& planned = arrangement_->placed()[r];
  int32_t id = -1;
  const auto known = std::find_if(left_.begin(), left_.end(), [&](int32_t left) {
    return residences_[left].place == r && residences_[left].planned == planned;
  });
  if (known != left_.end() && !ranks_changed()) {
    id = *known;
    left_.erase(known);
  } else {
    if (free_residences_.empty()) {
      free_residences_.push_back(static_cast<int32_t>(residences_.size()));
      residences_.emplace_back();
    }
    id = free_residences_.back();
    free_residences_.pop_back();
    residences_[id].planned = planned;
    residences_[id].place = r;
    residences_[id].keeps = keeps_;
  }
  SetRank(id, r);
  order_[r] = id;
  come_.push_back(id);
}

// Where a few places have changed, each residence stays where it is or goes.
void CopyTransfers::ReplaceChanged() {
  const absl::Span<const PlannedResidence> placed = arrangement_->placed();
  const absl::Span<const uint64_t> stamps = arrangement_->stamps();
  const auto is_placed = [&](int32_t r) { return r < std::ssize(stamps) && stamps[r] != 0; };
  std::erase_if(changed_, [&](int32_t r) {
    const int32_t id = r < std::ssize(order_) ? order_[r] : -1;
    if (id < 0) return false;
    if (is_placed(r) && residences_[id].planned == placed[r]) {
      stamps_[r] = stamps[r];
      return true;
    }
    gone_.push_back(id);
    order_[r] = -1;
    return false;
  });
  TakeAway(gone_);
  order_.resize(stamps.size(), -1);
  stamps_.resize(stamps.size());
  for (const int32_t r : changed_) {
    if (r >= std::ssize(stamps)) continue;
    stamps_[r] = stamps[r];
    if (is_placed(r)) Come(r);
  }
}

// Replaces the residences from place `same` on. Some may have another place and be the same.
void CopyTransfers::ReplaceFrom(size_t same) {
  const absl::Span<const uint64_t> stamps = arrangement_->stamps();
  FindKept(same);
  ChangeRanks();
  for (size_t r = same; r < order_.size(); ++r) {
    if (order_[r] >= 0 && !residences_[order_[r]].kept) gone_.push_back(order_[r]);
  }
  TakeAway(gone_);
  order_.resize(same);
  order_.resize(stamps.size(), -1);
  stamps_.assign(stamps.begin(), stamps.end());
  for (size_t r = same; r < stamps.size(); ++r) {
    const int32_t id = kept_[r - same];
    if (id < 0) {
      if (stamps[r] != 0) Come(static_cast<int32_t>(r));
      continue;
    }
    residences_[id].kept = false;
    residences_[id].place = static_cast<int32_t>(r);
    SetRank(id, residences_[id].place);
    order_[r] = id;
  }
}

void CopyTransfers::Reset(const Arrangement& arrangement) {
  game_ = arrangement.tables().tables.id;
  Clear(tables_->program.ticks());
  for (auto* list : {&free_residences_, &order_, &left_}) list->clear();
  residences_.clear();
  stamps_.clear();
  versions_.clear();
  begins_with_.assign(tables_->tables.decisions.size(), -1);
}

// Finds the residences that the arrangement has as before, behind the first `same` ones: those
// that stand in the same order.
void CopyTransfers::FindKept(size_t same) {
  const absl::Span<const PlannedResidence> placed = arrangement_->placed();
  kept_.assign(placed.size() - same, -1);
  for (size_t r = same; r < placed.size(); ++r) {
    if (placed[r].buffer < 0) continue;
    const int32_t id = begins_with_[first_decision(placed[r])];
    if (id >= 0 && rank(id) >= static_cast<int32_t>(same) && residences_[id].planned == placed[r])
      kept_[r - same] = id;
  }
  KeepRising();
  for (const int32_t id : kept_) {
    if (id >= 0) residences_[id].kept = true;
  }
}

// Leaves of kept_ a longest part whose ranks rise, as transfers that are due at one time go by the
// order of their residences.
void CopyTransfers::KeepRising() {
  rising_.clear();  // for each length: the place in kept_ where such a part ends lowest
  before_.assign(kept_.size(), -1);
  const auto rank_at = [this](int32_t place) { return rank(kept_[place]); };
  for (int32_t place = 0; place < std::ssize(kept_); ++place) {
    if (kept_[place] < 0) continue;
    auto at = rising_.end();
    if (!rising_.empty() && rank_at(rising_.back()) > rank_at(place)) {
      at = std::partition_point(rising_.begin(), rising_.end(),
                                [&](int32_t other) { return rank_at(other) < rank_at(place); });
    }
    if (at != rising_.begin()) before_[place] = at[-1];
    if (at == rising_.end())
      rising_.push_back(place);
    else
      *at = place;
  }
  int32_t last = rising_.empty() ? -1 : rising_.back();
  for (int32_t place = static_cast<int32_t>(kept_.size()); place-- > 0;) {
    if (place == last)
      last = before_[place];
    else
      kept_[place] = -1;
  }
}

// Takes away residences and their transfers. What waits for their evictions is made anew later.
void CopyTransfers::TakeAway(absl::Span<const int32_t> gone) {
  for (const int32_t id : gone) {
    Residence& residence = residences_[id];
    for (const int32_t slice : residence.slices) Remove(slice);
    if (residence.eviction >= 0) Remove(residence.eviction);
    begins_with_[first_decision(residence.planned)] = -1;
    SetRank(id, -1);
    NoteMoved(residence.planned);
  }
}

void CopyTransfers::NoteMoved(const PlannedResidence& planned) {
  const auto of = tables_->decisions_of(planned.buffer);
  for (int32_t i = planned.first; i <= planned.last; ++i) {
    const Tick tick = tables_->tables.decisions[of[i]].tick;
    if (moved_.empty() || moved_.back() != tick) moved_.push_back(tick);
  }
}

// Notes whose transfers depend on a residence that has come or gone: the evictions of those that
// had its bytes before, the slices of those that have them next, and of those that fetch its value.
void CopyTransfers::Affect(const PlannedResidence& changed) {
  searched_.assign(1, {changed.offset, top(changed)});
  arrangement_->boxes().VisitEnds(0, changed.need + 1, searched_, [this](int32_t r) {
    if (residences_[order_[r]].eviction >= 0) hurried_.push_back(order_[r]);
  });
  RefillBehind(changed);
  if (changed.eviction_deadline < 0) return;
  const auto of = tables_->decisions_of(changed.buffer);
  for (int32_t i = changed.last + 1; i < std::ssize(of); ++i) {
    if (const int32_t id = begins_with_[of[i]]; id >= 0) Refill(id);
    if (tables_->tables.decisions[of[i]].writes) return;
  }
}

// The slices of the residences that have the bytes of this one next are made anew.
void CopyTransfers::RefillBehind(const PlannedResidence& planned) {
  searched_.assign(1, {planned.offset, top(planned)});
  arrangement_->boxes().VisitNeeds(planned.end, tables_->program.ticks(), searched_,
                                   [this](int32_t r) { Refill(order_[r]); });
}

void CopyTransfers::Refill(int32_t id) {
  Residence& residence = residences_[id];
  if (!residence.planned.fetched || residence.refilled) return;
  residence.refilled = true;
  refilled_.push_back(id);
}

// The last tick up to `tick` that lies in the scope, but not before `least`.
Tick CopyTransfers::InScope(Tick tick, int32_t scope, Tick least) const {
  while (tick > least && tables_->scopes[tick] != scope) --tick;
  return tick;
}

// An eviction must be done before main memory needs the value, and before the next residence, or
// an instruction for itself, needs the bytes that it frees.
Tick CopyTransfers::EvictionDeadline(const PlannedResidence& planned) {
  Tick deadline = planned.eviction_deadline;
  if (tables_->scope_ends[deadline] == 0 || tables_->scopes[deadline - 1] != planned.scope)
    deadline = InScope(deadline, planned.scope, planned.written);
  const Tick needed = tables_->tables.reserved.FirstAbove(planned.end, deadline, planned.offset);
  if (needed < deadline) deadline = InScope(needed, planned.scope, planned.written);
  searched_.assign(1, {planned.offset, top(planned)});
  arrangement_->boxes().VisitNeeds(planned.end, deadline, searched_, [&](int32_t r) {
    deadline = InScope(arrangement_->placed()[r].need, planned.scope, planned.written);
    searched_.clear();
  });
  return deadline;
}

void CopyTransfers::AddEviction(int32_t id) {
  const PlannedResidence& planned = residences_[id].planned;
  if (planned.eviction_deadline < 0) return;
  residences_[id].eviction = Add({.residence = id,
                                  .eviction = true,
                                  .scope = planned.scope,
                                  .part_end = size_of(planned),
                                  .service_ps = tables_->CopyPs(size_of(planned)),
                                  .free_from = planned.written,
                                  .deadline = EvictionDeadline(planned)});
}

// Works out the deadline of an eviction anew.
void CopyTransfers::Hurry(int32_t id) {
  const PlannedResidence& planned = residences_[id].planned;
  const int32_t eviction = residences_[id].eviction;
  const Tick deadline = EvictionDeadline(planned);
  if (deadline == (*this)[eviction].deadline) return;
  SetDeadline(eviction, deadline);
  RefillBehind(planned);
}

// Makes the slices of a prefetch anew. Each part of its bytes can be filled as soon as the last
// residence that was there has gone.
void CopyTransfers::MakeSlices(int32_t id) {
  residences_[id].refilled = false;
  const PlannedResidence& planned = residences_[id].planned;
  slices_.clear();
  Tick earliest = planned.earliest_fetch;
  if (tables_->tables.reserved.Most(earliest, planned.begin) > planned.offset)
    earliest = planned.begin;
  open_.assign(1, {planned.offset, top(planned)});
  // What leaves behind `earliest`, the last first; before that, what is perhaps still evicted. Of
  // those that had a byte before, only the last one can be: it needed what the others left.
  searched_ = open_;
  arrangement_->boxes().VisitEnds(earliest + 1, planned.need + 1, searched_,
                                  [&](int32_t r) { TakeOver(id, order_[r], earliest); });
  arrangement_->boxes().VisitEnds(0, earliest + 1, searched_, [&](int32_t r) {
    const int32_t eviction = residences_[order_[r]].eviction;
    if (eviction >= 0 && (*this)[eviction].deadline > earliest) TakeOver(id, order_[r], earliest);
  });
  for (const auto& [from, to] : open_) AddSlice(id, from, to, earliest, -1);

  List& slices = residences_[id].slices;
  if (std::equal(slices.begin(), slices.end(), slices_.begin(), slices_.end(),
                 [this](int32_t known, const Transfer& made) { return (*this)[known] == made; }))
    return;
  for (const int32_t slice : slices) Remove(slice);
  slices.clear();
  for (const Transfer& slice : slices_) slices.push_back(Add(slice));
}

// Adds slices for the open bytes that a residence takes over from another one.
void CopyTransfers::TakeOver(int32_t id, int32_t other, Tick earliest) {
  const PlannedResidence& occupied = residences_[other].planned;
  if (occupied.offset >= open_.back().second || open_.front().first >= top(occupied)) return;
  still_open_.clear();
  for (const auto& [from, to] : open_) {
    const int64_t lower = std::max(from, occupied.offset), upper = std::min(to, top(occupied));
    if (lower >= upper) {
      still_open_.emplace_back(from, to);
      continue;
    }
    AddSlice(id, lower, upper, std::max(earliest, occupied.end), residences_[other].eviction);
    if (from < lower) still_open_.emplace_back(from, lower);
    if (upper < to) still_open_.emplace_back(upper, to);
  }
  open_.swap(still_open_);
}

// The bytes [begin, end) of fast memory are free for a residence from `free_from` on, when the
// eviction `after` (-1: none) is done. Adds slices that fill them, so that a more urgent copy
// never waits long for one of them.
void CopyTransfers::AddSlice(int32_t id, int64_t begin, int64_t end, Tick free_from,
                             int32_t after) {
  const PlannedResidence& planned = residences_[id].planned;
  const int64_t piece = std::max(kMinSliceBytes, DivideUp(size_of(planned), kSlices));
  for (; begin < end; begin += piece) {
    const int64_t piece_end = std::min(begin + piece, end);
    slices_.push_back({.residence = id,
                       .slice = static_cast<int32_t>(slices_.size()),
                       .scope = planned.scope,
                       .part_begin = begin - planned.offset,
                       .part_end = piece_end - planned.offset,
                       .service_ps = tables_->CopyPs(piece_end - begin),
                       .free_from = free_from,
                       .deadline = planned.need,
                       .after = {SourceOf(planned), after}});
  }
}

// The eviction that brings the value of a prefetch to main memory; -1: there is none.
int32_t CopyTransfers::SourceOf(const PlannedResidence& planned) const {
  if (planned.replaces >= 0) return -1;
  const auto of = tables_->decisions_of(planned.buffer);
  for (int32_t i = planned.first; i-- > 0;) {
    if (!tables_->tables.decisions[of[i]].writes) continue;
    const int32_t writer = arrangement_->served_by()[of[i]];
    return writer >= 0 ? residences_[order_[writer]].eviction : -1;
  }
  return -1;
}

}  // namespace mallocgame
