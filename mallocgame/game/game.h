// The rules of mallocGame: a single-player game whose every play ends in a valid Plan.
//
// Decisions come in time order: at each tick, each access to a buffer that may move, reads before
// writes. What lies before the current tick is final. docs/rules.md states the rules with pictures;
// this header what a caller needs.
//
//   Drop       served from main memory
//   Copy       read: prefetched into the latest window of the copy channel that hides it (or
//              stalls); write: made in fast memory and written back; loop entry: prefetched before
//              the loop and kept over it
//   NoCopy     read: the previous access's residence is kept until now, or, at the first read of an
//              entry parameter, the buffer is preloaded; write: in fast memory only, until the
//              buffer's last access
//   CopyEarly  as Copy at a read, in the earliest window; legal where that is another window than
//              Copy's
//
// Drop is always legal unless another placement is required by the caller, so every game ends. The
// undiscounted return is 1 - latency / all_main latency, exactly, counted in integer picoseconds by
// saved_ps.
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
inline constexpr int kActions = 4;       // actions="full"
inline constexpr int kPaperActions = 3;  // actions="paper": without CopyEarly
const char* ActionName(Action action);   // "Drop" ...

// Version of the rules: a logged game is replayed under the version it names. Changes with every
// change of a rule.
inline constexpr int kRulesVersion = 1;

// How the environment picks a residence's offset among the free ranges that hold it; ties go to the
// lower offset.
enum class OffsetPolicy : uint8_t { kBestFit, kFirstFit };
const char* OffsetPolicyName(OffsetPolicy policy);  // "best-fit", "first-fit"

struct GameOptions {
  // smaller buffers stay in main memory and are not asked; >= 0
  int64_t min_buffer_bytes = 16 << 10;
  bool paper_actions = false;  // leave CopyEarly out
  OffsetPolicy offset_policy = OffsetPolicy::kBestFit;
  // share of the capacity that no residence may take, in [0, 1)
  double keep_free = 0.0;
  std::vector<AccessId> forbidden = {};  // accesses that must be served from main memory
  // accesses that must be served from fast memory wherever that is legal
  std::vector<AccessId> required = {};
  friend bool operator==(const GameOptions&, const GameOptions&) = default;
};

class State;
struct GameTables;  // what the rules look up, precomputed (mallocgame/game/tables.h)

// Program, hardware and options: immutable, shared by all its states and by threads.
class Game : public std::enable_shared_from_this<Game> {
 public:
  // InvalidArgument for options out of range, an access that isn't one, or hardware
  // ValidateHardware refuses.
  static absl::StatusOr<std::shared_ptr<const Game>> Create(std::shared_ptr<const Program> program,
                                                            const Hardware& hardware,
                                                            const GameOptions& options = {});
  ~Game();

  State InitialState() const;

  const Program& program() const { return *program_; }
  std::shared_ptr<const Program> shared_program() const { return program_; }
  const Hardware& hardware() const { return hardware_; }
  const GameOptions& options() const { return options_; }
  const CostModel& cost_model() const { return cost_model_; }
  int num_actions() const { return options_.paper_actions ? kPaperActions : kActions; }
  // Bytes that residences may use: the capacity of fast memory less the share keep_free, rounded
  // down to the alignment. Residences lie in [0, usable_bytes()).
  int64_t usable_bytes() const { return usable_bytes_; }
  // The latency of the plan with everything in main memory.
  int64_t all_main_ps() const { return all_main_ps_; }
  // Accesses that a game can ask about at most: an upper limit of its length.
  int max_decisions() const { return max_decisions_; }

 private:
  friend class State;
  friend class Observer;
  friend class GraphObserver;

  Game(std::shared_ptr<const Program> program, const Hardware& hardware,
       const GameOptions& options);

  std::shared_ptr<const Program> program_;
  Hardware hardware_;
  GameOptions options_;
  CostModel cost_model_;
  int64_t usable_bytes_ = 0;
  std::unique_ptr<const GameTables> tables_;
  int64_t all_main_ps_ = 0;
  int max_decisions_ = 0;
};

}  // namespace mallocgame

#endif  // MALLOCGAME_GAME_GAME_H_
