// One position of a game: a value type, copying it is cloning it, Undo takes back the last
// decision. Not shared between threads; copies are independent.
#ifndef MALLOCGAME_GAME_STATE_H_
#define MALLOCGAME_GAME_STATE_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "mallocgame/base/ids.h"
#include "mallocgame/game/copy_windows.h"
#include "mallocgame/game/fast_memory.h"
#include "mallocgame/game/game.h"
#include "mallocgame/game/undo_vector.h"
#include "mallocgame/plan/plan.h"

namespace mallocgame {

class PlanRecorder;  // mallocgame/game/plan_recorder.h
struct Decision;
struct TimeAndIdle;

class State {
 public:
  explicit State(std::shared_ptr<const Game> game);

  const Game& game() const { return *game_; }
  const std::shared_ptr<const Game>& shared_game() const { return game_; }
  bool IsTerminal() const { return cursor_ < 0; }

  // Bit a: the action with value a is legal. 0 at the end, else never 0.
  uint8_t legal_mask() const;
  bool IsLegal(Action action) const { return legal_mask() >> static_cast<int>(action) & 1; }
  std::vector<Action> LegalActions() const;

  // The access that is asked now. The state must not be terminal.
  AccessId current_access() const;
  Tick tick() const { return windows_.now(); }

  // Carries out a legal action and returns the picoseconds it saves (negative: costs): the latency
  // Simulate gives with everything undecided in main memory, before less after. InvalidArgument for
  // an illegal action, FailedPrecondition at the end; the state is then unchanged.
  absl::StatusOr<int64_t> Apply(Action action);
  // Takes back the last decision. There must be one.
  void Undo();

  // The actions decided so far, as values of Action.
  absl::Span<const uint8_t> actions() const { return actions_; }
  int num_decisions() const { return static_cast<int>(actions_.size()); }

  // Latency with everything undecided in main memory; at the end, what Simulate says of ToPlan().
  int64_t latency_ps() const { return latency_; }
  int64_t stall_ps() const { return stall_; }
  // The part of latency_ps() that no later decision takes away: the stalls, and the instructions
  // before tick() but for plain copies. Looks at every tick before.
  int64_t settled_ps() const;
  int preloads() const { return preloads_; }
  int64_t resident_bytes() const { return memory_.TakenBytes(tick()); }

  // The plan of the decisions so far, everything undecided in main memory. Only a terminal state's
  // plan is sure to be valid. Costs as much as playing the game again.
  Plan ToPlan() const;
  // For people: tick, instruction, access, memory, legal actions.
  std::string ToString() const;

 private:
  friend class Observer;
  friend class GraphObserver;

  // What a buffer's past means for its next decision.
  struct BufferState {
    int64_t offset = 0;     // of the residence that served the last access
    Tick resident_end = 0;  // 0: the last access was served from main memory, nothing to keep
    Tick scope_end = 0;     // the residence may not reach further
    Tick used_until = 0;    // the last access it served is before this tick
    Tick forced_until = 0;  // accesses before this tick are served by the residence, unasked
    Tick main_since = 0;    // the value is in main memory from this tick on; kNever: it isn't
    bool has_value = false;
    Tick write_back_begin = 0;       // of the write-back on its way; 0: there is none
    int64_t write_back_end_ps = -1;  // on the service axis; -1: not yet begun
  };
  struct TickRange {
    Tick begin = 0, end = 0;
  };
  // What an action would do now.
  struct Option {
    bool legal = false;
    bool transfer = false;  // a prefetch in `window`
    bool extend = false;    // keeps the previous residence
    bool preload = false;
    CopyWindow window;
    int64_t offset = 0;
    Tick begin = 0, end = 0;  // of the residence, or up to where it is kept
    Tick scope_end = 0;
    Tick write_back_end = 0;  // 0: none
  };
  struct Frame {  // what Undo restores
    CopyWindows::Moment windows;
    uint32_t log;
    int32_t cursor;
    int32_t preloads;
    int64_t latency, stall;
    TickRange prefetch, write_back;  // counted in under_way_ by this decision
  };

  static std::vector<BufferState> FirstStates(const GameTables& tables);
  const Decision& current() const;

  // Legality: fills options_ for the current decision.
  void Consider() const;
  Option ConsiderCopy(const Decision& d) const;
  Option ConsiderNoCopy(const Decision& d) const;
  Option ConsiderCopyEarly(const Decision& d, const Option& copy) const;
  void PlaceTransfer(const Decision& d, Tick end, Option* option) const;
  void PlaceNew(const Decision& d, Tick begin, Tick end, Option* option) const;
  void Extend(const Decision& d, Tick end, Option* option) const;
  bool HasRoom(bool write_back, Tick begin, Tick end) const;
  Tick MainSince(const Decision& d) const;
  Tick CertainEnd(Tick begin, int64_t length_ps) const;
  const Decision* ReplacedWrite(const Decision& d) const;

  // Effects.
  void ServeFromMain(const Decision& d);
  void ServeFromFast(const Decision& d, const Option& option);
  bool WaitForWriteBack(const Decision& d, bool keeps_residence);
  void BookTransfer(const Decision& d, const Option& option, const Decision* replaced);
  void QueueWriteBack(const Decision& d, TickRange window);
  void SetPlacement(const Decision& d, uint64_t placement);
  void Stall(int64_t stall_ps);
  // The counts in under_way_ of the prefetches, or of the write-backs.
  size_t UnderWayAt(bool write_back, Tick tick) const;
  void CountUnderWay(bool write_back, TickRange window, int change);
  void GoToDecision(int32_t next);
  void AdvanceTick();
  TimeAndIdle PriceAt(Tick tick, uint64_t placement) const;

  Option& OptionOf(Action action) const { return options_[static_cast<size_t>(action)]; }

  std::shared_ptr<const Game> game_;
  const GameTables* tables_;
  UndoLog log_;  // of all that follow
  CopyWindows windows_;
  FastMemory memory_;
  // one a tick: which of its decisions are served from fast memory
  UndoVector<uint64_t> placements_;
  UndoVector<BufferState> buffers_;
  // buffers whose write-back hasn't yet begun, the next to begin last
  UndoVector<int32_t> upcoming_;
  // windows that cover each tick: of prefetches, behind them of write-backs
  std::vector<uint8_t> under_way_;
  std::vector<Frame> frames_;
  std::vector<uint8_t> actions_;
  int32_t cursor_ = -1;  // index of the current decision; -1 at the end
  int32_t preloads_ = 0;
  int64_t latency_ = 0, stall_ = 0;
  PlanRecorder* recorder_ = nullptr;

  mutable bool considered_ = false;
  mutable uint8_t mask_ = 0;
  mutable std::array<Option, kActions> options_;  // by Action
};

}  // namespace mallocgame

#endif  // MALLOCGAME_GAME_STATE_H_
