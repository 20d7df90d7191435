#include "agents/muzero/task.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "absl/strings/str_cat.h"
#include "mallocgame/base/error.h"
#include "mallocgame/solvers/playing/preference_search.h"

namespace mallocgame::muzero {
namespace {

// Plays `actions` from the start, and enters each as the preference of the access it decides about.
void ReadPreferences(const Game& game, absl::Span<const uint8_t> actions,
                     Preferences& preferences) {
  State state = game.InitialState();
  for (uint8_t action : actions) {
    preferences[state.current_access().index()] = action;
    MG_CHECK(state.Apply(static_cast<Action>(action)).ok());
  }
}

}  // namespace

absl::StatusOr<Task> Task::Create(std::shared_ptr<const Game> game,
                                  const ObservationOptions& options,
                                  std::vector<uint8_t> baseline) {
  MG_ASSIGN_OR_RETURN(Observer observer, Observer::Create(game, options));
  Task task(std::move(game), std::move(observer));
  const size_t accesses = task.game_->program().accesses().size();
  State state = task.game_->InitialState();
  for (size_t i = 0; i < baseline.size(); ++i) {
    if (state.IsTerminal()) {
      return absl::InvalidArgumentError(absl::StrCat("muzero: the baseline's game has ",
                                                     baseline.size(), " decisions, allowed: ", i));
    }
    task.baseline_ps_.resize(state.current_access().index() + 1, state.latency_ps());
    MG_RETURN_IF_ERROR(state.Apply(static_cast<Action>(baseline[i])).status());
  }
  if (!state.IsTerminal()) {
    return absl::InvalidArgumentError(absl::StrCat("muzero: the baseline's game isn't over after ",
                                                   baseline.size(), " decisions"));
  }
  task.baseline_ps_.resize(accesses + 1, state.latency_ps());
  task.baseline_ = std::move(baseline);
  task.unit_ps_ = 1e-3 * static_cast<double>(std::max<int64_t>(1, state.latency_ps()));
  return task;
}

double Task::Lead(const State& state) const {
  const int64_t there =
      state.IsTerminal() ? baseline_ps() : baseline_ps_[state.current_access().index()];
  return static_cast<double>(there - state.latency_ps()) / unit_ps_;
}

void PlayForced(State& state) {
  while (std::popcount(state.legal_mask()) == 1) {
    MG_CHECK(state.Apply(static_cast<Action>(std::countr_zero(state.legal_mask()))).ok());
  }
}

State FollowGame(const Game& game, absl::Span<const uint8_t> prefix,
                 absl::Span<const uint8_t> follow) {
  Preferences preferences(game.program().accesses().size(), kUndecided);
  ReadPreferences(game, follow, preferences);
  ReadPreferences(game, prefix, preferences);
  PreferenceSearch search(game, std::move(preferences));
  return search.GoTo(search.decisions());
}

}  // namespace mallocgame::muzero
