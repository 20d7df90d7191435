// How a schedule game is played on: units by rank, then residences as an intent wants. And how any
// game is.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "mallocgame/base/rng.h"
#include "mallocgame/game/game.h"
#include "mallocgame/game/position.h"
#include "mallocgame/game/schedule/schedule_state.h"
#include "mallocgame/plan/plan.h"
#include "mallocgame/schedule/units.h"
#include "mallocgame/search/intent.h"
#include "mallocgame/tree/rollout_policy.h"

namespace mallocgame::mcts {

class SchedulePolicy final : public BasePolicy {
 public:
  // Begins with the better one of greedy's placement at the program's own order and one like
  // `plan`, a plan at that order; or with that placement at the order of a list scheduler
  // (schedule/list_scheduling.h), if that is better. `game` must outlive the policy.
  SchedulePolicy(const ScheduleGame& game, const Plan& plan);
  // Begins with the program's own order and greedy's placement.
  explicit SchedulePolicy(const ScheduleGame& game);

  void PlayOn(Position& position) override;
  void Adopt(absl::Span<const uint8_t> actions) override;
  // Another place in the order for one unit, or another service for a few runs.
  void Change(Rng& rng) override;

  // What it does next where the order is not decided yet.
  int OrderingAction(const ScheduleState& state) const;
  // What it wants of the residences (OwnSegment), in PlayOn's order. Where it wants nothing a mode
  // is kOpen.
  const Intent& wanted() const { return wanted_; }
  // Single changes: `unit` stands before `other` as soon as it can (ScheduleTables::all); `one` is
  // served in its mode, and before `other` if that is another run.
  void PutBefore(int32_t unit, int32_t other);
  void Serve(const Segment& one, const Segment& other);

 private:
  void RankByOrder(const UnitOrder& order);
  void Order(ScheduleState& state) const;
  const Intent& IntentAt(const ScheduleState& state);

  const ScheduleGame* game_;
  // By unit (ScheduleTables::all). Of the units that can come next that of the least rank does.
  std::vector<double> rank_;
  std::vector<int32_t> movable_;  // units with a choice
  Intent wanted_;
  // What wanted_ is at the order that was played last.
  std::shared_ptr<const PriorityGame> intent_game_;
  Intent intent_;
};

// A policy of whichever game: until it is given a game to adopt it plays greedily, or to get
// `plan`, a plan at the program's own order.
std::unique_ptr<BasePolicy> MakePolicy(const Game& game, const Plan* plan = nullptr);

}  // namespace mallocgame::mcts
