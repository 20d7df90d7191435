#include "mallocgame/game/priority/arrangement.h"

#include <algorithm>
#include <atomic>

#include "absl/container/inlined_vector.h"
#include "mallocgame/base/error.h"
#include "mallocgame/base/rounding.h"

namespace mallocgame {
namespace {

__extension__ using Int128 = __int128;

// Another one for each placing of the process; each thread draws them by the million.
uint64_t NextStamp() {
  constexpr uint64_t kDrawn = 1 << 20;
  static std::atomic<uint64_t> undrawn = 1;
  static thread_local uint64_t next = 0, end = 0;
  if (next == end) {
    next = undrawn.fetch_add(kDrawn);
    end = next + kDrawn;
  }
  return next++;
}

}  // namespace

Arrangement::Arrangement(const ArrangementTables& tables)
    : tables_(&tables), served_by_(tables.tables.decisions.size()),
      placements_(tables.program.ticks()), idle_(tables.program.ticks()),
      boxes_(tables.program.ticks(), tables.game.usable_bytes()) {
  Clear();
}

void Arrangement::Clear() {
  placed_.clear();
  stamps_.clear();
  versions_.clear();
  boxes_.Clear();
  steps_.clear();
  holes_.clear();
  removed_.clear();
  std::fill(served_by_.begin(), served_by_.end(), -1);
  std::fill(placements_.begin(), placements_.end(), 0);
  for (size_t t = 0; t < idle_.size(); ++t) {
    idle_[t] = tables_->PriceAt(static_cast<Tick>(t), 0).idle_ps;
  }
  compute_ps_ = {tables_->game.all_main_ps(),
                 tables_->other_game == nullptr ? 0 : tables_->other_game->all_main_ps()};
  preloads_ = 0;
}

void Arrangement::SetPlacement(Tick tick, uint64_t placement) {
  const Times before = tables_->PriceAt(tick, placements_[tick]).time_ps;
  const ArrangementTables::TimesAndIdle after = tables_->PriceAt(tick, placement);
  placements_[tick] = placement;
  idle_[tick] = after.idle_ps;
  compute_ps_ += (after.time_ps - before) * tables_->tables.instructions[tick].trips;
}

void Arrangement::Serve(int32_t r, bool fast) {
  const PlannedResidence& planned = placed_[r];
  const auto of = tables_->decisions_of(planned.buffer);
  for (int32_t i = planned.first; i <= planned.last; ++i) {
    const Decision& d = tables_->tables.decisions[of[i]];
    served_by_[of[i]] = fast ? r : -1;
    if (d.tick == planned.replaces && i == planned.first) {
      SetPlacement(d.tick, fast ? kReplaced : 0);
    } else {
      SetPlacement(d.tick, placements_[d.tick] ^ uint64_t{1} << d.bit);
    }
  }
}

bool Arrangement::IsFree(Tick begin, Tick end, int64_t offset, int64_t top) const {
  const Game& game = tables_->game;
  if (offset < 0 || top > game.usable_bytes() || offset % game.hardware().alignment_bytes != 0 ||
      offset < tables_->tables.reserved.Most(begin, end))
    return false;
  static thread_local Gaps gaps;
  gaps.assign(1, {offset, top});
  boxes_.LeaveFree(begin, end, top - offset, gaps);
  return !gaps.empty();
}

bool Arrangement::FindOver(Tick begin, Tick end, size_t most, std::vector<int32_t>& over) const {
  over.clear();
  if (boxes_.CountNear(begin, end) > most) return false;
  boxes_.VisitNear(begin, end, [&](int32_t r, const PlacedBox& box) {
    if (box.begin < end && begin < box.end) over.push_back(r);
  });
  std::sort(over.begin(), over.end());
  return true;
}

// The gaps over all its ticks that hold the residence, until somebody asks again.
const Gaps& Arrangement::FindGaps(const PlannedResidence& planned, Tick begin) const {
  static thread_local Gaps gaps;
  gaps.clear();
  const int64_t bytes = size(planned), capacity = tables_->game.usable_bytes(),
                lowest = tables_->tables.reserved.Most(begin, planned.end);
  if (capacity - lowest < bytes) return gaps;
  gaps.emplace_back(lowest, capacity);
  boxes_.LeaveFree(begin, planned.end, bytes, gaps);
  for (auto& [from, top] : gaps) from = RoundUp(from, tables_->game.hardware().alignment_bytes);
  gaps.erase(std::remove_if(gaps.begin(), gaps.end(),
                            [bytes](const auto& gap) { return gap.second - gap.first < bytes; }),
             gaps.end());
  return gaps;
}

bool Arrangement::HasRoom(const PlannedResidence& planned, Tick begin) const {
  return !FindGaps(planned, begin).empty();
}

// -1: there is no room.
int64_t Arrangement::FindOffset(const PlannedResidence& planned, Tick begin) const {
  const Gaps& gaps = FindGaps(planned, begin);
  if (gaps.empty()) return -1;
  // What one would take from a prefetch: its bytes, while the channel is free, before it begins.
  // Those who would lose or take something stand right before `begin` or at the end.
  struct Loss {
    int64_t offset, top, ps;
  };
  const Tick wanted = std::min(begin, planned.latest_fetch), end = planned.end;
  const std::vector<int64_t>& idle = tables_->tables.fast_idle_before;
  const auto lost = [&idle](Tick from, Tick to) { return from < to ? idle[to] - idle[from] : 0; };
  absl::InlinedVector<Loss, 64> losses;
  const auto add = [&](const PlacedBox& other) {
    if (other.begin < end && begin < other.end) return;
    const int64_t ps = lost(std::max(wanted, other.begin), std::min(begin, other.end)) +
                       lost(std::max(other.wanted, begin), std::min(other.begin, end));
    if (ps > 0) losses.push_back({other.offset, other.top, ps});
  };
  const auto is_before = [&](const PlacedBox& other) {
    return other.wanted < begin && wanted < other.end;
  };
  if (wanted < begin) {
    boxes_.VisitNear(wanted, begin, [&](int32_t, const PlacedBox& other) {
      if (is_before(other)) add(other);
    });
  }
  boxes_.VisitNear(end - 1, end, [&](int32_t, const PlacedBox& other) {
    if (wanted == begin || !is_before(other)) add(other);
  });
  const int64_t bytes = size(planned), alignment = tables_->game.hardware().alignment_bytes;
  int64_t best = -1, smallest = 0;
  // Exact, so that it doesn't matter in which order the others were placed.
  Int128 least = 0;
  const auto consider = [&](int64_t offset, int64_t gap) {
    Int128 loss = 0;
    for (const Loss& by : losses) {
      const int64_t shared = std::min(by.top, offset + bytes) - std::max(by.offset, offset);
      if (shared > 0) loss += static_cast<Int128>(shared) * by.ps;
    }
    const bool more = loss > least || (loss == least && gap >= smallest);
    if (best >= 0 && more) return;
    best = offset;
    smallest = gap;
    least = loss;
  };
  for (const auto& [from, top] : gaps) {
    consider(from, top - from);
    if (!losses.empty()) consider((top - bytes) / alignment * alignment, top - from);
  }
  return best;
}

bool Arrangement::Place(const PlannedResidence& planned, Tick begin, int64_t offset) {
  if (!IsFree(begin, planned.end, offset, offset + size(planned))) {
    offset = FindOffset(planned, begin);
    if (offset < 0) return false;
  }
  PlaceAt(planned, begin, offset);
  return true;
}

void Arrangement::PlaceAt(const PlannedResidence& planned, Tick begin, int64_t offset) {
  const bool fills = !holes_.empty();
  const int32_t r = fills ? holes_.back() : static_cast<int32_t>(placed_.size());
  if (fills) {
    holes_.pop_back();
  } else {
    placed_.emplace_back();
    stamps_.push_back(0);
    versions_.resize(r / kPlaces + 1);
  }
  PlannedResidence here = planned;
  here.offset = offset;
  here.begin = begin;
  Put(r, here, NextStamp());
  steps_.push_back({r, fills ? Step::kFilled : Step::kAppended});
}

void Arrangement::Remove(int32_t r) {
  removed_.push_back({placed_[r], stamps_[r]});
  Take(r);
  holes_.push_back(r);
  steps_.push_back({r, Step::kRemoved});
}

void Arrangement::Undo() {
  MG_CHECK(!steps_.empty());
  const Step step = steps_.back();
  steps_.pop_back();
  if (step.kind == Step::kRemoved) {
    holes_.pop_back();
    Put(step.residence, removed_.back().planned, removed_.back().stamp);
    removed_.pop_back();
    return;
  }
  Take(step.residence);
  if (step.kind == Step::kFilled) {
    holes_.push_back(step.residence);
    return;
  }
  placed_.pop_back();
  stamps_.pop_back();
  versions_.resize((placed_.size() + kPlaces - 1) / kPlaces);
}

void Arrangement::Settle() {
  steps_.clear();
  removed_.clear();
}

void Arrangement::Put(int32_t r, const PlannedResidence& planned, uint64_t stamp) {
  placed_[r] = planned;
  stamps_[r] = stamp;
  versions_[r / kPlaces] = NextStamp();
  boxes_.Put(r, {.wanted = std::min(planned.begin, planned.latest_fetch),
                 .begin = planned.begin,
                 .need = planned.need,
                 .end = planned.end,
                 .offset = planned.offset,
                 .top = planned.offset + size(planned)});
  preloads_ += planned.preload;
  Serve(r, true);
}

void Arrangement::Take(int32_t r) {
  Serve(r, false);
  preloads_ -= placed_[r].preload;
  boxes_.Take(r);
  placed_[r].buffer = -1;
  stamps_[r] = 0;
  versions_[r / kPlaces] = NextStamp();
}

int64_t Arrangement::TakenBytes(Tick tick) const {
  int64_t taken = 0;
  boxes_.VisitNear(tick, tick + 1, [&](int32_t, const PlacedBox& box) {
    if (box.begin <= tick && tick < box.end) taken += box.top - box.offset;
  });
  return taken;
}

}  // namespace mallocgame
