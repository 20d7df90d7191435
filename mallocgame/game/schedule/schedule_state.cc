#include "mallocgame/game/schedule/schedule_state.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "mallocgame/base/error.h"

namespace mallocgame {

ScheduleState::ScheduleState(const std::shared_ptr<const ScheduleGame>& game)
    : game_(game), tables_(&game->schedule_tables()), order_(*tables_) {
  Look();
}

// Finds out what is asked next.
void ScheduleState::Look() {
  fitting_.clear();
  num_sure_ = 0;
  order_.VisitFitting([this](int32_t unit, bool sure) {
    if (sure) {
      fitting_.insert(fitting_.begin() + num_sure_++, unit);
    } else {
      fitting_.push_back(unit);
    }
  });
  Show();
  if (fitting_.empty()) BeginPlacement();
}

// Shows the page.
void ScheduleState::Show() {
  const auto count = static_cast<int>(fitting_.size());
  const int pages = (num_sure_ + kReadyShown - 1) / kReadyShown;
  const bool sure = page_ < pages;
  first_shown_ = sure ? page_ * kReadyShown : num_sure_ + (page_ - pages) * kReadyShown;
  num_shown_ = std::min((sure ? num_sure_ : count) - first_shown_, kReadyShown);
  has_next_ = first_shown_ + num_shown_ < count;
}

void ScheduleState::BeginPlacement() {
  std::vector<Tick> order;
  fell_back_ = !order_.complete();
  if (!fell_back_) {
    order = order_.Ticks();
    fell_back_ = tables_->PackedBytes(order) > tables_->limit_bytes;
  }
  if (fell_back_) {
    PartialOrder scratch = order_;
    order = OrderWithin(scratch);
  }
  ordered_ = tables_->GameAt(std::move(order));
  MG_CHECK(ordered_->game->all_main_ps() == game_->all_main_ps());
  placement_.emplace(ordered_->game);
}

// The decisions up to one of them, and then the program's own order: so many decisions that this is
// within the limit, and with one more it isn't.
std::vector<Tick> ScheduleState::OrderWithin(PartialOrder& order) const {
  std::vector<Tick> best = tables_->own->order;
  size_t within = 0, beyond = marks_.size();
  while (beyond - within > 1) {
    const size_t middle = (within + beyond) / 2;
    order = order_;
    order.Return(marks_[middle].order);
    std::vector<Tick> ticks;
    bool fits = order.Complete() <= tables_->limit_bytes;
    if (fits) {
      ticks = order.Ticks();
      fits = tables_->PackedBytes(ticks) <= tables_->limit_bytes;
    }
    if (fits) {
      within = middle;
      best = std::move(ticks);
    } else {
      beyond = middle;
    }
  }
  return best;
}

ActionSet ScheduleState::legal_actions() const {
  ActionSet legal;
  if (placement_) {
    const ActionSet placing = placement_->legal_actions();
    for (const int action : placing) legal.Add(kOrderingActions + action, 1);
    return legal;
  }
  for (int i = 0; i < num_shown_; ++i) legal.Add(i, 1);
  if (has_next_) legal.Add(kNextUnits, 1);
  return legal;
}

absl::StatusOr<int64_t> ScheduleState::Apply(int action) {
  if (IsTerminal()) return absl::FailedPreconditionError("the game is over: no run is open");
  if (placement_ && action >= kOrderingActions) {
    const int64_t before = placement_->latency_ps();
    if (placement_->TryApply(action - kOrderingActions)) {
      actions_.push_back(static_cast<uint8_t>(action));
      return before - placement_->latency_ps();
    }
  }
  const bool takes = !placement_ && 0 <= action && action < num_shown_;
  const bool turns = !placement_ && action == kNextUnits && has_next_;
  if (!takes && !turns) {
    std::string legal;
    for (const int other : legal_actions())
      absl::StrAppend(&legal, legal.empty() ? "" : ", ", other);
    return absl::InvalidArgumentError(
        absl::StrCat("action ", action, " (", game_->ActionToString(action),
                     ") is illegal at decision ", num_decisions(), "; legal: ", legal));
  }
  marks_.push_back({order_.mark(), page_});
  actions_.push_back(static_cast<uint8_t>(action));
  if (turns) {
    ++page_;
    Show();
  } else {
    page_ = 0;
    order_.Take(shown()[action]);
    Look();
  }
  // Whatever the order, everything is in main memory.
  return 0;
}

int64_t ScheduleState::SavingOf(int action) const {
  return placement_ ? placement_->SavingOf(action - kOrderingActions) : 0;
}

void ScheduleState::Undo() {
  MG_CHECK(!actions_.empty());
  actions_.pop_back();
  if (placement_ && placement_->num_decisions() > 0) {
    placement_->Undo();
    return;
  }
  placement_.reset();
  ordered_.reset();
  fell_back_ = false;
  page_ = marks_.back().page;
  order_.Return(marks_.back().order);
  marks_.pop_back();
  Look();
}

int64_t ScheduleState::latency_ps() const {
  return placement_ ? placement_->latency_ps() : game_->all_main_ps();
}

void ScheduleState::Decide(const Intent& /*intent*/) {
  if (!placement_) {
    MG_CHECK(Apply(0).ok());
  } else {
    const Intent open = ordered_->game->OpenIntent();
    Place([&](PriorityState& placement) { placement.Decide(open); });
  }
}

void ScheduleState::PlayOn(const Intent& intent) {
  while (!placement_) Decide(intent);
  const Intent open = ordered_->game->OpenIntent();
  Place([&](PriorityState& placement) { placement.Position::PlayOn(open); });
}

std::vector<Tick> ScheduleState::CompletedOrder() const {
  PartialOrder completed = order_;
  completed.Complete();
  return completed.Ticks();
}

std::shared_ptr<const Game> ScheduleState::PlannedGame() const {
  return placement_ ? ordered_->game : tables_->GameAt(CompletedOrder())->game;
}

std::vector<Tick> ScheduleState::InstructionOrder() const {
  return placement_ ? ordered_->order : CompletedOrder();
}

Plan ScheduleState::ToPlan() const {
  return placement_ ? placement_->ToPlan() : PlannedGame()->NewInitialPosition()->ToPlan();
}

std::string ScheduleState::ToString() const {
  const Program& program = game_->program();
  if (placement_) {
    return absl::StrCat(ordered_->own ? "the program's own order" : "an order of the game's own",
                        fell_back_ ? ", which main memory cut short" : "", "\n",
                        placement_->ToString());
  }
  std::string text = absl::StrFormat(
      "%s on %s, decision %d, %d of %d instructions in order, %d KiB of main memory live, allowed: "
      "%d\n",
      program.name(), game_->hardware().name, num_decisions(), order_.ticks_put(), program.ticks(),
      order_.live_bytes() >> 10, tables_->limit_bytes >> 10);
  for (int i = 0; i < num_shown_; ++i) {
    const GameUnit& unit = tables_->all[shown()[i]];
    absl::StrAppendFormat(
        &text, "%d: %s, %.3f us, %+d KiB\n", i, program.instruction(unit.end - 1).name,
        static_cast<double>(unit.time_ps) * 1e-6, order_.GrowthOf(shown()[i]) / 1024);
  }
  if (has_next_) absl::StrAppendFormat(&text, "%d: more\n", kNextUnits);
  return text;
}

}  // namespace mallocgame
