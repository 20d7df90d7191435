#include "mallocgame/solvers/policy/policy_game.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "mallocgame/base/error.h"
#include "mallocgame/game/priority/priority_state.h"
#include "mallocgame/game/priority/run_graph.h"
#include "mallocgame/search/game_variants.h"
#include "mallocgame/solvers/policy/policy_network.h"

namespace mallocgame {
namespace {

using Network = PolicyNetwork;

constexpr float kLearned[] = {
#include "mallocgame/solvers/policy/learned_weights.inc"
};
static_assert(std::size(kLearned) == Network::kParameters);

// The most that true savings count, as a multiple of the estimate.
constexpr double kMostSaved = 4;

// Serves the open run in front in the mode that is worth most, of those that are legal.
void Serve(PriorityState& state, const float* worth, double saved_counts) {
  const Run& run = state.tables().runs[state.candidates()[0]];
  const auto estimate = static_cast<double>(std::max<int64_t>(1, run.saving_ps));
  const int64_t before = state.latency_ps();
  const float place = worth[Network::kPlace];
  // Of modes worth the same the first is taken.
  Mode best = Mode::kSkip;
  double most = 0;
  if (run.splits && worth[Network::kSplit] >= 0) {
    best = Mode::kSplit;
    most = worth[Network::kSplit];
  }
  const std::pair<Mode, float> placing[] = {{Mode::kLate, place},
                                            {Mode::kEarly, place + worth[Network::kEarly]},
                                            {Mode::kPreload, place + worth[Network::kPreload]}};
  for (const auto& [mode, base] : placing) {
    if (base + saved_counts * kMostSaved <= most) continue;
    if (!state.TryApply(PriorityAction(0, mode))) continue;
    const double saved = static_cast<double>(before - state.latency_ps()) / estimate;
    state.Undo();
    const double total = base + saved_counts * std::clamp(saved, -kMostSaved, kMostSaved);
    if (total <= most) continue;
    most = total;
    best = mode;
  }
  MG_CHECK(state.TryApply(PriorityAction(0, best)));
}

std::shared_ptr<const PriorityGame> GameOf(const Game& game) {
  PriorityGameOptions options = PriorityOptionsOf(game);
  options.candidates = 1;
  options.exact_stalls = true;
  options.min_buffer_bytes = std::min(options.min_buffer_bytes, kSmallBufferBytes);
  return PriorityGameWith(game, options);
}

}  // namespace

absl::Status CheckPolicyWeights(absl::Span<const float> weights) {
  if (weights.size() != Network::kParameters) {
    return absl::InvalidArgumentError(absl::StrCat("weights of a policy: found ", weights.size(),
                                                   " numbers, allowed: ", Network::kParameters));
  }
  const auto bad =
      std::find_if(weights.begin(), weights.end(), [](float w) { return !std::isfinite(w); });
  if (bad == weights.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("weights of a policy: found ", *bad, " as number ",
                                                 bad - weights.begin(), ", allowed: finite ones"));
}

absl::Span<const float> LearnedPolicyWeights() { return kLearned; }

std::vector<std::string> PolicyFeatureNames() {
  std::vector<std::string> names;
  for (const Feature& feature : kRunFeatures) names.emplace_back(feature.name);
  for (const Feature& feature : kPricedFeatures)
    names.push_back(absl::StrCat("priced_", feature.name));
  return names;
}

PolicyGame::PolicyGame(const Game& game)
    : game_(GameOf(game)),
      features_(PolicyFeatures(game_->priority_tables(), RunGraph(game_->priority_tables()))) {}

std::vector<Mode> PolicyGame::ModesOf(const Plan& plan) const {
  const PriorityTables& tables = game_->priority_tables();
  const Intent intent = game_->ReadPlan(plan);
  std::vector<Mode> modes(tables.runs.size(), Mode::kOpen);
  for (size_t r = 0; r < tables.runs.size(); ++r) {
    bool inside = false;
    for (int32_t over = tables.runs[r].parent; over >= 0; over = tables.runs[over].parent)
      inside |= intent[over].mode != Mode::kSplit;
    if (!inside) modes[tables.runs[r].id] = intent[r].mode;
  }
  return modes;
}

PolicyGame::Played PolicyGame::Play(absl::Span<const float> weights) const {
  MG_CHECK(CheckPolicyWeights(weights).ok());
  const std::vector<float> outputs = PolicyOutputs(weights, features_);
  const PriorityTables& own = game_->priority_tables();
  std::vector<float> importance(own.runs.size());
  for (size_t r = 0; r < importance.size(); ++r)
    importance[r] = outputs[r * Network::kOutputs + Network::kImportance];
  const PriorityTables tables(own, importance);
  PriorityState state(game_, tables);
  const double saved_counts = weights.back();
  while (!state.IsTerminal()) {
    const int32_t id = tables.runs[state.candidates()[0]].id;
    const float* const worth = &outputs[static_cast<size_t>(id) * Network::kOutputs];
    Serve(state, worth, saved_counts);
  }
  return {state.ToPlan(), state.latency_ps()};
}

}  // namespace mallocgame
