#include "mallocgame/search/game_search.h"

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

GameSearch::GameSearch(const PriorityGame& game, Intent intent)
    : position_(game.shared()), intent_(std::move(intent)), trace_(game.MakeTrace()),
      moves_(GameMoves::Create(*this)) {
  MG_CHECK(Try(std::numeric_limits<int64_t>::max()));
  Accept();
}

Intent GameSearch::Replayable() const {
  std::vector<double> highest;  // the highest rank up to each decision
  for (int32_t i = 0; i < decisions(); ++i) {
    const double rank = intent_[segment(i)].rank;
    highest.push_back(i == 0 ? rank : std::max(highest.back(), rank));
  }
  Intent replayable = intent_;
  for (size_t s = 0; s < replayable.size(); ++s) {
    const int32_t at = decision_of(static_cast<int32_t>(s));
    double& rank = replayable[s].rank;
    // A run that was never open keeps its place among the others.
    rank = at >= 0 ? at
                   : static_cast<double>(std::lower_bound(highest.begin(), highest.end(), rank) -
                                         highest.begin()) -
                         0.5;
  }
  return replayable;
}

const PriorityState& GameSearch::GoTo(int32_t i) {
  while (position_.num_decisions() > std::min(agrees_, i)) position_.Undo();
  trace_->Follow(position_, i);
  agrees_ = i;
  return position_;
}

void GameSearch::Want(int32_t segment, Mode mode, double rank) {
  changed_.emplace_back(segment, intent_[segment]);
  intent_[segment].mode = mode;
  intent_[segment].rank = rank;
  trace_->Change(segment);
}

// Until the end the stalls of a priority game are counted from below.
bool GameSearch::IsHopeless(int64_t most) const {
  const PriorityState& state = position_;
  return state.candidates().size() > 1 && state.candidates()[1] < 0 &&
         state.latency_ps() - state.tables().runs[state.candidates()[0]].saving_ps > most;
}

bool GameSearch::Try(int64_t most) {
  trace_->Begin(agrees_);
  while (!position_.IsTerminal()) {
    if (IsHopeless(most)) return false;
    trace_->Decide(position_, intent_);
  }
  return position_.latency_ps() <= most;
}

void GameSearch::Accept() {
  for (int32_t i = agrees_; i < position_.num_decisions(); ++i)
    intent_[position_.DecidedSegment(i)].mode = position_.DecidedMode(i);
  trace_->Adopt(position_, agrees_);
  latency_ = position_.latency_ps();
  agrees_ = decisions();
  changed_.clear();
  if (++accepted_ % kAcceptedBetweenOrders == 0) intent_ = Replayable();
  moves_->Accepted();
}

void GameSearch::Reject() {
  for (size_t i = changed_.size(); i-- > 0;) intent_[changed_[i].first] = changed_[i].second;
  changed_.clear();
  trace_->ForgetChanges();
}

}  // namespace mallocgame
