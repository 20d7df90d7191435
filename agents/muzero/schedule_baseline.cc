#include "agents/muzero/schedule_baseline.h"

#include <algorithm>
#include <utility>

#include "mallocgame/game/priority/priority_tables.h"

namespace mallocgame::muzero {
namespace {

constexpr size_t kRememberedOrders = 32;  // of all threads

// Calls visit(access of the program in its own order) for the accesses of a run.
template <class Function>
void VisitAccesses(const OrderedGame& ordered, int32_t index, const Function& visit) {
  const PriorityTables& tables = ordered.game->priority_tables();
  const Run& run = tables.runs[index];
  for (int32_t i = run.first; i <= run.last; ++i)
    visit(ordered.own_access[tables.arrangement.decision(run.buffer, i).access.index()]);
}

}  // namespace

ScheduleBaseline::ScheduleBaseline(const ScheduleState& end)
    : policy_(end.game()), saved_by_access_(end.game().program().accesses().size()) {
  policy_.Adopt(end.actions());
  const OrderedGame& ordered = end.ordered();
  const absl::Span<const PriorityState::Decided> decided = end.placement()->decided();
  for (size_t i = 0; i + 1 < decided.size(); ++i) {
    if (decided[i].mode == Mode::kSplit) continue;
    const Run& run = ordered.game->priority_tables().runs[decided[i].run];
    int64_t left_ps = decided[i].latency_ps - decided[i + 1].latency_ps;
    int64_t left = run.last - run.first + 1;
    VisitAccesses(ordered, decided[i].run, [&](int32_t access) {
      const int64_t share_ps = left_ps / left--;
      saved_by_access_[access] = share_ps;
      left_ps -= share_ps;
    });
  }
}

std::shared_ptr<const Intent> ScheduleBaseline::IntentAt(const OrderedGame& ordered) const {
  {
    const std::lock_guard lock(mutex_);
    const auto known = std::find_if(remembered_.begin(), remembered_.end(),
                                    [&](const AtOrder& one) { return one.game == ordered.game; });
    if (known != remembered_.end()) {
      std::rotate(remembered_.begin(), known, known + 1);
      return remembered_.front().intent;
    }
  }
  auto intent = std::make_shared<const Intent>(
      IntentLike(*ordered.game, policy_.wanted(), ordered.own_access));
  const std::lock_guard lock(mutex_);
  if (remembered_.size() == kRememberedOrders) remembered_.pop_back();
  remembered_.insert(remembered_.begin(), {ordered.game, intent});
  return intent;
}

int64_t ScheduleBaseline::SavedOver(const ScheduleState& state) const {
  if (state.placement() == nullptr) return 0;
  int64_t saved_ps = 0;
  for (const PriorityState::Decided& decided : state.placement()->decided()) {
    if (decided.mode == Mode::kSplit) continue;
    VisitAccesses(state.ordered(), decided.run,
                  [&](int32_t access) { saved_ps += saved_by_access_[access]; });
  }
  return saved_ps;
}

}  // namespace mallocgame::muzero
