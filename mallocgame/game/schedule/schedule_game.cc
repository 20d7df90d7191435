#include "mallocgame/game/schedule/schedule_game.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "mallocgame/base/error.h"
#include "mallocgame/game/schedule/schedule_observation.h"
#include "mallocgame/game/schedule/schedule_state.h"
#include "mallocgame/game/schedule/schedule_tables.h"
#include "mallocgame/schedule/main_memory.h"

namespace mallocgame {
namespace {

absl::Status CheckMainMemory(const Program& program, const ScheduleGameOptions& options) {
  const int64_t needed = MainMemoryOf(program).total_bytes();
  if (options.main_bytes == 0 || options.main_bytes >= needed) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("main_bytes: found ", options.main_bytes, ", program '", program.name(),
                   "' needs ", needed, " in its own order; allowed: that or more, or 0 for that"));
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Game>> ScheduleGameOptions::MakeGame(
    std::shared_ptr<const Program> program, const Hardware& hardware) const {
  return ScheduleGame::Create(std::move(program), hardware, *this);
}

absl::StatusOr<std::shared_ptr<const ScheduleGame>> ScheduleGame::Create(
    std::shared_ptr<const Program> program, const Hardware& hardware,
    const ScheduleGameOptions& options) {
  MG_RETURN_IF_ERROR(Check(program, hardware, options));
  if (options.main_bytes > 0) MG_RETURN_IF_ERROR(CheckMainMemory(*program, options));
  PriorityGameOptions placing;
  placing.TakeOver(options);
  MG_ASSIGN_OR_RETURN(auto placement, PriorityGame::Create(program, hardware, placing));
  return std::shared_ptr<const ScheduleGame>(
      new ScheduleGame(std::move(program), hardware, options, std::move(placement)));
}

ScheduleGame::ScheduleGame(std::shared_ptr<const Program> program, const Hardware& hardware,
                           const ScheduleGameOptions& options,
                           std::shared_ptr<const PriorityGame> placement)
    : Game(std::move(program), hardware, options), placement_(std::move(placement)),
      schedule_tables_(
          std::make_unique<const ScheduleTables>(*this, placement_, options.main_bytes)) {
  // As many runs in every order.
  max_decisions_ = placement_->max_decisions() + schedule_tables_->max_order_decisions;
}

ScheduleGame::~ScheduleGame() = default;

std::unique_ptr<Position> ScheduleGame::NewInitialPosition() const {
  return std::make_unique<ScheduleState>(
      std::static_pointer_cast<const ScheduleGame>(shared_from_this()));
}

std::string ScheduleGame::ActionToString(int action) const {
  if (action == kNextUnits) return "Next";
  if (action >= 0 && action < kOrderingActions) return absl::StrCat("Take ", action);
  return placement_->ActionToString(action - kOrderingActions);
}

std::shared_ptr<const Game> ScheduleGame::Reordered(std::shared_ptr<const Program> /*program*/,
                                                    absl::Span<const Tick> /*order*/,
                                                    absl::Span<const int32_t> /*access_of*/) const {
  MG_CHECK(false);
  return nullptr;
}

std::shared_ptr<const Game> ScheduleGame::PlannedAt(const std::vector<Tick>& order) const {
  if (order.empty()) return placement_;
  return schedule_tables_->GameAt(order)->game;
}

std::unique_ptr<const PositionObserver> ScheduleGame::MakeObserver(
    const ObservationOptions& options, std::shared_ptr<const PriceSums> /*prices*/) const {
  return std::make_unique<const ScheduleObserver>(*this, options);
}

}  // namespace mallocgame
