// The schedule game: it decides the order of instructions first, and then plays the priority game.
// schedule_state.h has its rules.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "mallocgame/game/game.h"
#include "mallocgame/game/game_options.h"
#include "mallocgame/game/mode.h"
#include "mallocgame/game/priority/priority_game.h"

namespace mallocgame {

struct ScheduleTables;

// The version changes with that of the priority game too.
inline constexpr int kScheduleRulesVersion = 1;
inline constexpr int kReadyShown = 16;
// The actions: Take of each unit that is shown, Next, and the priority game's.
inline constexpr int kNextUnits = kReadyShown;
inline constexpr int kOrderingActions = kReadyShown + 1;
inline constexpr int kMaxScheduleCandidates = 47;

class ScheduleGameOptions final : public PlacingOptions {
 public:
  // The most main memory that an order may need, as MainMemoryOf(program).total_bytes() counts it
  // (schedule/main_memory.h). 0: what the program's own order needs.
  int64_t main_bytes = 0;

  const char* game() const override { return "schedule"; }
  int rules_version() const override { return kScheduleRulesVersion; }
  int num_actions() const override { return kOrderingActions + candidates * kActionModes; }
  bool decides_order() const override { return true; }
  int decision_cost() const override { return 40; }  // an order that is new needs tables
  std::vector<ObservationPart> Layout(const ObservationOptions& options) const override;
  std::unique_ptr<GameOptions> Clone() const override {
    return std::make_unique<ScheduleGameOptions>(*this);
  }
  absl::StatusOr<std::shared_ptr<const Game>> MakeGame(std::shared_ptr<const Program> program,
                                                       const Hardware& hardware) const override;

 protected:
  std::vector<GameOption> Table() override {
    std::vector<GameOption> table = PlacingTable(kMaxScheduleCandidates, "1 to 47");
    table.push_back({"main_bytes", &main_bytes, 0, 0x1p63, "0 or more"});
    return table;
  }
};

class ScheduleGame final : public Game {
 public:
  // As Game::Create; and main_bytes may not be less than the program's own order needs.
  static absl::StatusOr<std::shared_ptr<const ScheduleGame>> Create(
      std::shared_ptr<const Program> program, const Hardware& hardware,
      const ScheduleGameOptions& options = {});
  ~ScheduleGame() override;

  std::unique_ptr<Position> NewInitialPosition() const override;
  // "Take 3" and "Next", and what the priority game says.
  std::string ActionToString(int action) const override;
  // Empty: runs depend on the order of instructions.
  Intent OpenIntent() const override { return {}; }
  Intent ReadPlan(const Plan& /*plan*/) const override { return {}; }
  std::shared_ptr<const Game> Reordered(std::shared_ptr<const Program> program,
                                        absl::Span<const Tick> order,
                                        absl::Span<const int32_t> access_of) const override;

  // Empty: the program's own order.
  std::shared_ptr<const Game> PlannedAt(const std::vector<Tick>& order) const override;

  // The priority game at the program's own order.
  const std::shared_ptr<const PriorityGame>& placement() const { return placement_; }
  // What the rules look up, computed once; schedule_tables.h defines the type.
  const ScheduleTables& schedule_tables() const { return *schedule_tables_; }

 protected:
  std::unique_ptr<const PositionObserver> MakeObserver(
      const ObservationOptions& options, std::shared_ptr<const PriceSums> prices) const override;

 private:
  ScheduleGame(std::shared_ptr<const Program> program, const Hardware& hardware,
               const ScheduleGameOptions& options, std::shared_ptr<const PriorityGame> placement);

  std::shared_ptr<const PriorityGame> placement_;
  std::unique_ptr<const ScheduleTables> schedule_tables_;
};

}  // namespace mallocgame
