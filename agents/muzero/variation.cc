#include "agents/muzero/variation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "mallocgame/base/error.h"
#include "mallocgame/game/priority/priority_state.h"
#include "mallocgame/game/schedule/schedule_state.h"
#include "mallocgame/search/anneal.h"
#include "mallocgame/search/game_search.h"
#include "mallocgame/search/neighbourhood.h"
#include "mallocgame/tree/rollout_policy.h"
#include "mallocgame/tree/schedule_policy.h"

namespace mallocgame::muzero {
namespace {

constexpr float kUniformShare = 0.25F;  // share of even proposals, because the policy may be wrong
constexpr double kColdest = 0.01, kHottest = 1;  // range of the first temperature, in units
constexpr double kFall = 0.02;                   // the last temperature divided by the first
constexpr int64_t kTriesBetweenCoolings = 64;
constexpr double kLessonUnits = 0.2;  // a change that costs so much has 1/e of the share of none
constexpr double kMostLesson = 20;    // times the share of what was played

// Another action at a decision of the game that is varied.
struct Proposal {
  int32_t decision;
  int32_t action;
  float until = 0;  // sum of the weights of the proposals up to this one
};

// What a variation changes: several proposals, by their decisions, and whether the first of them
// also counts for later decisions about the same buffer.
struct Changes {
  std::vector<Proposal> proposals;
  bool whole_buffer = false;
};

// A whole game that is changed by trials, each accepted or rejected. It begins as the game to be
// varied; proposals go on naming that game's decisions. Try, Accept, Reject and latency_ps are as
// of a Neighbourhood (search/neighbourhood.h).
class Varying {
 public:
  virtual ~Varying() = default;

  // Sets up a trial, and returns the decision at which it leaves the accepted game. Nothing if the
  // first of the changes is none in that game.
  virtual std::optional<int32_t> Change(const Changes& changes, Rng& rng) = 0;
  // The same for a move of the kind that annealing tries.
  virtual std::optional<int32_t> Move(Rng& rng) = 0;
  virtual bool Try(int64_t most) = 0;
  virtual void Accept() = 0;
  virtual void Reject() = 0;
  virtual int64_t latency_ps() const = 0;
  // Where the trial ended. An accepted one has played its game to the end.
  virtual const Position& end() const = 0;
};

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

// Null for a time game, which is not varied.
std::unique_ptr<Varying> MakeVarying(const Task& task, const Start& start) {
  const Game& game = task.game();
  const absl::string_view name = game.options().game();
  if (name == "priority")
    return std::make_unique<VaryingPlacement>(task, static_cast<const PriorityGame&>(game), start);
  if (name == "schedule")
    return std::make_unique<VaryingSchedule>(task, static_cast<const ScheduleGame&>(game), start);
  return nullptr;
}

// The other actions at each decision of `game`, weighted by how much the policy likes them; all
// alike without a network.
absl::StatusOr<std::vector<Proposal>> Propose(const Task& task, const Start& game,
                                              Network* network) {
  const size_t size = task.observation_size(), actions = task.game().num_actions();
  std::vector<float> observations;
  std::vector<std::pair<int32_t, ActionSet>> asked;  // decisions, and what is legal there
  const std::unique_ptr<Position> position = task.game().NewInitialPosition();
  for (const uint8_t action : game.actions) {
    const ActionSet legal = position->legal_actions();
    if (legal.size() > 1) {
      asked.emplace_back(position->num_decisions(), legal);
      observations.resize(observations.size() + size);
      task.Observe(*position, observations.data() + observations.size() - size);
    }
    MG_RETURN_IF_ERROR(position->Apply(action).status());
  }
  std::vector<float> logits(asked.size() * actions), values(asked.size());
  if (network != nullptr && !asked.empty())
    MG_RETURN_IF_ERROR(
        network->Predict(observations, absl::MakeSpan(logits), absl::MakeSpan(values)));

  std::vector<Proposal> proposals;
  float sum = 0;
  for (size_t i = 0; i < asked.size(); ++i) {
    const auto& [decision, legal] = asked[i];
    const float* row = logits.data() + i * actions;
    float most = -INFINITY, total = 0;
    for (const int a : legal) most = std::max(most, row[a]);
    for (const int a : legal) total += std::exp(row[a] - most);
    const float even = kUniformShare / static_cast<float>(legal.size());
    for (const int a : legal) {
      if (a == game.actions[decision]) continue;
      sum += even + (1 - kUniformShare) * std::exp(row[a] - most) / total;
      proposals.push_back({decision, a, sum});
    }
  }
  return proposals;
}

const Proposal& Draw(const std::vector<Proposal>& proposals, Rng& rng) {
  const float at = static_cast<float>(rng.Uniform()) * proposals.back().until;
  const auto found = std::upper_bound(
      proposals.begin(), proposals.end() - 1, at,
      [](float value, const Proposal& proposal) { return value < proposal.until; });
  return *found;
}

Changes DrawChanges(const std::vector<Proposal>& proposals, Rng& rng) {
  const uint32_t kind = rng.Below(8);
  Changes changes = {{Draw(proposals, rng)}, kind == 4 || kind == 5};
  if (kind < 6) return changes;
  for (uint32_t more = 1 + rng.Below(3); more > 0; --more)
    changes.proposals.push_back(Draw(proposals, rng));
  std::sort(changes.proposals.begin(), changes.proposals.end(),
            [](const Proposal& a, const Proposal& b) { return a.decision < b.decision; });
  return changes;
}

// The neighbourhood of variations: half of the moves are those that annealing tries, and the others
// change the game as the proposals have it.
class Variations final : public Neighbourhood {
 public:
  Variations(Varying& game, const std::vector<Proposal>& proposals)
      : game_(game), proposals_(proposals) {}

  bool empty() const override { return false; }
  bool Propose(Rng& rng) override {
    changes_.reset();
    from_.reset();
    if (rng.Below(2) == 0) from_ = game_.Move(rng);
    if (!from_) {
      changes_ = DrawChanges(proposals_, rng);
      from_ = game_.Change(*changes_, rng);
    }
    before_ps_ = game_.latency_ps();
    return from_.has_value();
  }
  bool Try(int64_t most) override { return game_.Try(most); }
  void Accept() override { game_.Accept(); }
  void Reject() override { game_.Reject(); }
  int64_t latency_ps() const override { return game_.latency_ps(); }

  // Of the last move: the decision at which its trial left the accepted game, nothing if there was
  // no trial; that game's latency; and the change, if it was a single one.
  const std::optional<int32_t>& from() const { return from_; }
  int64_t before_ps() const { return before_ps_; }
  const Proposal* single_change() const {
    const bool single = changes_ && changes_->proposals.size() == 1 && !changes_->whole_buffer;
    return single ? &changes_->proposals[0] : nullptr;
  }

 private:
  Varying& game_;
  const std::vector<Proposal>& proposals_;
  std::optional<Changes> changes_;
  std::optional<int32_t> from_;
  int64_t before_ps_ = 0;
};

// What single changes of the game to be varied cost.
class Lessons {
 public:
  Lessons(const Task& task, const Start& start)
      : start_(start), actions_(task.game().num_actions()),
        costs_(start.actions.size() * actions_, kUntried) {}

  // What `proposal` cost at least, in units; less than 0 is a gain.
  void Note(const Proposal& proposal, double cost) {
    float& least = costs_[proposal.decision * actions_ + proposal.action];
    least = std::min(least, static_cast<float>(cost));
  }

  void AddTo(std::vector<Revision>& taught) const {
    for (size_t s = 0; s < start_.decisions.size(); ++s) {
      const int32_t decision = start_.decisions[s];
      std::vector<float> policy(actions_);
      float sum = 0;
      bool tried = false;
      for (size_t a = 0; a < actions_; ++a) {
        const float cost = costs_[decision * actions_ + a];
        if (cost == kUntried) continue;
        tried = true;
        policy[a] = static_cast<float>(std::min(kMostLesson, std::exp(-cost / kLessonUnits)));
        sum += policy[a];
      }
      if (!tried) continue;
      policy[start_.actions[decision]] = 1;
      sum += 1;
      for (float& p : policy) p /= sum;
      taught.push_back(
          {{start_.id, start_.first_step + static_cast<int32_t>(s)}, std::move(policy), {}});
    }
  }

 private:
  static constexpr float kUntried = INFINITY;
  const Start& start_;
  size_t actions_;
  std::vector<float> costs_;  // [decisions, actions]
};

}  // namespace

absl::Status VaryGame(const Task& task, const Start& start, int64_t decisions, Network* network,
                      Rng& rng, Harvest& harvest) {
  const std::unique_ptr<Varying> varying = MakeVarying(task, start);
  if (varying == nullptr) return absl::OkStatus();
  MG_ASSIGN_OR_RETURN(const std::vector<Proposal> proposals, Propose(task, start, network));
  if (proposals.empty()) return absl::OkStatus();
  Varying& game = *varying;
  decisions /= task.game().options().decision_cost();
  Variations variations(game, proposals);
  std::vector<uint8_t> best_actions;
  int64_t best_ps = PositionAfter(task.game(), start.actions)->latency_ps(), played = 0;
  Lessons lessons(task, start);
  const auto scale = static_cast<double>(std::max<int64_t>(1, game.latency_ps()));
  const double first =
      kColdest * std::pow(kHottest / kColdest, rng.Uniform()) * task.unit_ps() / scale;
  AnnealOptions options;
  options.cooling = {first, first * kFall};
  options.trials_per_look = kTriesBetweenCoolings;
  options.used = [&](int64_t) {
    return decisions > 0 ? static_cast<double>(played) / static_cast<double>(decisions) : 1;
  };
  options.tried = [&](bool accepted) {
    if (!variations.from()) return ++played < decisions;
    const Position& end = game.end();
    if (const Proposal* const change = variations.single_change(); change != nullptr) {
      const int64_t cost_ps = end.latency_ps() - variations.before_ps();
      lessons.Note(*change, static_cast<double>(cost_ps) / task.unit_ps());
    }
    ++harvest.varied;
    played += end.num_decisions() - *variations.from();
    if (accepted && end.latency_ps() < best_ps) {
      best_ps = end.latency_ps();
      best_actions.assign(end.actions().begin(), end.actions().end());
    }
    return played < decisions;
  };
  Anneal(variations, options, rng);
  lessons.AddTo(harvest.revisions);
  if (!best_actions.empty()) {
    harvest.variations.push_back(
        GameOf(task, start.task, *PositionAfter(task.game(), best_actions), 0, true));
  }
  return absl::OkStatus();
}

}  // namespace mallocgame::muzero
