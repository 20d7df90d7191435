#include "agents/muzero/varying.h"

#include <algorithm>
#include <utility>

#include "mallocgame/base/error.h"
#include "mallocgame/game/priority/priority_state.h"
#include "mallocgame/game/schedule/schedule_state.h"
#include "mallocgame/search/game_search.h"
#include "mallocgame/tree/rollout_policy.h"
#include "mallocgame/tree/schedule_policy.h"

namespace mallocgame::muzero {
namespace {

// Of the priority game. Of the runs that it could take at a decision, a proposal takes another one
// or the same.
class VaryingPlacement final : public Varying {
 public:
  VaryingPlacement(const Task& task, const PriorityGame& game, const Start& start)
      : task_(task), search_(game, IntentFor(game, start)) {
    PriorityState position(game.shared());
    for (const uint8_t action : start.actions) {
      const auto candidates = position.candidates();
      shown_.emplace_back(candidates.begin(), candidates.end());
      MG_CHECK(position.Apply(action).ok());
      taken_.push_back(position.decided().back().run);
    }
  }

  std::optional<int32_t> Change(const Changes& changes, Rng& rng) override {
    const Proposal& first = changes.proposals[0];
    const std::optional<int32_t> at = Leaves(first);
    if (!at) return std::nullopt;
    // Later changes must not be missed, if accepted changes have moved their runs ahead.
    int32_t from = *at;
    for (const Proposal& change : changes.proposals) {
      if (const auto other = Leaves(change); other) from = std::min(from, *other);
    }
    search_.GoTo(from);
    for (const Proposal& change : changes.proposals) Want(change);
    if (changes.whole_buffer) {
      const int32_t segment = SegmentOf(first);
      for (int32_t i = *at + 1; i < search_.decisions(); ++i) {
        const int32_t later = search_.segment(i);
        if (later == segment || BufferOf(later) != BufferOf(segment)) continue;
        if (rng.Below(4) != 0) search_.Want(later, ModeOf(first));
      }
    }
    return from;
  }

  std::optional<int32_t> Move(Rng& rng) override { return search_.Move(rng); }

  bool Try(int64_t most) override { return search_.Try(most); }
  void Accept() override { search_.Accept(); }
  void Reject() override { search_.Reject(); }
  int64_t latency_ps() const override { return search_.latency_ps(); }
  const Position& end() const override { return search_.position(); }

 private:
  static Intent IntentFor(const Game& game, const Start& start) {
    mcts::RolloutPolicy policy(game, game.OpenIntent());
    policy.Adopt(start.actions);
    return policy.intent();
  }

  static Mode ModeOf(const Proposal& proposal) {
    return static_cast<Mode>(proposal.action % kActionModes);
  }
  int32_t SegmentOf(const Proposal& proposal) const {
    return shown_[proposal.decision][proposal.action / kActionModes];
  }
  BufferId BufferOf(int32_t segment) const {
    return task_.game().program().access(search_.intent()[segment].first).buffer;
  }

  // The decision of the accepted game at which the proposal would be taken; nothing if it is none.
  std::optional<int32_t> Leaves(const Proposal& proposal) const {
    const int32_t segment = SegmentOf(proposal), taken = taken_[proposal.decision];
    const int32_t at = search_.decision_of(segment), before = search_.decision_of(taken);
    if (at < 0) return std::nullopt;
    if (segment != taken && before >= 0 && before < at) return before;
    if (search_.intent()[segment].mode == ModeOf(proposal)) return std::nullopt;
    return at;
  }

  // A segment that is to be taken before another one gets a rank a little lower than that one's.
  void Want(const Proposal& proposal) {
    constexpr double kBefore = 0.5e-3;
    const int32_t segment = SegmentOf(proposal), taken = taken_[proposal.decision];
    double rank = search_.intent()[segment].rank;
    if (segment != taken) rank = std::min(rank, search_.intent()[taken].rank - kBefore);
    search_.Want(segment, ModeOf(proposal), rank);
  }

  const Task& task_;
  GameSearch search_;
  // For each decision of the game to be varied: the candidates that it saw, and the run that it
  // took.
  std::vector<std::vector<int32_t>> shown_;
  std::vector<int32_t> taken_;
};

// Of the schedule game. A proposal has another unit come before the one that came next, or a run
// served otherwise and before the one that was. Each trial is a whole game.
class VaryingSchedule final : public Varying {
 public:
  VaryingSchedule(const Task& task, const ScheduleGame& game, const Start& start)
      : task_(task), accepted_(game), trial_(accepted_), end_(game.NewInitialPosition()) {
    for (const uint8_t action : start.actions) {
      const auto& state = static_cast<const ScheduleState&>(*end_);
      Asked& asked = asked_.emplace_back();
      if (state.placement() == nullptr) {
        asked.units.assign(state.shown().begin(), state.shown().end());
      } else {
        const OrderedGame& ordered = state.ordered();
        for (const int32_t run : state.placement()->candidates()) {
          if (run < 0) continue;
          asked.runs.push_back(ordered.game->OwnSegment(run, Mode::kOpen, ordered.own_access));
        }
      }
      asked.taken = action;
      MG_CHECK(end_->Apply(action).ok());
    }
    accepted_.Adopt(start.actions);
    latency_ps_ = end_->latency_ps();
  }

  std::optional<int32_t> Change(const Changes& changes, Rng& /*rng*/) override {
    trial_ = accepted_;
    bool changed = false;
    for (const Proposal& change : changes.proposals) changed |= Want(change);
    return changed ? std::optional<int32_t>(0) : std::nullopt;
  }

  std::optional<int32_t> Move(Rng& rng) override {
    trial_ = accepted_;
    trial_.Change(rng);
    return 0;
  }

  bool Try(int64_t most) override {
    end_ = task_.game().NewInitialPosition();
    trial_.PlayOn(*end_);
    return end_->latency_ps() <= most;
  }
  void Accept() override {
    accepted_ = trial_;
    accepted_.Adopt(end_->actions());
    latency_ps_ = end_->latency_ps();
  }
  void Reject() override {}
  int64_t latency_ps() const override { return latency_ps_; }
  const Position& end() const override { return *end_; }

 private:
  // What a decision of the game to be varied was about.
  struct Asked {
    std::vector<int32_t> units;
    Intent runs;    // OwnSegments
    int taken = 0;  // the action
  };

  // False if the proposal only turns a page, or leaves one.
  bool Want(const Proposal& proposal) {
    const Asked& asked = asked_[proposal.decision];
    if (asked.runs.empty()) {
      if (proposal.action == kNextUnits || asked.taken == kNextUnits) return false;
      trial_.PutBefore(asked.units[proposal.action], asked.units[asked.taken]);
      return true;
    }
    const int wanted = proposal.action - kOrderingActions, taken = asked.taken - kOrderingActions;
    Segment one = asked.runs[wanted / kActionModes];
    one.mode = static_cast<Mode>(wanted % kActionModes);
    trial_.Serve(one, asked.runs[taken / kActionModes]);
    return true;
  }

  const Task& task_;
  mcts::SchedulePolicy accepted_, trial_;
  std::unique_ptr<Position> end_;
  std::vector<Asked> asked_;  // by decision
  int64_t latency_ps_ = 0;    // of the accepted game
};

}  // namespace

std::unique_ptr<Varying> VaryPlacement(const Task& task, const Start& start) {
  return std::make_unique<VaryingPlacement>(task, static_cast<const PriorityGame&>(task.game()),
                                            start);
}

std::unique_ptr<Varying> VarySchedule(const Task& task, const Start& start) {
  return std::make_unique<VaryingSchedule>(task, static_cast<const ScheduleGame&>(task.game()),
                                           start);
}

}  // namespace mallocgame::muzero
