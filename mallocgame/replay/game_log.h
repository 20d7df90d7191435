// A logged game (.mgr): what was played under which rules, and what it was worth, so that anyone
// can replay it bit for bit.
#ifndef MALLOCGAME_REPLAY_GAME_LOG_H_
#define MALLOCGAME_REPLAY_GAME_LOG_H_

#include <cstdint>
#include <memory>
#include <string>
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

struct GameLog {
  std::string program;  // name
  std::string program_fingerprint;
  Hardware hardware;
  GameOptions options;
  int32_t rules_version = kRulesVersion;
  std::string offset_policy = "best-fit";  // how the game picks a residence's offset
  std::string solver;                      // who played; free text
  uint64_t seed = 0;                       // of the player
  std::vector<uint8_t> actions;            // one a decision
  // likewise: what the decision saved, the reward before scaling
  std::vector<int64_t> saved_ps;
  // Of a player that searched, else empty: kActions numbers a decision, action by action.
  std::vector<int32_t> search_visits;  // how often the search took the action; >= 0
  // return it expects from here on if the action is taken; finite, 0 if never taken
  std::vector<float> search_values;
  Plan plan;      // where the game ended
  Report totals;  // of `plan`; the figures per tick are empty
  friend bool operator==(const GameLog&, const GameLog&) = default;
};

// Plays `actions` from the start. InvalidArgument with the step: an action is not legal, or the
// game isn't over after the last one, or is over before.
absl::StatusOr<GameLog> RecordGame(const Game& game, absl::Span<const uint8_t> actions,
                                   absl::string_view solver, uint64_t seed);

// Equal logs, equal bytes. All text must be UTF-8, else the bytes can't be read again.
std::string SerializeGameLog(const GameLog& log);

// The hardware has passed ValidateHardware, there are as many rewards as actions, and search
// statistics are complete; the rest is for ReplayLog to find out.
absl::StatusOr<GameLog> ParseGameLog(absl::string_view bytes);

struct ReplayVerdict {
  bool same = true;
  // the first that differs, from 0; -1: none, or only the plan or report at the end
  int64_t step = -1;
  std::string message;  // what differs: expected (in the log) and found (now); empty if nothing
};

// InvalidArgument: not empty and not of one row a decision, or a number out of range.
absl::Status CheckSearchStatistics(const GameLog& log);

// Plays the log again and compares every reward, the plan and the report; search statistics are
// taken as they stand. FailedPrecondition: other rules or another offset policy than this build's;
// InvalidArgument: the log is of another program (names both fingerprints), or its options are none
// for this program.
absl::StatusOr<ReplayVerdict> ReplayLog(const GameLog& log, std::shared_ptr<const Program> program);

}  // namespace mallocgame

#endif  // MALLOCGAME_REPLAY_GAME_LOG_H_
