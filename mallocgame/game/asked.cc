#include "mallocgame/game/asked.h"

#include "mallocgame/game/game.h"
#include "mallocgame/game/priority/priority_state.h"
#include "mallocgame/game/schedule/schedule_state.h"
#include "mallocgame/game/state.h"

namespace mallocgame {

std::vector<AccessRun> AskedAbout(const Position& position) {
  if (position.IsTerminal()) return {};
  if (position.game().options().kind == GameKind::kTime) {
    const AccessId access = static_cast<const State&>(position).current_access();
    return {{access, access}};
  }
  if (position.game().options().kind == GameKind::kSchedule) {
    const PriorityState* const placement = static_cast<const ScheduleState&>(position).placement();
    return placement != nullptr ? AskedAbout(*placement) : std::vector<AccessRun>();
  }
  const auto& state = static_cast<const PriorityState&>(position);
  std::vector<AccessRun> runs;
  for (const int32_t index : state.candidates()) {
    if (index < 0) break;
    const Run& run = state.tables().runs[index];
    const ArrangementTables& tables = state.tables().arrangement;
    runs.push_back({tables.decision(run.buffer, run.first).access,
                    tables.decision(run.buffer, run.last).access});
  }
  return runs;
}

}  // namespace mallocgame
