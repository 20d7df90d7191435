// What stands for repeats, and how the others take it over.
#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "mallocgame/search/residence_search.h"

namespace mallocgame {
namespace {

constexpr Tick kLeastTakenOver = 4, kMostTakenOver = 256;  // ticks at a time

}  // namespace

void ResidenceSearch::StartAtRepresentatives(bool only) {
  all_.insert(all_.end(), others_.begin(), others_.end());
  std::sort(all_.begin(), all_.end());
  others_.clear();
  if (only) {
    const auto stands_for_itself = [this](int32_t d) {
      const Tick tick = game_->tables().decisions[d].tick;
      return repeats_.representative(tick) == tick;
    };
    const auto first = std::stable_partition(all_.begin(), all_.end(), stands_for_itself);
    others_.assign(first, all_.end());
    all_.erase(first, all_.end());
  }
  FindLarge();
}

// Visits the residences that serve only accesses at the ticks [begin, end), with the first of these
// decisions.
template <class Visit>
void ResidenceSearch::VisitWithin(Tick begin, Tick end, const Visit& visit) const {
  const GameTables& tables = game_->tables();
  for (int32_t d = tables.first_decision[begin]; d < tables.first_decision[end]; ++d) {
    const int32_t r = arrangement_.served_by()[d];
    if (r < 0) continue;
    const PlannedResidence& planned = arrangement_.placed()[r];
    const auto of = tables_.decisions_of(planned.buffer);
    if (of[planned.first] == d && tables.decisions[of[planned.last]].tick < end) visit(r, d);
  }
}

// Places at the ticks [begin, end) what lies `shift` ticks later, instead of what lies there.
bool ResidenceSearch::Imitate(Tick begin, Tick end, Tick shift) {
  const GameTables& tables = game_->tables();
  std::vector<std::pair<PlannedResidence, PlannedResidence>> copies;  // of the first the second
  VisitWithin(begin + shift, end + shift, [&](int32_t r, int32_t d) {
    const PlannedResidence& model = arrangement_.placed()[r];
    const auto counterpart = [&](int32_t of) {
      const Tick tick = tables.decisions[of].tick;
      return of - tables.first_decision[tick] + tables.first_decision[tick - shift];
    };
    const int32_t first = counterpart(d),
                  last = counterpart(tables_.decisions_of(model.buffer)[model.last]),
                  buffer = tables.decisions[first].buffer;
    if (tables.decisions[last].buffer != buffer ||
        position_of_[last] - position_of_[first] != model.last - model.first)
      return;
    if (const auto copy = Planned(buffer, position_of_[first], position_of_[last], false))
      copies.emplace_back(model, *copy);
  });
  std::vector<int32_t> gone;
  VisitWithin(begin, end, [&](int32_t r, int32_t) { gone.push_back(r); });
  for (const int32_t r : gone) arrangement_.Remove(r);
  for (const auto& [model, copy] : copies) {
    const auto of = tables_.decisions_of(copy.buffer);
    for (int32_t i = copy.first; i <= copy.last; ++i) {
      if (const int32_t r = arrangement_.served_by()[of[i]]; r >= 0) arrangement_.Remove(r);
    }
    PlaceNear(copy, std::clamp(model.begin - shift, copy.earliest_fetch, copy.need), model.offset);
  }
  return !arrangement_.steps().empty();
}

int64_t ResidenceSearch::TakeOver(const std::function<bool()>& stop) {
  int64_t trials = 0;
  const Tick ticks = game_->program().ticks();
  for (Tick begin = 0, end = 1; begin < ticks && !stop(); begin = end++) {
    const Tick shift = repeats_.representative(begin) - begin;
    if (shift == 0) continue;
    while (end < ticks && end - begin < kMostTakenOver &&
           repeats_.representative(end) == end + shift)
      ++end;
    if (end - begin < kLeastTakenOver) continue;
    ++trials;
    if (Imitate(begin, end, shift) && Try(latency_))
      Accept();
    else
      Reject();
  }
  return trials;
}

}  // namespace mallocgame
