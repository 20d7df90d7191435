#include "mallocgame/solvers/schedule/scheduled_game.h"

#include <utility>

#include "mallocgame/base/error.h"

namespace mallocgame {
namespace {

std::vector<int32_t> Inverse(const std::vector<int32_t>& of) {
  std::vector<int32_t> inverse(of.size());
  for (size_t i = 0; i < of.size(); ++i) inverse[of[i]] = static_cast<int32_t>(i);
  return inverse;
}

}  // namespace

ScheduledGame::ScheduledGame(const ScheduleUnits& units, const PriorityGame& base, UnitOrder order,
                             const Intent& decided)
    : order_(std::move(order)), ticks_(units.TicksOf(order_)), place_(Inverse(ticks_)) {
  made_ = ReorderedLegally(units.program(), ticks_);
  base_access_ = Inverse(made_.access_of);
  game_ = base.InOrder(made_.program, ticks_, made_.access_of);
  search_ = std::make_unique<GameSearch>(*game_, IntentLike(*game_, decided, base_access_));
}

ScheduledGame::ScheduledGame(const ScheduleUnits& units, const PriorityGame& base, Intent intent)
    : order_(units.ProgramOrder()), ticks_(units.TicksOf(order_)), place_(Inverse(ticks_)) {
  made_.program = units.shared_program();
  for (size_t a = 0; a < made_.program->accesses().size(); ++a)
    made_.access_of.push_back(static_cast<int32_t>(a));
  base_access_ = made_.access_of;
  game_ = base.shared();
  search_ = std::make_unique<GameSearch>(*game_, std::move(intent));
}

Intent ScheduledGame::Decided() const {
  Intent decided;
  for (int32_t i = 0; i < search_->decisions(); ++i) {
    const int32_t run = search_->segment(i);
    decided.push_back(game_->OwnSegment(run, search_->intent()[run].mode, base_access_));
  }
  return decided;
}

}  // namespace mallocgame
