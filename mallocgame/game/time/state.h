// One position of the time game (time_game.h). A State is a value: to clone it is to copy it, and
// copies are independent. Undo takes back the last decision. A State is not shared between threads.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "mallocgame/base/ids.h"
#include "mallocgame/game/position.h"
#include "mallocgame/game/time/copy_windows.h"
#include "mallocgame/game/time/fast_memory.h"
#include "mallocgame/game/time/state_view.h"
#include "mallocgame/game/time/time_game.h"
#include "mallocgame/game/undo_vector.h"
#include "mallocgame/plan/plan.h"

namespace mallocgame {

class PlanRecorder;  // mallocgame/game/time/plan_recorder.h
struct Decision;
struct TimeAndIdle;

class State final : public Position {
 public:
  // `game` is a time game.
  explicit State(std::shared_ptr<const Game> game) : State(std::move(game), nullptr) {}
  explicit State(const Game& game) : State(game.shared_from_this()) {}

  std::unique_ptr<Position> Clone() const override { return std::make_unique<State>(*this); }
  void CopyFrom(const Position& other) override { *this = static_cast<const State&>(other); }

  const Game& game() const override { return *game_; }
  const std::shared_ptr<const Game>& shared_game() const override { return game_; }
  bool IsTerminal() const override { return cursor_ < 0; }

  ActionSet legal_actions() const override { return ActionSet(LegalBits()); }
  bool IsLegal(Action action) const { return LegalBits() >> static_cast<int>(action) & 1; }
  // Those that cost no penalty: the legal ones, unless illegal_penalty makes all legal.
  ActionSet feasible_actions() const { return ActionSet(FeasibleBits()); }

  AccessId current_access() const override;
  // The access that decision `i`, in [0, num_decisions()), was about.
  AccessId access_of(int i) const;
  Tick tick() const { return windows_.now(); }

  // Carries out a legal action and returns the picoseconds that it saves, negative if it costs
  // some: latency_ps() before less latency_ps() after. InvalidArgument for an illegal action,
  // FailedPrecondition at the end; the state is then unchanged.
  absl::StatusOr<int64_t> Apply(Action action);
  absl::StatusOr<int64_t> Apply(int action) override;
  int64_t SavingOf(int action) const override;
  // Takes back the last decision. There must be one.
  void Undo() override;

  // The actions decided so far, as values of Action.
  absl::Span<const uint8_t> actions() const override { return actions_; }

  // The latency with everything undecided in main memory. At the end it is what Simulate says of
  // ToPlan().
  int64_t latency_ps() const override { return latency_; }
  int64_t penalty_ps() const override {
    return static_cast<int64_t>(trail_.penalised.size()) * penalty_;
  }
  int64_t stall_ps() const { return stall_; }
  // The part of latency_ps() that no later decision takes away: the stalls, and the time of the
  // instructions before tick(), except plain copies. Takes time linear in tick().
  int64_t settled_ps() const;
  int preloads() const { return preloads_; }
  int64_t resident_bytes() const { return memory_.TakenBytes(tick()); }

  // The plan of the decisions so far, with everything undecided in main memory. Only a terminal
  // state's plan is sure to be valid. Takes as long as playing the game again.
  Plan ToPlan() const override;
  // A few lines for people: tick, instruction, access, memory and legal actions.
  std::string ToString() const override;

  std::vector<AccessRun> AskedAbout() const override;
  void Decide(const Intent& intent) override;
  Mode DecidedMode(int i) const override;
  int32_t DecidedSegment(int i) const override { return access_of(i).value; }

  // For the observers: the parts of the state that they read.
  StateView view() const {
    const absl::Span<const uint8_t> under_way = under_way_;
    const size_t ticks = under_way.size() / 2;
    return {memory_,
            windows_,
            buffers_.items(),
            placements_.items(),
            under_way.subspan(0, ticks),
            under_way.subspan(ticks),
            effects_,
            cursor_};
  }

 private:
  State(std::shared_ptr<const Game> game, PlanRecorder* recorder);

  struct TickRange {
    Tick begin = 0, end = 0;
  };
  // What Undo restores.
  struct Frame {
    CopyWindows::Moment windows;
    uint32_t log;
    Action action;
    int32_t cursor;
    int32_t preloads;
    int64_t latency, stall;
    TickRange prefetch, eviction;  // the windows that the decision counted in under_way_
  };

  // What the options drop_backup and illegal_penalty need, and empty without them. Numbers are
  // those of decisions made.
  struct Trail {
    struct Decided {
      AccessId access;
      Action action;  // the one that was carried out
    };
    std::vector<Decided> decided;  // all that were made, also those that the game went back on
    std::vector<int32_t> penalised;
    std::vector<int32_t> backups;  // behind which the game went back
    std::vector<bool> dropped;     // by index of GameTables::decisions: where it went back to
  };

  static std::vector<BufferState> FirstStates(const GameTables& tables);
  const Decision& current() const;

  // Legality: fills mask_ and effects_ for the current decision.
  void Consider() const;
  ActionEffect ConsiderCopy(const Decision& d) const;
  ActionEffect ConsiderNoCopy(const Decision& d) const;
  ActionEffect ConsiderCopyEarly(const Decision& d, const ActionEffect& copy) const;
  void PlaceTransfer(const Decision& d, Tick end, ActionEffect* effect) const;
  void PlaceNew(const Decision& d, Tick begin, Tick end, ActionEffect* effect) const;
  void Extend(const Decision& d, Tick end, ActionEffect* effect) const;
  Tick KeptUntil(const Decision& d) const;
  bool HasRoom(bool eviction, Tick begin, Tick end) const;
  Tick MainSince(const Decision& d) const;
  Tick CertainEnd(Tick begin, int64_t length_ps) const;
  const Decision* ReplacedWrite(const Decision& d) const;

  // Effects.
  void ServeFromMain(const Decision& d);
  void ServeFromFast(const Decision& d, const ActionEffect& effect);
  int64_t EvictionWait(const Decision& d) const;
  bool WaitForEviction(const Decision& d, bool keeps_residence);
  void BookTransfer(const Decision& d, const CopyWindow& window, const Decision* replaced);
  void QueueEviction(const Decision& d, TickRange window);
  void SetPlacement(const Decision& d, uint64_t placement);
  void Stall(int64_t stall_ps);
  // Where under_way_ counts the prefetches, or the evictions, at `tick`.
  size_t UnderWayAt(bool eviction, Tick tick) const;
  void CountUnderWay(bool eviction, TickRange window, int change);
  void GoToDecision(int32_t next);
  void AdvanceTick();
  void FetchPins();
  void TakeBack();
  void BackUp();
  TimeAndIdle PriceAt(Tick tick, uint64_t placement) const;

  ActionEffect& EffectOf(Action action) const { return effects_[static_cast<size_t>(action)]; }

  std::shared_ptr<const Game> game_;
  const GameTables* tables_;
  UndoLog log_;  // the changes of windows_, memory_, placements_, buffers_ and upcoming_
  CopyWindows windows_;
  FastMemory memory_;
  // For each tick: which of its decisions are served from fast memory, as in StateView.
  UndoVector<uint64_t> placements_;
  UndoVector<BufferState> buffers_;
  // The buffers whose eviction has not begun yet, the next to begin last.
  UndoVector<int32_t> upcoming_;
  // For each tick, how many windows of prefetches cover it; after them the same of evictions.
  std::vector<uint8_t> under_way_;
  std::vector<Frame> frames_;  // one for each decision made that stands
  std::vector<uint8_t> actions_;
  int32_t cursor_ = -1;  // index of the current decision; -1 at the end
  int32_t preloads_ = 0;
  int64_t latency_ = 0, stall_ = 0;
  PlanRecorder* recorder_ = nullptr;  // null but in ToPlan
  bool drop_backup_ = false;
  int64_t penalty_ = 0;  // of one illegal action
  Trail trail_;

  // Bit a is set if the action with value a is legal.
  uint8_t LegalBits() const;
  uint8_t FeasibleBits() const;
  bool keeps_trail() const { return drop_backup_ || penalty_ > 0; }

  // The legality of the current decision's actions, worked out when it is asked for.
  mutable bool considered_ = false;
  mutable uint8_t mask_ = 0;
  mutable std::array<ActionEffect, kActions> effects_;  // by Action
};

}  // namespace mallocgame
