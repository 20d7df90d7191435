#include "agents/mcts/follower.h"

#include <algorithm>

#include "mallocgame/base/error.h"

namespace mallocgame::mcts {
namespace {

constexpr uint32_t kMostChanged = 8;  // greatest number of successive decisions that are changed
constexpr uint32_t kMostMoved = 16;   // greatest number of decisions by which a run is moved
constexpr double kNextRank = 1e-3;    // between the ranks of runs that are taken one by one

}  // namespace

std::unique_ptr<Follower> Follower::Create(const Game& game) {
  if (game.options().kind == GameKind::kOrder)
    return std::make_unique<OrderFollower>(game, OrderUndecided(game));
  return std::make_unique<TimeFollower>(game,
                                        Preferences(game.program().accesses().size(), kUndecided));
}

void TimeFollower::PlayOn(Position& position) {
  auto& state = static_cast<State&>(position);
  while (!state.IsTerminal()) {
    const uint8_t preference = preferences_[state.current_access().index()];
    MG_CHECK(state.Apply(PreferredAction(state, preference)).ok());
  }
}

void TimeFollower::Adopt(absl::Span<const uint8_t> actions) {
  State state = game_.InitialState();
  asked_.clear();
  for (const uint8_t action : actions) {
    asked_.push_back(state.current_access());
    preferences_[asked_.back().index()] = action;
    MG_CHECK(state.Apply(static_cast<Action>(action)).ok());
  }
}

void TimeFollower::AdoptPlan(const Plan& plan) {
  preferences_ = PreferencesOf(game_, plan);
  asked_.clear();
}

// Also changes, half of the time, the decisions about one buffer from some moment on.
void TimeFollower::Change(Rng& rng) {
  const auto decisions = static_cast<uint32_t>(asked_.size());
  const auto any_action = [&] { return static_cast<uint8_t>(rng.Below(game_.num_actions())); };
  const uint32_t begin = rng.Below(decisions),
                 end = std::min(decisions, begin + 1 + rng.Below(kMostChanged));
  for (uint32_t i = begin; i < end; ++i) {
    if (rng.Below(2) == 0) preferences_[asked_[i].index()] = any_action();
  }
  if (rng.Below(2) == 0) {
    const Program& program = game_.program();
    const AccessId first = asked_[rng.Below(decisions)];
    const uint8_t action = any_action();
    for (const AccessId id : program.accesses_of(program.access(first).buffer)) {
      if (id >= first && rng.Below(4) != 0) preferences_[id.index()] = action;
    }
  }
}

OrderFollower::OrderFollower(const Game& game, OrderPreferences preferences)
    : game_(game), preferences_(std::move(preferences)), guide_(game.order_tables()) {}

void OrderFollower::PlayOn(Position& position) {
  auto& state = static_cast<OrderState&>(position);
  guide_.Begin(state);
  while (!state.IsTerminal()) guide_.Decide(state, preferences_);
}

// Ranks grow along the adopted game. So of the candidates that it saw, the one that it took has the
// lowest rank.
void OrderFollower::Adopt(absl::Span<const uint8_t> actions) {
  OrderState state(game_.shared_from_this());
  for (const uint8_t action : actions) MG_CHECK(state.TryApply(action));
  guide_.Adopt(state, 0);
  double rank = -1;
  for (const OrderState::Decided& decided : state.decided()) {
    rank = std::max(static_cast<double>(decided.run), rank + kNextRank);
    preferences_[decided.run] = {static_cast<uint8_t>(decided.service), rank};
  }
}

void OrderFollower::AdoptPlan(const Plan& plan) {
  preferences_ = OrderPreferencesOf(game_, plan);
  guide_ = OrderGuide(game_.order_tables());
}

void OrderFollower::ChangeService(int32_t run, Rng& rng) {
  guide_.Change(run);
  preferences_[run].service = static_cast<uint8_t>(rng.Below(kServices));
}

// Changes how successive runs are served, serves a run as a whole that was split, or takes one
// earlier or later.
void OrderFollower::Change(Rng& rng) {
  const auto decisions = static_cast<uint32_t>(guide_.decisions());
  const uint32_t at = rng.Below(decisions), kind = rng.Below(4);
  const int32_t run = guide_.run(static_cast<int32_t>(at));
  const int32_t parent = game_.order_tables().runs[run].parent;
  if (kind == 0 && parent >= 0) {
    const Service service = rng.Below(2) == 0 ? Service::kLate : Service::kEarly;
    guide_.Change(parent);
    preferences_[parent].service = static_cast<uint8_t>(service);
  } else if (kind == 1) {
    const uint32_t by = 1 + rng.Below(kMostMoved);
    const bool earlier = rng.Below(2) == 0;
    const uint32_t other = earlier ? at - std::min(at, by) : std::min(at + by, decisions - 1);
    guide_.Change(run);
    preferences_[run].rank = preferences_[guide_.run(static_cast<int32_t>(other))].rank +
                             (earlier ? -0.5 : 0.5) * kNextRank;
  } else {
    const uint32_t end = std::min(decisions, at + 1 + rng.Below(kMostChanged));
    for (uint32_t i = at; i < end; ++i) {
      if (i == at || rng.Below(2) == 0) ChangeService(guide_.run(static_cast<int32_t>(i)), rng);
    }
  }
}

}  // namespace mallocgame::mcts
