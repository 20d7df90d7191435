// The priority game: it places residences in the order of importance. priority_state.h has its
// rules.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "mallocgame/game/game.h"
#include "mallocgame/game/game_options.h"
#include "mallocgame/game/mode.h"

namespace mallocgame {

struct PriorityTables;

inline constexpr int kPriorityRulesVersion = 3;
inline constexpr int kMaxCandidates = 51;

// The options of games that place residences in the order of importance.
class PlacingOptions : public GameOptions {
 public:
  int candidates = 4;  // so many runs are shown at a time
  // The importance of a run is what it saves / (its bytes^bytes_weight * the time that it is
  // held^time_weight), each weight in [0, 2]. With 1 and 1 the best use of space comes first, with
  // 0 and 0 the largest saving.
  double bytes_weight = 1.0, time_weight = 1.0;
  // Schedules the copies at each decision that places a residence, so that it saves what the
  // latency would change if nothing else were placed. Else a decision counts a lower bound of the
  // stalls, which takes less time, and the last decision makes up the difference.
  bool exact_stalls = false;

 protected:
  // With 1 to so many candidates.
  std::vector<GameOption> PlacingTable(int most_candidates, const char* allowed) {
    std::vector<GameOption> table = GameOptions::Table();
    table.push_back({"candidates", &candidates, 1, static_cast<double>(most_candidates), allowed});
    table.push_back({"bytes_weight", &bytes_weight, 0, 2, "0 to 2"});
    table.push_back({"time_weight", &time_weight, 0, 2, "0 to 2"});
    table.push_back({"exact_stalls", &exact_stalls, 0, 1, "true or false"});
    return table;
  }
};

class PriorityGameOptions final : public PlacingOptions {
 public:
  const char* game() const override { return "priority"; }
  int rules_version() const override { return kPriorityRulesVersion; }
  int num_actions() const override { return candidates * kActionModes; }
  int decision_cost() const override { return 4; }
  std::vector<ObservationPart> Layout(const ObservationOptions& options) const override;
  std::unique_ptr<GameOptions> Clone() const override {
    return std::make_unique<PriorityGameOptions>(*this);
  }
  absl::StatusOr<std::shared_ptr<const Game>> MakeGame(std::shared_ptr<const Program> program,
                                                       const Hardware& hardware) const override;

 protected:
  std::vector<GameOption> Table() override { return PlacingTable(kMaxCandidates, "1 to 51"); }
};

class PriorityGame final : public Game {
 public:
  // As Game::Create.
  static absl::StatusOr<std::shared_ptr<const PriorityGame>> Create(
      std::shared_ptr<const Program> program, const Hardware& hardware,
      const PriorityGameOptions& options = {});
  ~PriorityGame() override;
  // `game`, if it is a priority game; else null.
  static const PriorityGame* From(const Game& game) {
    return dynamic_cast<const PriorityGame*>(&game);
  }

  // As Reordered.
  std::shared_ptr<const PriorityGame> InOrder(std::shared_ptr<const Program> program,
                                              absl::Span<const Tick> order,
                                              absl::Span<const int32_t> access_of) const;
  std::shared_ptr<const PriorityGame> shared() const {
    return std::static_pointer_cast<const PriorityGame>(shared_from_this());
  }

  std::unique_ptr<Position> NewInitialPosition() const override;
  // "Late 2": the mode and the candidate.
  std::string ActionToString(int action) const override;
  Intent OpenIntent() const override;
  // Runs that the plan serves in several ways are split.
  Intent ReadPlan(const Plan& plan) const override;
  std::shared_ptr<const Game> Reordered(std::shared_ptr<const Program> program,
                                        absl::Span<const Tick> order,
                                        absl::Span<const int32_t> access_of) const override {
    return InOrder(std::move(program), order, access_of);
  }
  std::unique_ptr<IncumbentTrace> MakeTrace() const override;
  // A run, by its index in PriorityTables::runs, at another order of instructions, as accesses of
  // the program's own order: own_access[a] is access a there. What is the first and the last access
  // of a buffer differs between orders, so a run of all of them is named by the first in the
  // program's own order, and no last one.
  Segment OwnSegment(int32_t run, Mode mode, absl::Span<const int32_t> own_access) const;

  // NOLINTNEXTLINE(bugprone-derived-method-shadowing-base-method): the same, by its type.
  const PriorityGameOptions& options() const {
    return static_cast<const PriorityGameOptions&>(Game::options());
  }
  // What the rules look up, computed once; priority_tables.h defines the type.
  const PriorityTables& priority_tables() const { return *priority_tables_; }

 protected:
  std::unique_ptr<const PositionObserver> MakeObserver(
      const ObservationOptions& options, std::shared_ptr<const PriceSums> prices) const override;

 private:
  PriorityGame(std::shared_ptr<const Program> program, const Hardware& hardware,
               const PriorityGameOptions& options, const Game* known = nullptr,
               absl::Span<const Tick> order = {});

  std::unique_ptr<const PriorityTables> priority_tables_;
};

}  // namespace mallocgame
