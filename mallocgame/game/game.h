// The rules of mallocGame: a single-player game whose every play ends in a valid Plan.
//
// Decisions come in time order: at each tick the game asks about each access to a buffer that may
// move, reads before writes. What lies before the current tick is final. docs/rules.md states the
// rules with pictures; this header says what a caller needs.
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
// it fills can't be evicted by Copy.
//
// Drop is always legal, so every game ends. The undiscounted return is 1 - latency / all-main latency, exactly: it
// is counted in the integer picoseconds that each action saves.
#ifndef MALLOCGAME_GAME_GAME_H_
#define MALLOCGAME_GAME_GAME_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "mallocgame/base/ids.h"
#include "mallocgame/hardware/hardware.h"
#include "mallocgame/plan/plan.h"
#include "mallocgame/program/cost_model.h"
#include "mallocgame/program/program.h"

namespace mallocgame {

enum class Action : uint8_t { kDrop = 0, kCopy = 1, kNoCopy = 2, kCopyEarly = 3 };
inline constexpr int kActions = 4;
inline constexpr int kPaperActions = 3;  // with GameOptions::paper_actions: without CopyEarly
const char* ActionName(Action action);   // "Drop" ...

// The versions of the rules of the games. A version changes with every change of a rule of its
// game; a logged game is replayed under the version that it names. The schedule game ends as the
// priority game does, so its version changes with that of the priority game too.
inline constexpr int kRulesVersion = 1;
inline constexpr int kPriorityRulesVersion = 3;
inline constexpr int kScheduleRulesVersion = 1;

// Which game is played: the time game asks about each access in the order of time (game/state.h),
// the priority game about residences in the order of importance (game/priority/priority_state.h).
// The schedule game decides the order of instructions first, and then plays the priority game
// (game/schedule/schedule_state.h). All end in plans of the same program, priced in the same way.
enum class GameKind : uint8_t { kTime, kPriority, kSchedule };
inline constexpr int kGameKinds = 3;
const char* GameKindName(GameKind kind);  // "time", "priority", "schedule"
int RulesVersionOf(GameKind kind);
inline constexpr int kMaxCandidates = 51;  // of GameOptions::candidates
inline constexpr int kMaxScheduleCandidates =
    47;  // in the schedule game, which has other actions too

struct GameOptions {
  GameKind kind = GameKind::kTime;
  // The next four are of the priority game, and of the schedule game. So many runs are shown at a
  // time, 1 to 51; in the schedule game 1 to 47.
  int candidates = 4;
  // The importance of a run is what it saves / (its bytes^bytes_weight * the time that it is
  // held^time_weight), each weight in [0, 2]. With 1 and 1 the best use of space comes first, with
  // 0 and 0 the largest saving.
  double bytes_weight = 1.0, time_weight = 1.0;
  // Schedules the copies at each decision that places a residence, so that it saves what the
  // latency would change if nothing else were placed. Else a decision counts a lower bound of the
  // stalls, which takes less time, and the last decision makes up the difference.
  bool exact_stalls = false;
  // Of the schedule game: the most main memory that an order may need, as
  // MainMemoryOf(program).total_bytes() counts it (schedule/main_memory.h). 0: what the program's
  // own order needs.
  int64_t main_bytes = 0;
  // Smaller buffers stay in main memory, and the game does not ask about them; >= 0. GameByDefault
  // (search/game_variants.h) asks about smaller ones where they count.
  int64_t min_buffer_bytes = 16 << 10;
  bool paper_actions = false;  // leaves CopyEarly out
  // The share of the capacity that no residence may take, in [0, 1).
  double keep_free = 0.0;
  // Accesses that must be served from main memory.
  std::vector<AccessId> forbidden = {};
  friend bool operator==(const GameOptions&, const GameOptions&) = default;
};

// How many actions a game with these options has.
int NumActions(const GameOptions& options);

class Position;
class State;
struct GameTables;
struct PriorityTables;
struct ScheduleTables;

// A program, a hardware and options. Immutable: shared by all its states and by threads.
class Game : public std::enable_shared_from_this<Game> {
 public:
  // InvalidArgument: options out of range, an access that does not exist, hardware that
  // ValidateHardware refuses, or a program that would take days on it (more than 2^60 ps).
  static absl::StatusOr<std::shared_ptr<const Game>> Create(std::shared_ptr<const Program> program,
                                                            const Hardware& hardware,
                                                            const GameOptions& options = {});
  ~Game();

  // The same game of `program`, which has the instructions of this game's program in another order:
  // tick t is tick order[t] of that, and its access a is access access_of[a] of `program`
  // (schedule/instruction_order.h). Prices are taken over, so this takes less time than Create. Not
  // of a schedule game.
  std::shared_ptr<const Game> Reordered(std::shared_ptr<const Program> program,
                                        absl::Span<const Tick> order,
                                        absl::Span<const int32_t> access_of) const;

  // The first position, of whichever game it is.
  std::unique_ptr<Position> Start() const;
  // The same as a State; the game must be a time game.
  State InitialState() const;

  const Program& program() const { return *program_; }
  std::shared_ptr<const Program> shared_program() const { return program_; }
  const Hardware& hardware() const { return hardware_; }
  const GameOptions& options() const { return options_; }
  const CostModel& cost_model() const { return cost_model_; }
  int num_actions() const { return num_actions_; }
  // What an action in [0, num_actions()) is called: "Copy"; in the priority game "Late 2", the mode
  // and the candidate; in the schedule game "Take 3" and "Next" too.
  std::string ActionText(int action) const;
  // Bytes that residences may use: the capacity of fast memory less the share keep_free, rounded
  // down to the alignment. Residences lie in [0, usable_bytes()).
  int64_t usable_bytes() const { return usable_bytes_; }
  // Whether main memory must serve an access: it is forbidden by the options, or its instruction
  // can't make results elsewhere (Program::in_main_only).
  bool in_main(AccessId id) const { return in_main_[id.index()]; }
  // Whether the options forbid to serve an access from fast memory.
  bool forbidden(AccessId id) const;
  // The latency of the plan with everything in main memory.
  int64_t all_main_ps() const { return all_main_ps_; }
  // An upper limit of the length of a game; in the time game the number of accesses that it can ask
  // about.
  int max_decisions() const { return max_decisions_; }
  // What the rules look up, computed once. For the code of this folder: mallocgame/game/tables.h,
  // which defines the type, is private.
  const GameTables& tables() const { return *tables_; }
  // The same of the priority game, which the game must be;
  // mallocgame/game/priority/priority_tables.h.
  const PriorityTables& priority_tables() const { return *priority_tables_; }
  // The same of the schedule game; mallocgame/game/schedule/schedule_tables.h.
  const ScheduleTables& schedule_tables() const { return *schedule_tables_; }

 private:
  // `known`, if not null, is a game of the same instructions, in which tick t is order[t].
  Game(std::shared_ptr<const Program> program, const Hardware& hardware, const GameOptions& options,
       const Game* known = nullptr, absl::Span<const Tick> order = {});

  std::shared_ptr<const Program> program_;
  Hardware hardware_;
  GameOptions options_;
  CostModel cost_model_;
  int64_t usable_bytes_ = 0;
  std::vector<bool> in_main_;  // one for each access
  int num_actions_ = kActions;
  std::unique_ptr<const GameTables> tables_;
  // Null but in their own games.
  std::unique_ptr<const PriorityTables> priority_tables_;
  std::unique_ptr<const ScheduleTables> schedule_tables_;
  int64_t all_main_ps_ = 0;
  int max_decisions_ = 0;
};

}  // namespace mallocgame

#endif  // MALLOCGAME_GAME_GAME_H_
