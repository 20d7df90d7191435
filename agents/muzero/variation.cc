#include "agents/muzero/variation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "agents/muzero/game_parts.h"
#include "mallocgame/base/error.h"
#include "mallocgame/game/play_actions.h"
#include "mallocgame/search/anneal.h"
#include "mallocgame/search/neighbourhood.h"

namespace mallocgame::muzero {
namespace {

constexpr float kUniformShare = 0.25F;  // share of even proposals, because the policy may be wrong
constexpr double kColdest = 0.01, kHottest = 1;  // range of the first temperature, in units
constexpr double kFall = 0.02;                   // the last temperature divided by the first
constexpr int64_t kTriesBetweenCoolings = 64;
constexpr double kLessonUnits = 0.2;  // a change that costs so much has 1/e of the share of none
constexpr double kMostLesson = 20;    // times the share of what was played

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

  std::vector<Revision> Take() const {
    std::vector<Revision> taught;
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
      taught.push_back({{start_.id, static_cast<int32_t>(s)}, std::move(policy), {}});
    }
    return taught;
  }

 private:
  static constexpr float kUntried = INFINITY;
  const Start& start_;
  size_t actions_;
  std::vector<float> costs_;  // [decisions, actions]
};

}  // namespace

absl::StatusOr<Varied> VaryGame(const Task& task, const Start& start, int64_t decisions,
                                Network* network, Rng& rng) {
  Varied varied;
  const std::unique_ptr<Varying> varying = PartsOf(task.game()).vary(task, start);
  if (varying == nullptr) return varied;
  MG_ASSIGN_OR_RETURN(const std::vector<Proposal> proposals, Propose(task, start, network));
  if (proposals.empty()) return varied;
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
    ++varied.games;
    played += end.num_decisions() - *variations.from();
    if (accepted && end.latency_ps() < best_ps) {
      best_ps = end.latency_ps();
      best_actions.assign(end.actions().begin(), end.actions().end());
    }
    return played < decisions;
  };
  Anneal(variations, options, rng);
  varied.taught = lessons.Take();
  if (best_actions.empty()) return varied;
  varied.better = GameOf(task, start.task, *PositionAfter(task.game(), best_actions), 0, true);
  return varied;
}

}  // namespace mallocgame::muzero
