#include "mallocgame/search/decoder.h"

#include <array>
#include <cstddef>
#include <cstdint>

#include "mallocgame/base/error.h"
#include "mallocgame/game/schedule/schedule_state.h"
#include "mallocgame/search/greedy.h"

namespace mallocgame {
namespace {

constexpr size_t kDecidableModes = 6;  // kSkip to kKeep

// What is tried instead of an illegal mode, the nearest first; what the game at hand does not know
// is illegal. Wherever Early is legal, Late is. Main memory is always legal.
constexpr std::array<std::array<Mode, 4>, kDecidableModes> kInstead = {{
    {Mode::kSkip},
    {Mode::kKeep, Mode::kSplit, Mode::kSkip},
    {Mode::kLate, Mode::kKeep, Mode::kSplit, Mode::kSkip},
    {Mode::kLate, Mode::kSplit, Mode::kSkip},
    {Mode::kLate, Mode::kSkip},
    {Mode::kLate, Mode::kSplit, Mode::kSkip},
}};

// By Mode; -1: the time game has no such action.
constexpr std::array<int8_t, kDecidableModes> kActionOfMode = {
    static_cast<int8_t>(Action::kDrop),
    static_cast<int8_t>(Action::kCopy),
    static_cast<int8_t>(Action::kCopyEarly),
    static_cast<int8_t>(Action::kNoCopy),
    int8_t{-1},
    static_cast<int8_t>(Action::kNoCopy)};

// The mode in which `serves` succeeds, the nearest to `mode`.
template <class Serves>
Mode Nearest(Mode mode, const Serves& serves) {
  if (serves(mode)) return mode;
  for (const Mode other : kInstead[static_cast<size_t>(mode)]) {
    if (serves(other)) return other;
  }
  return Mode::kSkip;
}

}  // namespace

Action ActionOf(State& state, Mode mode) {
  if (mode == Mode::kOpen || mode == Mode::kPaying) return GreedyAction(state);
  const auto action_of = [](Mode m) { return kActionOfMode[static_cast<size_t>(m)]; };
  const Mode nearest = Nearest(mode, [&](Mode other) {
    return action_of(other) >= 0 && state.IsLegal(static_cast<Action>(action_of(other)));
  });
  return static_cast<Action>(action_of(nearest));
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
  return Nearest(mode, [&](Mode other) {
    return other <= Mode::kSplit && state.TryApply(PriorityAction(candidate, other));
  });
}

void Decide(Position& position, const Intent& intent) {
  if (position.game().options().kind == GameKind::kSchedule) {
    auto& state = static_cast<ScheduleState&>(position);
    if (state.placement() == nullptr) {
      MG_CHECK(state.Apply(0).ok());
    } else {
      const Intent open = OpenIntent(*state.ordered().game);
      state.Place([&](PriorityState& placement) { Decide(placement, open); });
    }
    return;
  }
  if (position.game().options().kind == GameKind::kPriority) {
    auto& state = static_cast<PriorityState&>(position);
    const int candidate = NextCandidate(state, intent);
    Serve(state, candidate, intent[state.candidates()[candidate]].mode);
    return;
  }
  auto& state = static_cast<State&>(position);
  MG_CHECK(state.Apply(ActionOf(state, intent[state.current_access().index()].mode)).ok());
}

void PlayOn(Position& position, const Intent& intent) {
  if (position.game().options().kind == GameKind::kSchedule) {
    auto& state = static_cast<ScheduleState&>(position);
    while (state.placement() == nullptr) Decide(state, intent);
    const Intent open = OpenIntent(*state.ordered().game);
    state.Place([&](PriorityState& placement) { PlayOn(placement, open); });
    return;
  }
  while (!position.IsTerminal()) Decide(position, intent);
}

}  // namespace mallocgame
