#include "mallocgame/game/priority/priority_decoder.h"

#include <cstdint>

#include "mallocgame/base/error.h"
#include "mallocgame/game/nearest_mode.h"

namespace mallocgame {

int MostSaving(PriorityState& state, int candidate) {
  int best = -1;
  int64_t most = 0;
  const int64_t before = state.latency_ps();
  for (const Mode mode : {Mode::kLate, Mode::kEarly, Mode::kPreload}) {
    const int action = PriorityAction(candidate, mode);
    if (!state.TryApply(action)) continue;
    const int64_t saved = before - state.latency_ps();
    state.Undo();
    if (saved <= most) continue;
    most = saved;
    best = action;
  }
  return best;
}

int NextCandidate(const PriorityState& state, const Intent& intent) {
  const auto candidates = state.candidates();
  size_t best = 0;
  for (size_t i = 1; i < candidates.size() && candidates[i] >= 0; ++i) {
    if (intent[candidates[i]].rank < intent[candidates[best]].rank) best = i;
  }
  return static_cast<int>(best);
}

Mode Serve(PriorityState& state, int candidate, Mode mode) {
  if (mode == Mode::kOpen || mode == Mode::kPaying) {
    if (const int best = MostSaving(state, candidate); best >= 0) {
      MG_CHECK(state.TryApply(best));
      return static_cast<Mode>(best % kActionModes);
    }
    if (mode == Mode::kOpen && state.TryApply(PriorityAction(candidate, Mode::kSplit)))
      return Mode::kSplit;
    mode = Mode::kSkip;
  }
  return NearestMode(mode, [&](Mode other) {
    return other <= Mode::kSplit && state.TryApply(PriorityAction(candidate, other));
  });
}

std::vector<AccessRun> PriorityState::AskedAbout() const {
  std::vector<AccessRun> runs;
  for (const int32_t index : candidates()) {
    if (index < 0) break;
    const Run& run = tables_->runs[index];
    runs.push_back({tables_->arrangement.decision(run.buffer, run.first).access,
                    tables_->arrangement.decision(run.buffer, run.last).access});
  }
  return runs;
}

void PriorityState::Decide(const Intent& intent) {
  const int candidate = NextCandidate(*this, intent);
  mallocgame::Serve(*this, candidate, intent[candidates()[candidate]].mode);
}

}  // namespace mallocgame
