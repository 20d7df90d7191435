#include "mallocgame/game/incumbent_trace.h"

#include <algorithm>

#include "mallocgame/base/error.h"

namespace mallocgame {
namespace {

constexpr uint32_t kMostKicked = 8;  // successive decisions that a kick changes

}  // namespace

void IncumbentTrace::Adopt(const Position& end, int32_t agrees) {
  MG_CHECK(end.IsTerminal());
  for (int32_t i = agrees; i < decisions(); ++i) decision_of_[segments_[i]] = -1;
  segments_.resize(agrees);
  for (int32_t i = agrees; i < end.num_decisions(); ++i) {
    segments_.push_back(end.DecidedSegment(i));
    decision_of_[segments_.back()] = i;
  }
  actions_.assign(end.actions().begin(), end.actions().end());
  AdoptPlaces(end, agrees);
  changed_.clear();
}

void IncumbentTrace::Follow(Position& position, int32_t end) const {
  for (int32_t i = position.num_decisions(); i < end; ++i)
    MG_CHECK(position.Apply(actions_[i]).ok());
}

void IncumbentTrace::Begin(int32_t /*agrees*/) {}
void IncumbentTrace::Begin(const Position& /*position*/) {}
void IncumbentTrace::AdoptPlaces(const Position& /*end*/, int32_t /*agrees*/) {}

void IncumbentTrace::Decide(Position& position, const Intent& intent) { position.Decide(intent); }

void IncumbentTrace::Kick(Intent& intent, Rng& rng) {
  const auto decisions = static_cast<uint32_t>(this->decisions());
  const uint32_t at = rng.Below(decisions), kind = rng.Below(4);
  if (KickOwn(at, kind, intent, rng)) return;
  const uint32_t end = std::min(decisions, at + 1 + rng.Below(kMostKicked));
  for (uint32_t i = at; i < end; ++i) {
    if (i != at && rng.Below(2) != 0) continue;
    Change(segments_[i]);
    intent[segments_[i]].mode = static_cast<Mode>(rng.Below(kActionModes));
  }
}

bool IncumbentTrace::KickOwn(uint32_t /*at*/, uint32_t /*kind*/, Intent& /*intent*/, Rng& /*rng*/) {
  return false;
}

}  // namespace mallocgame
