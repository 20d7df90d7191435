#include "mallocgame/game/time/demand.h"

#include <algorithm>

#include "mallocgame/game/tables.h"

namespace mallocgame {
namespace {

// The ticks [begin, tick) before an access for which its buffer is wished for.
struct Lead {
  Tick begin, tick;
  bool fetched;
  int32_t buffer;
};

Lead LeadOf(const Game& game, const Decision& d, Tick previous) {
  const std::vector<int64_t>& idle = game.tables().fast_idle_before;
  const int64_t copy_ps = game.tables().buffers[d.buffer].copy_ps;
  if (d.kind == AccessKind::kWrite || previous == d.tick) return {d.tick, d.tick, false, d.buffer};
  const Tick kept_from = previous + 1, segment = game.program().segment_begin(d.tick);
  const Tick earliest = std::max(kept_from, segment);
  Tick begin = d.tick;
  while (begin > earliest && idle[d.tick] - idle[begin] < copy_ps) --begin;
  const bool kept = previous >= 0 && begin == kept_from && idle[d.tick] - idle[begin] < copy_ps;
  return {begin, d.tick, !kept, d.buffer};
}

}  // namespace

Demand::Wanted& Demand::Wanted::operator+=(const Wanted& other) {
  space += other.space;
  excess += other.excess;
  copy_ps += other.copy_ps;
  return *this;
}

Demand::Demand(const Game& game) {
  const GameTables& tables = game.tables();
  const Tick ticks = game.program().ticks();
  const auto all_main = static_cast<double>(std::max<int64_t>(1, game.all_main_ps()));
  for (const int64_t before : tables.all_main_before)
    position_.push_back(static_cast<double>(before) / all_main);

  const auto share = [&](int32_t buffer) {
    return static_cast<double>(tables.buffers[buffer].size_bytes) /
           static_cast<double>(std::max<int64_t>(1, game.usable_bytes()));
  };
  const auto density = [&](const Lead& lead) {
    const double length = position_[lead.tick] - position_[lead.begin];
    if (!lead.fetched || length <= 0) return 0.0;
    return static_cast<double>(tables.buffers[lead.buffer].copy_ps) / length;
  };
  std::vector<Tick> previous(tables.buffers.size(), -1);
  std::vector<Lead> leads;
  std::vector<double> shares(ticks), densities(ticks);  // that are wished for at each tick
  for (const Decision& d : tables.decisions) {
    const Lead lead = LeadOf(game, d, previous[d.buffer]);
    // The accesses that one instruction makes of a buffer wish for it once.
    if (previous[d.buffer] != d.tick) shares[d.tick] += share(d.buffer);
    previous[d.buffer] = d.tick;
    if (lead.begin < lead.tick) leads.push_back(lead);
  }
  std::sort(leads.begin(), leads.end(),
            [](const Lead& a, const Lead& b) { return a.begin < b.begin; });
  first_wish_.assign(ticks + 2, 0);
  for (const Lead& lead : leads) {
    for (Tick t = lead.begin; t < lead.tick; ++t) {
      shares[t] += share(lead.buffer);
      densities[t] += density(lead);
      ++first_wish_[t + 2];
    }
  }
  for (size_t t = 1; t < first_wish_.size(); ++t) first_wish_[t] += first_wish_[t - 1];
  wishes_.resize(first_wish_.back());
  std::vector<size_t> next = first_wish_;
  for (const Lead& lead : leads) {
    for (Tick t = lead.begin + 1; t <= lead.tick; ++t)
      wishes_[next[t]++] = {position_[lead.begin], share(lead.buffer), density(lead)};
  }
  before_.resize(ticks + 1);
  for (Tick t = 0; t < ticks; ++t) {
    const double length = position_[t + 1] - position_[t];
    before_[t + 1] = before_[t];
    before_[t + 1] +=
        {shares[t] * length, std::max(0.0, shares[t] - 1) * length, densities[t] * length};
  }
}

Demand::Wanted Demand::Over(Tick begin, Tick end, Tick now) const {
  Wanted wanted;
  if (end > now) {
    const Wanted &from = before_[std::max(begin, now)], &until = before_[end];
    wanted = {until.space - from.space, until.excess - from.excess, until.copy_ps - from.copy_ps};
  }
  if (begin >= now) return wanted;
  // Before now, only the wishes that reach up to now count. They come up one after the other.
  const double until = position_[std::min(end, now)];
  double at = position_[begin], share = 0;
  for (const Wish& wish : Around(now)) {
    if (wish.begin >= until) break;
    const double from = std::max(wish.begin, at);
    wanted.excess += std::max(0.0, share - 1) * (from - at);
    at = from;
    share += wish.share;
    wanted.space += wish.share * (until - at);
    wanted.copy_ps += wish.copy_density * (until - at);
  }
  wanted.excess += std::max(0.0, share - 1) * (until - at);
  return wanted;
}

}  // namespace mallocgame
