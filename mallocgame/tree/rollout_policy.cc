#include "mallocgame/tree/rollout_policy.h"

#include <algorithm>
#include <utility>

#include "mallocgame/base/error.h"
#include "mallocgame/game/play_actions.h"

namespace mallocgame::mcts {
namespace {

constexpr double kNextRank = 1e-3;  // between the ranks of segments that are taken one by one

}  // namespace

RolloutPolicy::RolloutPolicy(const Game& game, Intent intent)
    : game_(game), intent_(std::move(intent)), trace_(game.MakeTrace()) {}

void RolloutPolicy::PlayOn(Position& position) {
  trace_->Begin(position);
  while (!position.IsTerminal()) trace_->Decide(position, intent_);
}

// Ranks grow along the adopted game. So of the candidates that it saw, the one that it took has the
// lowest rank.
void RolloutPolicy::Adopt(absl::Span<const uint8_t> actions) {
  const auto end = PlayActions(game_, actions);
  MG_CHECK(end.ok());
  trace_->Adopt(**end, 0);
  double rank = -1;
  for (int i = 0; i < (*end)->num_decisions(); ++i) {
    const int32_t segment = (*end)->DecidedSegment(i);
    rank = std::max(static_cast<double>(segment), rank + kNextRank);
    intent_[segment].mode = (*end)->DecidedMode(i);
    intent_[segment].rank = rank;
  }
}

void RolloutPolicy::Change(Rng& rng) { trace_->Kick(intent_, rng); }

}  // namespace mallocgame::mcts
