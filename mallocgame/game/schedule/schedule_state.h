// One position of the schedule game: an order of the instructions so far, and then a position of
// the priority game at that order. docs/schedule-game.md states the rules.
//
// First the order is decided, unit by unit (schedule/units.h). The game shows the units that can
// come next and that main memory has room for, in the program's order, kReadyShown at a time. First
// it shows those behind which the program's own order surely stays within the limit of main memory;
// the others stand on pages of their own.
//
//   Take   One of them comes next.
//   Next   The next page is shown, if there is one. When a unit is taken, the first is shown again.
//
// What can only come next is put without being asked about, and what takes no time goes with what
// needs it. Where a unit has regions with a choice, such as a loop's body, their order is decided
// when the unit is taken. If no unit has room, or if the order needs more main memory at offsets
// than allowed, then the decisions up to some one of them hold, and behind it the program's own
// order goes on: the one that bisection finds. So every order within the limit can be played, and
// every game ends within it.
//
// Then the residences are placed, by the rules of the priority game
// (game/priority/priority_state.h) at that order. All that is saved is saved there: orders differ
// in nothing while everything is in main memory.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "mallocgame/game/position.h"
#include "mallocgame/game/priority/priority_state.h"
#include "mallocgame/game/schedule/partial_order.h"
#include "mallocgame/game/schedule/schedule_game.h"
#include "mallocgame/game/schedule/schedule_tables.h"
#include "mallocgame/plan/plan.h"

namespace mallocgame {

class ScheduleState final : public Position {
 public:
  explicit ScheduleState(const std::shared_ptr<const ScheduleGame>& game);

  std::unique_ptr<Position> Clone() const override {
    return std::make_unique<ScheduleState>(*this);
  }
  void CopyFrom(const Position& other) override {
    *this = static_cast<const ScheduleState&>(other);
  }
  const ScheduleGame& game() const override { return static_cast<const ScheduleGame&>(*game_); }
  const std::shared_ptr<const Game>& shared_game() const override { return game_; }
  bool IsTerminal() const override { return placement_ && placement_->IsTerminal(); }
  ActionSet legal_actions() const override;
  absl::StatusOr<int64_t> Apply(int action) override;
  int64_t SavingOf(int action) const override;
  void Undo() override;
  absl::Span<const uint8_t> actions() const override { return actions_; }
  int64_t latency_ps() const override;
  Plan ToPlan() const override;
  std::shared_ptr<const Game> PlannedGame() const override;
  std::vector<Tick> InstructionOrder() const override;
  std::string ToString() const override;
  std::vector<AccessRun> AskedAbout() const override {
    return placement_ ? placement_->AskedAbout() : std::vector<AccessRun>();
  }
  void Decide(const Intent& intent) override;
  void PlayOn(const Intent& intent) override;
  Mode DecidedMode(int /*i*/) const override { return Mode::kOpen; }
  int32_t DecidedSegment(int /*i*/) const override { return -1; }

  // Where the order is decided: null, and then the position of the priority game.
  const PriorityState* placement() const { return placement_ ? &*placement_ : nullptr; }
  // Plays on: calls place(position of the priority game), which may decide and undo. The order must
  // be decided.
  template <class Function>
  void Place(const Function& place) {
    place(*placement_);
    actions_.resize(marks_.size());
    for (const uint8_t action : placement_->actions())
      actions_.push_back(static_cast<uint8_t>(kOrderingActions + action));
  }
  // The order that the game has come to, once it is decided.
  const OrderedGame& ordered() const { return *ordered_; }
  // The order of the units so far, as it was decided.
  const PartialOrder& order() const { return order_; }
  const ScheduleTables& tables() const { return *tables_; }
  // The units that are shown, as indices into ScheduleTables::all; empty once the order is decided.
  absl::Span<const int32_t> shown() const {
    return absl::MakeConstSpan(fitting_).subspan(first_shown_, num_shown_);
  }
  bool has_next() const { return has_next_; }
  // All units that can be taken on this or another page, and where unit i of them stands.
  absl::Span<const int32_t> fitting() const { return fitting_; }
  struct OnPage {
    int page, place;
  };
  OnPage PlaceOf(int i) const {
    if (i < num_sure_) return {i / kReadyShown, i % kReadyShown};
    const int pages = (num_sure_ + kReadyShown - 1) / kReadyShown;
    return {pages + (i - num_sure_) / kReadyShown, (i - num_sure_) % kReadyShown};
  }
  // How many pages were turned since the last unit was taken.
  int page() const { return page_; }
  int order_decisions() const { return static_cast<int>(marks_.size()); }
  // Whether the game's order is not the decided one, because main memory was too small for that.
  bool fell_back() const { return fell_back_; }

 private:
  // Before a decision.
  struct Mark {
    size_t order;
    int page;
  };

  void Look();
  void Show();
  void BeginPlacement();
  std::vector<Tick> OrderWithin(PartialOrder& order) const;
  std::vector<Tick> CompletedOrder() const;

  std::shared_ptr<const Game> game_;
  const ScheduleTables* tables_;
  PartialOrder order_;
  std::vector<Mark> marks_;
  std::vector<int32_t> fitting_;  // the sure ones first
  int num_sure_ = 0;
  int first_shown_ = 0, num_shown_ = 0;  // in fitting_
  int page_ = 0;
  bool has_next_ = false, fell_back_ = false;
  // When the order is decided.
  std::shared_ptr<const OrderedGame> ordered_;
  std::optional<PriorityState> placement_;
  std::vector<uint8_t> actions_;
};

}  // namespace mallocgame
