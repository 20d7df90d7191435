// One order of instructions with a placement of it: what annealing over both holds, and goes on
// from. Private to the folder.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "mallocgame/base/rng.h"
#include "mallocgame/game/game.h"
#include "mallocgame/plan/plan.h"
#include "mallocgame/schedule/instruction_order.h"
#include "mallocgame/schedule/units.h"
#include "mallocgame/search/game_search.h"
#include "mallocgame/search/intent.h"

namespace mallocgame {

class ScheduledGame {
 public:
  // Plays the priority game of `base`'s program with its instructions in `order`, and wants what
  // `decided` says (OwnSegment), in its order. `base` is a priority game at the units' own order
  // and must outlive this.
  ScheduledGame(const ScheduleUnits& units, const PriorityGame& base, UnitOrder order,
                const Intent& decided);
  // The same at the units' own order, with a dense intent of the game itself.
  ScheduledGame(const ScheduleUnits& units, const PriorityGame& base, Intent intent);

  const UnitOrder& order() const { return order_; }
  // order() as ticks, and where each tick of the program stands.
  const std::vector<Tick>& ticks() const { return ticks_; }
  const std::vector<Tick>& place() const { return place_; }
  const Program& program() const { return *made_.program; }
  const std::shared_ptr<const Program>& shared_program() const { return made_.program; }
  int64_t latency_ps() const { return search_->latency_ps(); }
  // Not while a placement is tried.
  Plan ToPlan() const { return search_->position().ToPlan(); }
  // What it decides, in its order (OwnSegment).
  Intent Decided() const;
  // Another placement, as of a Neighbourhood: set up by a random move; tried, whether its latency
  // is at most `most`; and then accepted or rejected. With nothing to place none is ever tried.
  void ProposePlacement(Rng& rng) {
    if (!search_->empty()) search_->Propose(rng);
  }
  bool TryPlacement(int64_t most) { return !search_->empty() && search_->Try(most); }
  void EndPlacement(bool accepted) {
    if (search_->empty()) return;
    accepted ? search_->Accept() : search_->Reject();
  }

 private:
  UnitOrder order_;
  std::vector<Tick> ticks_, place_;
  ReorderedProgram made_;
  std::vector<int32_t> base_access_;  // by access of made_
  std::shared_ptr<const PriorityGame> game_;
  std::unique_ptr<GameSearch> search_;
};

}  // namespace mallocgame
