// A logged game (.mgr): what was played, under which rules, and what it was worth. With it anyone
// can replay the game bit for bit.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "mallocgame/game/game.h"
#include "mallocgame/hardware/hardware.h"
#include "mallocgame/plan/plan.h"
#include "mallocgame/program/program.h"
#include "mallocgame/simulator/report.h"

namespace mallocgame {

// Options that are equal if what they point to is.
struct LoggedOptions : std::shared_ptr<const GameOptions> {
  using std::shared_ptr<const GameOptions>::shared_ptr;
  LoggedOptions(std::shared_ptr<const GameOptions> options)  // NOLINT(google-explicit-constructor)
      : std::shared_ptr<const GameOptions>(std::move(options)) {}
  friend bool operator==(const LoggedOptions& a, const LoggedOptions& b) {
    return a.get() == b.get() || (a.get() != nullptr && b.get() != nullptr && *a == *b);
  }
};

struct GameLog {
  std::string program;  // its name
  std::string program_fingerprint;
  Hardware hardware;
  LoggedOptions options;
  int32_t rules_version = 0;     // of the game that the options are of
  std::string solver;            // who played; free text
  uint64_t seed = 0;             // the player's
  std::vector<uint8_t> actions;  // by decision
  // by decision: what it saved, which is the reward before scaling
  std::vector<int64_t> saved_ps;
  // The statistics of a player that searched, else empty: for each decision as many numbers as the
  // game has actions.
  std::vector<int32_t> search_visits;  // how often the search took the action; >= 0
  // the return that the search expects from here on after the action; finite, 0 if never taken
  std::vector<float> search_values;
  // Of a schedule game: the order of instructions that the plan is of, for each of its ticks the
  // tick of the program. Else empty.
  std::vector<Tick> order;
  Plan plan;      // where the game ended
  Report totals;  // what the plan is worth; the figures by tick are empty
  friend bool operator==(const GameLog&, const GameLog&) = default;
};

// Plays `actions` from the start. InvalidArgument names the step: an action is not legal, or the
// game is not over after the last one, or it is over before.
absl::StatusOr<GameLog> RecordGame(const Game& game, absl::Span<const uint8_t> actions,
                                   absl::string_view solver, uint64_t seed);

// Equal logs give equal bytes. All text must be UTF-8; otherwise the bytes cannot be read again.
std::string SerializeGameLog(const GameLog& log);

// In the result, the hardware has passed ValidateHardware, there are as many rewards as actions,
// and search statistics are complete. ReplayLog checks the rest.
absl::StatusOr<GameLog> ParseGameLog(absl::string_view bytes);

struct ReplayVerdict {
  bool same = true;
  // the first step that differs, from 0; none if nothing does, or only the plan or report at the
  // end
  std::optional<int64_t> step;
  std::string message;  // what was expected (in the log) and found (now); empty if nothing differs
};

// InvalidArgument: the search statistics are neither empty nor complete, or a number is out of
// range.
absl::Status CheckSearchStatistics(const GameLog& log);

// Plays the log again and compares every reward, the plan and the report. Search statistics are not
// checked. FailedPrecondition: the log has other rules or another offset policy than this build.
// InvalidArgument: the log is of another program (the message has both fingerprints), or its
// options are not allowed for this program.
absl::StatusOr<ReplayVerdict> ReplayLog(const GameLog& log, std::shared_ptr<const Program> program);

}  // namespace mallocgame
