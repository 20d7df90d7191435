// The time game. Decisions come in time order: at each tick the game asks about each access to a
// buffer that may move, reads before writes. What lies before the current tick is final.
// docs/rules.md states the rules with pictures; this header says what a caller needs.
//
//   Drop       The access is served from main memory.
//   Copy       A read: the buffer is prefetched in the latest window of the copy channel that hides
//              the copy; if there is none, the program stalls. A write: the value is made in fast
//              memory and evicted. A loop's entry: the buffer is prefetched before the loop
//              and kept over it.
//   NoCopy     A read: the residence of the previous access is kept until now; or, at the first
//              read of an entry parameter, the buffer is preloaded. A write: the value is made in
//              fast memory, and stays there until the buffer's last access.
//   CopyEarly  A read: as Copy, but in the earliest window. It is legal where that is another
//              window than Copy's.
//
// What a transfer between chips holds (Access::held_until) is decided once, where it begins; what
// it fills can't be evicted by Copy. Drop is always legal, so every game ends.
//
// Two options make the game harder. Both are recalled of arXiv 2305.07440, whose abstract and
// opening don't have them; how they work in detail is our own.
//
//   drop_backup      A write's NoCopy binds an alias group, the later accesses of the buffer, but
//                    doesn't decide them. The game asks about one after the other, and takes space
//                    only up to the next. NoCopy, which keeps the residence, alone is legal there.
//                    If its bytes are taken, the game is at a dead end, and goes back: to the
//                    write that binds the group, where only Drop is legal from then on.
//   illegal_penalty  All actions are legal. One that the rules don't allow is the first that they
//                    allow instead, Drop except in an alias group, and costs this share of the
//                    all-main latency, which counts in rewards, and not in latencies.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "mallocgame/game/game.h"
#include "mallocgame/game/game_options.h"

namespace mallocgame {

enum class Action : uint8_t { kDrop = 0, kCopy = 1, kNoCopy = 2, kCopyEarly = 3 };
inline constexpr int kActions = 4;
inline constexpr int kPaperActions = 3;  // with paper_actions: without CopyEarly
const char* ActionName(Action action);   // "Drop" ...

inline constexpr int kRulesVersion = 1;

class TimeGameOptions final : public GameOptions {
 public:
  bool paper_actions = false;  // leaves CopyEarly out
  bool drop_backup = false;    // as above
  double illegal_penalty = 0;  // as above, up to 1; with 0 illegal actions are refused

  const char* game() const override { return "time"; }
  int rules_version() const override { return kRulesVersion; }
  int num_actions() const override { return paper_actions ? kPaperActions : kActions; }
  int decision_cost() const override { return 1; }
  std::vector<ObservationPart> Layout(const ObservationOptions& options) const override;
  std::unique_ptr<GameOptions> Clone() const override {
    return std::make_unique<TimeGameOptions>(*this);
  }
  absl::StatusOr<std::shared_ptr<const Game>> MakeGame(std::shared_ptr<const Program> program,
                                                       const Hardware& hardware) const override;

 protected:
  std::vector<GameOption> Table() override {
    std::vector<GameOption> table = GameOptions::Table();
    table.push_back({"paper_actions", &paper_actions, 0, 1, "true or false"});
    table.push_back({"drop_backup", &drop_backup, 0, 1, "true or false"});
    table.push_back({"illegal_penalty", &illegal_penalty, 0, 1, "0 to 1"});
    return table;
  }
};

class TimeGame final : public Game {
 public:
  // As Game::Create.
  static absl::StatusOr<std::shared_ptr<const TimeGame>> Create(
      std::shared_ptr<const Program> program, const Hardware& hardware,
      const TimeGameOptions& options = {});

  std::unique_ptr<Position> NewInitialPosition() const override;
  std::string ActionToString(int action) const override;
  Intent OpenIntent() const override;
  Intent ReadPlan(const Plan& plan) const override;
  std::shared_ptr<const Game> Reordered(std::shared_ptr<const Program> program,
                                        absl::Span<const Tick> order,
                                        absl::Span<const int32_t> access_of) const override;

 protected:
  std::unique_ptr<const PositionObserver> MakeObserver(
      const ObservationOptions& options, std::shared_ptr<const PriceSums> prices) const override;

 private:
  TimeGame(std::shared_ptr<const Program> program, const Hardware& hardware,
           const TimeGameOptions& options, const Game* known = nullptr,
           absl::Span<const Tick> order = {});
};

}  // namespace mallocgame
