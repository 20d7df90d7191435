// One position of the priority game: an arrangement so far. docs/priority-game.md states the
// rules.
//
// What is open are *runs*: accesses of one buffer that follow each other, not decided yet. At first
// there is one run for each buffer, with all of its accesses. The game shows the most important
// open runs, PlacingOptions::candidates of them: by default those that save most for each byte and
// picosecond that they take. An action takes one of them and says how it is served:
//
//   Skip     The run's accesses are served from main memory.
//   Late     One residence serves the whole run. It is prefetched, if it has to be, at the latest
//            where the instructions hide the copy, or its bytes are free only later, behind that.
//   Early    The same, with the bytes reserved for as long as its copies can take: from the first
//            tick that the value can be prefetched to the last that it must be evicted.
//   Preload  The same for an entry parameter, from before the program starts.
//   Split    The run becomes two, cut where a residence would be held longest without an access; a
//            loop that is carried becomes what is inside. Both are open, each with its own
//            importance. Accesses that a transfer between chips holds together stay together.
//
// A residence lies where there is room for its whole time and where it takes the least from
// prefetches, its own and others': each would like to have its bytes from the tick on from which it
// is hidden, even if they are reserved only later.
//
// When no run is open the game is over, and the copies get times: the one that is needed first in
// front, each part as early as the channel and the bytes at its place allow (copy_times.h).
// So every game ends in a valid plan. Before, latency_ps() counts as stalls what the channel can't
// serve in time even if the bytes at each place were free, and the last decision's saving makes up
// the difference; or with PlacingOptions::exact_stalls those of the copies timed so far.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "mallocgame/game/mode.h"
#include "mallocgame/game/position.h"
#include "mallocgame/game/priority/arrangement.h"
#include "mallocgame/game/priority/channel_slack.h"
#include "mallocgame/game/priority/copy_times.h"
#include "mallocgame/game/priority/priority_game.h"
#include "mallocgame/game/priority/priority_tables.h"
#include "mallocgame/game/priority/profile.h"
#include "mallocgame/plan/plan.h"

namespace mallocgame {

// An action of the priority game is a number: the candidate it takes, the most important first,
// times kActionModes, plus how it is served.
inline int PriorityAction(int candidate, Mode mode) {
  return candidate * kActionModes + static_cast<int>(mode);
}

class PriorityState final : public Position {
 public:
  explicit PriorityState(const std::shared_ptr<const PriorityGame>& game);
  // The same with the runs in another order: `tables`, made of the game's own, must outlive the
  // state and its copies. Such a game has no log: its actions mean something in its order only.
  PriorityState(std::shared_ptr<const PriorityGame> game, const PriorityTables& tables);

  std::unique_ptr<Position> Clone() const override {
    return std::make_unique<PriorityState>(*this);
  }
  void CopyFrom(const Position& other) override {
    *this = static_cast<const PriorityState&>(other);
  }
  const PriorityGame& game() const override { return static_cast<const PriorityGame&>(*game_); }
  const std::shared_ptr<const Game>& shared_game() const override { return game_; }
  bool IsTerminal() const override { return candidates_[0] < 0; }
  ActionSet legal_actions() const override;
  absl::StatusOr<int64_t> Apply(int action) override;
  int64_t SavingOf(int action) const override;
  void Undo() override;
  absl::Span<const uint8_t> actions() const override { return actions_; }
  int64_t latency_ps() const override { return arrangement_.compute_ps() + stall_ps(); }
  Plan ToPlan() const override;
  std::string ToString() const override;
  std::vector<AccessRun> AskedAbout() const override;
  void Decide(const Intent& intent) override;
  Mode DecidedMode(int i) const override { return decided_[i].mode; }
  int32_t DecidedSegment(int i) const override { return decided_[i].run; }

  // Apply, for a caller that tries actions in turn: false if the action is illegal. Takes less time
  // than to ask for the legal actions before.
  bool TryApply(int action);
  // The same for an action that places a residence, and a caller who knows that it would lie where
  // `placed` does: it was placed so by the same mode of the run, with the same other residences
  // at its ticks.
  bool TryApply(int action, const PlannedResidence& placed);

  // The candidates now, the most important first, as indices into PriorityTables::runs; -1: fewer
  // are open.
  absl::Span<const int32_t> candidates() const {
    return absl::MakeConstSpan(candidates_).subspan(0, tables_->options.candidates);
  }
  // What the decisions so far were about.
  struct Decided {
    int32_t run;
    Mode mode;
    int64_t latency_ps, stall_ps;  // before the decision; -1: with exact stalls, nobody had asked
  };
  absl::Span<const Decided> decided() const { return decided_; }
  bool IsOpen(int32_t run) const { return open_[run / 64] >> run % 64 & 1; }
  absl::Span<const uint64_t> open() const { return open_; }  // a bit for each run
  // The open run that is the next in importance behind `run`; -1: there is none.
  int32_t NextOpen(int32_t run) const;
  int num_open() const;
  // What Late, Early or Preload of a candidate, which must be legal, would place: the residence,
  // and the tick from which its bytes are reserved.
  struct Placing {
    const PlannedResidence* planned;
    Tick begin;
  };
  Placing PlacingOf(size_t candidate, Mode mode) const;
  // What the open runs would like to have (Run::space, Run::copies).
  const Profile& wanted_space() const { return wanted_space_; }
  const Profile& wanted_copies() const { return wanted_copies_; }
  const PriorityTables& tables() const { return *tables_; }
  const Arrangement& arrangement() const { return arrangement_; }
  int64_t stall_ps() const {
    if (stall_ < 0) stall_ = ScheduledStall();
    return stall_;
  }
  // The time of the copies that must be done behind the instruction at `tick`, in one pass.
  int64_t due_ps(Tick tick) const { return due_ps_[tick]; }
  // The time that the instructions [begin, end) of one segment leave to copies, less what is due
  // behind them, in one pass.
  int64_t FreePs(Tick begin, Tick end) const;
  // The same, of which there must be some, and the least of it until a tick among them.
  ChannelSlack::Stretch FreeOver(Tick begin, Tick end) const;
  // Whether Early is another mode than Late.
  static bool HasEarly(const Run& run) {
    return run.placeable && (run.planned.earliest_fetch < run.planned.latest_fetch ||
                             run.planned.end < run.roomy.end);
  }
  // The tick at which the prefetch of a residence is due. One for the first tick of a segment has
  // no time: it counts there.
  static Tick DueAt(const PlannedResidence& planned) {
    return planned.need - (planned.earliest_fetch < planned.need ? 1 : 0);
  }
  // The tick behind which the eviction of a placed residence is due; -1: there is none, or it can
  // wait, because it has time beyond its segment.
  Tick EvictionDueAt(const PlannedResidence& placed) const;

 private:
  // The legality of a candidate's modes, worked out when it is asked for. It stays the same
  // until something is placed at the ticks that it would take.
  struct Considered {
    int32_t run = -1;
    uint8_t legal = 0;
    Tick late_begin = 0;  // of the residence that Late places
  };

  Considered Consider(int32_t index) const;
  const Considered& ConsideredOf(size_t candidate) const;
  bool Serve(int32_t index, Mode mode);
  void Decide(int action, int64_t compute_ps);
  void SetOpen(int32_t run, bool open);
  void AddCandidate(int32_t run);
  void RemoveCandidate(int32_t run);
  void Forget(const PlannedResidence& placed);
  void Count(const PlannedResidence& placed, int sign);
  int64_t ScheduledStall() const;
  int64_t KnownStallWith(int action) const;
  int64_t LatencyWith(int action, const Placing& placing) const;
  void UpdateStalls(const PlannedResidence& placed);

  std::shared_ptr<const Game> game_;
  const PriorityTables* tables_;
  mutable Arrangement arrangement_;  // whoever asks what one more residence would cost places it
  std::vector<uint64_t> open_;       // a bit for each run
  // The first num_candidates_ are the most important open runs, those behind are -1.
  std::array<int32_t, kMaxCandidates> candidates_;
  size_t num_candidates_ = 0;
  // For each tick: the time of the copies that must be done behind it, those of its segment only;
  // for each segment the least stall that follows in one run of the program. Their sum is stall_,
  // unless the copies have their times.
  std::vector<int64_t> due_ps_;
  std::vector<int64_t> stall_of_;
  ChannelSlack slack_;
  Profile wanted_space_, wanted_copies_;
  std::vector<Decided> decided_;
  std::vector<uint8_t> actions_;
  // -1: it is that of the copies at their times, which nobody has asked for yet.
  mutable int64_t stall_ = 0;
  // With exact stalls each position has copy times of its own, which decisions change one by one.
  // Those that are taken back were only tried. A copy of the position begins without any.
  class OwnCopyTimes {
   public:
    OwnCopyTimes() = default;
    OwnCopyTimes(const OwnCopyTimes&) {}
    // NOLINTNEXTLINE(bugprone-unhandled-self-assignment): nothing is copied.
    OwnCopyTimes& operator=(const OwnCopyTimes&) { return *this; }
    int64_t StallOf(const Arrangement& arrangement);

   private:
    std::unique_ptr<CopyTimes> copy_times_;
    // Of the arrangement that was asked about last: how many residences it had, and the last one's
    // stamp. What has been placed since is on top of that.
    size_t count_ = 0;
    uint64_t last_ = 0;
  };
  // Else copies are timed at the ends of games, one after the other.
  static CopyTimes& TimesOfThread();
  mutable OwnCopyTimes own_copy_times_;
  // With exact stalls: that of actions which have been asked about at this position.
  mutable std::vector<std::pair<int, int64_t>> stall_with_;
  mutable std::array<Considered, kMaxCandidates> considered_;
  mutable bool any_considered_ = false;  // else there is nothing in considered_
};

}  // namespace mallocgame
