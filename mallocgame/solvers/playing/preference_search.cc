#include "mallocgame/solvers/playing/preference_search.h"

#include <algorithm>
#include <array>

#include "mallocgame/base/error.h"
#include "mallocgame/solvers/game_variants.h"
#include "mallocgame/solvers/playing/players.h"
#include "mallocgame/solvers/playing/rent.h"
#include "mallocgame/solvers/xla/heuristic.h"

namespace mallocgame {
namespace {

// What is played instead of an illegal preference. Drop is illegal only where another placement is
// required.
constexpr std::array<std::array<Action, 3>, kActions> kInstead = {{
    {Action::kNoCopy, Action::kCopy, Action::kCopyEarly},
    {Action::kCopyEarly, Action::kNoCopy, Action::kDrop},
    {Action::kCopy, Action::kCopyEarly, Action::kDrop},
    {Action::kCopy, Action::kNoCopy, Action::kDrop},
}};

Action ActionOf(const Program& program, const Plan& plan, AccessId id, bool first,
                const std::vector<bool>& written_back) {
  const ResidenceId r = plan.served_by[id.index()];
  const Access& access = program.access(id);
  // The residence of a plain copy's result may begin later than the copy; it is decided then.
  if (!r.valid() || plan.residences[r.index()].begin > access.tick) return Action::kDrop;
  const bool writes = access.kind == AccessKind::kWrite || access.kind == AccessKind::kUpdate ||
                      access.writes_in_loop;
  if (writes) return written_back[r.index()] ? Action::kCopy : Action::kNoCopy;
  if (!first) return Action::kNoCopy;
  return access.kind == AccessKind::kLoopEntry ? Action::kCopy : Action::kCopyEarly;
}

}  // namespace

Action PreferredAction(State& state, uint8_t preference) {
  if (preference == kUndecided) return GreedyAction(state);
  if (state.IsLegal(static_cast<Action>(preference))) return static_cast<Action>(preference);
  for (Action other : kInstead[preference]) {
    if (state.IsLegal(other)) return other;
  }
  return Action::kDrop;
}

Preferences PreferencesOf(const Game& game, const Plan& plan) {
  const Program& program = game.program();
  std::vector<bool> written_back(plan.residences.size()), served(plan.residences.size());
  for (const Copy& copy : plan.copies) {
    if (copy.kind == CopyKind::kWriteBack) written_back[copy.residence.index()] = true;
    if (copy.preload) served[copy.residence.index()] = true;
  }
  Preferences preferences;
  for (size_t a = 0; a < program.accesses().size(); ++a) {
    const auto id = AccessId(a);
    const ResidenceId r = plan.served_by[a];
    preferences.push_back(static_cast<uint8_t>(
        ActionOf(program, plan, id, !r.valid() || !served[r.index()], written_back)));
    if (r.valid()) served[r.index()] = true;
  }
  return preferences;
}

Preferences PreferencesOf(const Position& end) {
  Preferences preferences(end.game().program().accesses().size(), kUndecided);
  State state = end.game().InitialState();
  for (const uint8_t action : end.actions()) {
    preferences[state.current_access().index()] = action;
    MG_CHECK(state.Apply(static_cast<Action>(action)).ok());
  }
  return preferences;
}

Preferences GoodStart(const Game& game, const Deadline& deadline) {
  const State rent = BestRentGame(game, deadline);
  const Deadline soon = deadline.Share(kXlaShare);
  Preferences like_xla = PreferencesOf(game, PlanLikeXla(game, soon).plan);
  if (PreferenceSearch(game, like_xla).latency_ps() < rent.latency_ps()) return like_xla;
  return PreferencesOf(rent);
}

double WorthOfSmallBuffers(const Game& game) {
  const Program& program = game.program();
  double saved_ps = 0;
  for (Tick t = 0; t < program.ticks(); ++t) {
    uint64_t large = 0, all = 0;
    const Instruction& instruction = program.instruction(t);
    for (int32_t slot = 0; slot < instruction.access_count; ++slot) {
      const AccessId access(instruction.first_access + slot);
      const int64_t size = program.buffer(program.access(access).buffer).size_bytes;
      if (size > game.usable_bytes() || size < kSmallBufferBytes) continue;
      all |= uint64_t{1} << slot;
      if (size >= game.options().min_buffer_bytes) large |= uint64_t{1} << slot;
    }
    if (all == large) continue;
    const int64_t saved_once_ps =
        game.cost_model().PriceOf(t, large).time_ps - game.cost_model().PriceOf(t, all).time_ps;
    saved_ps += static_cast<double>(saved_once_ps) * static_cast<double>(program.trips(t));
  }
  return saved_ps / std::max(1.0, static_cast<double>(game.all_main_ps()));
}

PreferenceSearch::PreferenceSearch(const Game& game, Preferences preferences)
    : state_(game.InitialState()), preferences_(std::move(preferences)) {
  Play();
  Accept();
}

const State& PreferenceSearch::GoTo(int32_t i) {
  while (state_.num_decisions() > std::min(agrees_, i)) state_.Undo();
  while (state_.num_decisions() < i) {
    MG_CHECK(state_.Apply(static_cast<Action>(preferences_[state_.current_access().index()])).ok());
  }
  agrees_ = i;
  return state_;
}

void PreferenceSearch::Prefer(AccessId access, Action action) {
  changed_.emplace_back(access.index(), preferences_[access.index()]);
  preferences_[access.index()] = static_cast<uint8_t>(action);
}

const State& PreferenceSearch::Play() {
  trial_.clear();
  while (!state_.IsTerminal()) {
    const AccessId access = state_.current_access();
    trial_.push_back(access);
    MG_CHECK(state_.Apply(PreferredAction(state_, preferences_[access.index()])).ok());
  }
  return state_;
}

void PreferenceSearch::Accept() {
  asked_.resize(agrees_);
  asked_.insert(asked_.end(), trial_.begin(), trial_.end());
  // Preferences become what was really chosen: those that gave way are forgotten.
  for (size_t i = agrees_; i < asked_.size(); ++i)
    preferences_[asked_[i].index()] = state_.actions()[i];
  agrees_ = decisions();
  latency_ = state_.latency_ps();
  changed_.clear();
}

void PreferenceSearch::Reject() {
  for (size_t i = changed_.size(); i-- > 0;) preferences_[changed_[i].first] = changed_[i].second;
  changed_.clear();
}

}  // namespace mallocgame
