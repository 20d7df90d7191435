#include "mallocgame/solvers/playing/order_search.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "mallocgame/base/error.h"

namespace mallocgame {
namespace {

// Where ranks differ from the order, a change may wait for another one that makes it count, but
// most changes of the order do nothing.
constexpr int64_t kAcceptedBetweenOrders = 256;

}  // namespace

OrderSearch::OrderSearch(const Game& game, OrderPreferences preferences)
    : state_(game.shared_from_this()), preferences_(std::move(preferences)),
      guide_(state_.tables()) {
  MG_CHECK(Play(std::numeric_limits<int64_t>::max()));
  Accept();
}

OrderPreferences OrderSearch::Replayable() const {
  std::vector<double> highest;  // the highest rank up to each decision
  for (int32_t i = 0; i < decisions(); ++i) {
    const double rank = preferences_[run(i)].rank;
    highest.push_back(i == 0 ? rank : std::max(highest.back(), rank));
  }
  OrderPreferences replayable = preferences_;
  for (size_t r = 0; r < replayable.size(); ++r) {
    const int32_t at = decision_of(static_cast<int32_t>(r));
    double& rank = replayable[r].rank;
    // A run that was never open keeps its place among the others.
    rank = at >= 0 ? at
                   : static_cast<double>(std::lower_bound(highest.begin(), highest.end(), rank) -
                                         highest.begin()) -
                         0.5;
  }
  return replayable;
}

void OrderSearch::GoTo(int32_t i) {
  while (state_.num_decisions() > std::min(agrees_, i)) state_.Undo();
  guide_.Follow(state_, i);
  agrees_ = i;
}

void OrderSearch::Prefer(int32_t run, const OrderPreference& preference) {
  changed_.emplace_back(run, preferences_[run]);
  preferences_[run] = preference;
  guide_.Change(run);
}

bool OrderSearch::Play(int64_t most) {
  guide_.Begin(agrees_);
  while (!state_.IsTerminal()) {
    // Until the end the stalls are counted from below.
    if (state_.candidates().size() > 1 && state_.candidates()[1] < 0 &&
        state_.latency_ps() - state_.tables().runs[state_.candidates()[0]].saving_ps > most)
      return false;
    guide_.Decide(state_, preferences_);
  }
  return state_.latency_ps() <= most;
}

void OrderSearch::Accept() {
  // Preferences become what was really chosen: those that gave way are forgotten.
  for (const OrderState::Decided& decided : state_.decided().subspan(agrees_))
    preferences_[decided.run].service = static_cast<uint8_t>(decided.service);
  guide_.Adopt(state_, agrees_);
  latency_ = state_.latency_ps();
  agrees_ = decisions();
  changed_.clear();
  if (++accepted_ % kAcceptedBetweenOrders == 0) preferences_ = Replayable();
}

void OrderSearch::Reject() {
  for (size_t i = changed_.size(); i-- > 0;) preferences_[changed_[i].first] = changed_[i].second;
  changed_.clear();
  guide_.ForgetChanges();
}

}  // namespace mallocgame
