#include "mallocgame/game/time/time_decoder.h"

#include <cstdint>

#include "mallocgame/base/error.h"
#include "mallocgame/game/nearest_mode.h"

namespace mallocgame {
namespace {

// By Action.
constexpr std::array<Mode, kActions> kModeOfAction = {Mode::kSkip, Mode::kLate, Mode::kKeep,
                                                      Mode::kEarly};

// By Mode; -1: the time game has no such action.
constexpr std::array<int8_t, kDecidableModes> kActionOfMode = {
    static_cast<int8_t>(Action::kDrop),
    static_cast<int8_t>(Action::kCopy),
    static_cast<int8_t>(Action::kCopyEarly),
    static_cast<int8_t>(Action::kNoCopy),
    int8_t{-1},
    static_cast<int8_t>(Action::kNoCopy)};

}  // namespace

Mode ModeOf(Action action) { return kModeOfAction[static_cast<size_t>(action)]; }

Action MostProfitable(State& state, const std::array<double, kActions>& rents) {
  constexpr Action kPreference[] = {Action::kDrop, Action::kNoCopy, Action::kCopy,
                                    Action::kCopyEarly};
  const ActionSet legal = state.feasible_actions();
  if (legal.size() == 1) return static_cast<Action>(legal[0]);
  double best_profit = 0;
  int best = -1;
  for (const Action action : kPreference) {
    const int a = static_cast<int>(action);
    if (!legal.Has(a)) continue;
    const absl::StatusOr<int64_t> saved = state.Apply(action);
    MG_CHECK(saved.ok());
    state.Undo();
    const double profit = static_cast<double>(*saved) - rents[a];
    if (best < 0 || profit > best_profit) {
      best = a;
      best_profit = profit;
    }
  }
  return static_cast<Action>(best);
}

Action GreedyAction(State& state) { return MostProfitable(state, {}); }

Action ActionOf(State& state, Mode mode) {
  if (mode == Mode::kOpen || mode == Mode::kPaying) return GreedyAction(state);
  const auto action_of = [](Mode m) { return kActionOfMode[static_cast<size_t>(m)]; };
  const Mode nearest = NearestMode(mode, [&](Mode other) {
    return action_of(other) >= 0 && state.feasible_actions().Has(action_of(other));
  });
  return static_cast<Action>(action_of(nearest));
}

std::vector<AccessRun> State::AskedAbout() const {
  if (IsTerminal()) return {};
  return {{current_access(), current_access()}};
}

void State::Decide(const Intent& intent) {
  MG_CHECK(Apply(ActionOf(*this, intent[current_access().index()].mode)).ok());
}

Mode State::DecidedMode(int i) const {
  return ModeOf(keeps_trail() ? trail_.decided[i].action : static_cast<Action>(actions_[i]));
}

}  // namespace mallocgame
