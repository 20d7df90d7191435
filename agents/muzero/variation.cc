#include "agents/muzero/variation.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>
#include <vector>

#include "mallocgame/base/annealing.h"
#include "mallocgame/base/error.h"
#include "mallocgame/game/play_actions.h"
#include "mallocgame/solvers/playing/preference_search.h"

namespace mallocgame::muzero {
namespace {

constexpr float kUniformShare = 0.25F;  // share of even proposals, because the policy may be wrong
constexpr double kColdest = 0.01, kHottest = 1;  // range of the first temperature, in units
constexpr double kFall = 0.02;                   // the last temperature divided by the first
constexpr int64_t kTriesBetweenCoolings = 64;

struct Proposal {
  AccessId access;
  Action action;
  float until = 0;  // sum of the weights of the proposals up to this one
};

// The other actions at each decision of `game`, weighted by how much the policy likes them. Enters
// the actions of `game` as preferences.
absl::StatusOr<std::vector<Proposal>> Propose(const Task& task, const PlayedGame& game,
                                              Network& network, Preferences& preferences) {
  const size_t size = network.observation_size(), actions = network.num_actions();
  std::vector<float> observations;
  std::vector<std::pair<AccessId, uint8_t>> asked;  // accesses with their masks of legal actions
  State state = task.game().InitialState();
  for (uint8_t action : game.actions) {
    preferences[state.current_access().index()] = action;
    if (std::popcount(state.legal_mask()) > 1) {
      observations.resize(observations.size() + size);
      task.observer().Write(state, observations.data() + observations.size() - size);
      asked.emplace_back(state.current_access(), state.legal_mask());
    }
    MG_RETURN_IF_ERROR(state.Apply(static_cast<Action>(action)).status());
  }
  std::vector<float> logits(asked.size() * actions), values(asked.size());
  if (!asked.empty())
    MG_RETURN_IF_ERROR(
        network.Predict(observations, absl::MakeSpan(logits), absl::MakeSpan(values)));

  std::vector<Proposal> proposals;
  float sum = 0;
  for (size_t i = 0; i < asked.size(); ++i) {
    const float* row = logits.data() + i * actions;
    const auto legal = [&](size_t a) { return (asked[i].second >> a & 1) != 0; };
    float most = -INFINITY, total = 0;
    for (size_t a = 0; a < actions; ++a) most = legal(a) ? std::max(most, row[a]) : most;
    for (size_t a = 0; a < actions; ++a) total += legal(a) ? std::exp(row[a] - most) : 0;
    const float even = kUniformShare / static_cast<float>(std::popcount(asked[i].second));
    for (size_t a = 0; a < actions; ++a) {
      if (!legal(a) || a == preferences[asked[i].first.index()]) continue;
      sum += even + (1 - kUniformShare) * std::exp(row[a] - most) / total;
      proposals.push_back({asked[i].first, static_cast<Action>(a), sum});
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

// The decision of the accepted game that is about `access`. Nothing if there is none.
std::optional<int32_t> DecisionOf(const PreferenceSearch& search, AccessId access) {
  int32_t low = 0, high = search.decisions();
  while (low < high) {
    const int32_t middle = (low + high) / 2;
    if (search.decision(middle) < access)
      low = middle + 1;
    else
      high = middle;
  }
  if (low == search.decisions() || search.decision(low) != access) return std::nullopt;
  return low;
}

// Sets up a variation and returns the decision at which it leaves the accepted game. Nothing if the
// first change drawn is none in that game.
std::optional<int32_t> Change(const Task& task, const std::vector<Proposal>& proposals,
                              PreferenceSearch& search, Rng& rng) {
  const uint32_t kind = rng.Below(8);
  std::vector<Proposal> changes = {Draw(proposals, rng)};
  if (kind >= 6) {
    for (uint32_t more = 1 + rng.Below(3); more > 0; --more)
      changes.push_back(Draw(proposals, rng));
    std::sort(changes.begin(), changes.end(),
              [](const Proposal& a, const Proposal& b) { return a.access < b.access; });
  }
  const std::optional<int32_t> at = DecisionOf(search, changes[0].access);
  if (!at || !search.GoTo(*at).IsLegal(changes[0].action) ||
      search.choice(changes[0].access) == changes[0].action)
    return std::nullopt;
  for (const Proposal& change : changes) search.Prefer(change.access, change.action);
  if (kind == 4 || kind == 5) {  // change later accesses of the same buffer too
    const Program& program = task.game().program();
    for (AccessId later : program.accesses_of(program.access(changes[0].access).buffer)) {
      if (later > changes[0].access && rng.Below(4) != 0) search.Prefer(later, changes[0].action);
    }
  }
  return at;
}

}  // namespace

absl::StatusOr<Varied> VaryGame(const Task& task, const PlayedGame& start, int64_t decisions,
                                Network& network, Rng& rng) {
  Preferences preferences(task.game().program().accesses().size(), kUndecided);
  MG_ASSIGN_OR_RETURN(const std::vector<Proposal> proposals,
                      Propose(task, start, network, preferences));
  Varied varied;
  if (proposals.empty()) return varied;
  PreferenceSearch search(task.game(), std::move(preferences));
  const double first = kColdest * std::pow(kHottest / kColdest, rng.Uniform());
  double temperature = first;
  std::vector<uint8_t> best_actions;
  int64_t best_ps = start.latency_ps;
  for (int64_t played = 0, tries = 0; played < decisions; ++tries) {
    if (tries % kTriesBetweenCoolings == 0) {
      temperature =
          first * std::pow(kFall, static_cast<double>(played) / static_cast<double>(decisions));
    }
    const std::optional<int32_t> from = Change(task, proposals, search, rng);
    if (!from) {
      ++played;
      continue;
    }
    const State& end = search.Play();
    ++varied.games;
    played += end.num_decisions() - *from;
    if (end.latency_ps() < best_ps) {
      best_ps = end.latency_ps();
      best_actions.assign(end.actions().begin(), end.actions().end());
    }
    const double worse = task.LeadOf(search.latency_ps()) - task.LeadOf(end.latency_ps());
    if (worse <= 0 || AcceptWorse(worse, temperature, rng))
      search.Accept();
    else
      search.Reject();
  }
  if (best_actions.empty()) return varied;
  varied.better = GameOf(task, start.task, **PlayActions(task.game(), best_actions), 0, true);
  return varied;
}

}  // namespace mallocgame::muzero
