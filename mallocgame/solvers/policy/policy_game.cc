#include "mallocgame/solvers/policy/policy_game.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "mallocgame/base/error.h"
#include "mallocgame/game/mode.h"
#include "mallocgame/game/priority/priority_state.h"
#include "mallocgame/game/priority/run_graph.h"
#include "mallocgame/search/game_variants.h"
#include "mallocgame/solvers/policy/run_prices.h"

namespace mallocgame {
namespace {

constexpr float kLearned[] = {
#include "mallocgame/solvers/policy/learned_weights.inc"
};
static_assert(std::size(kLearned) == kPolicyWeights);

// The most that a true saving counts, as a multiple of the estimate.
constexpr double kMostSaved = 4;

float Ratio(float part, float rest) {
  const float sum = std::abs(part) + std::abs(rest);
  return sum > 0 ? part / sum : 0;
}

// What a rule says of a run: what placing it at all is worth, placing it early too, and a split.
struct Worths {
  float place = 0, early = 0, split = 0;
};

// Serves the open run in front in the mode that is worth most, of those that are legal.
void Serve(PriorityState& state, const Worths& worths) {
  const Run& run = state.tables().runs[state.candidates()[0]];
  const auto estimate = static_cast<double>(std::max<int64_t>(1, run.saving_ps));
  const int64_t before = state.latency_ps();
  // Of modes worth the same the first is taken.
  Mode best = Mode::kSkip;
  double most = 0;
  if (run.splits && worths.split >= 0) {
    best = Mode::kSplit;
    most = worths.split;
  }
  const std::pair<Mode, float> placing[] = {{Mode::kLate, worths.place},
                                            {Mode::kEarly, worths.place + worths.early},
                                            {Mode::kPreload, worths.place}};
  for (const auto& [mode, base] : placing) {
    if (base + kMostSaved <= most) continue;
    if (!state.TryApply(PriorityAction(0, mode))) continue;
    const double saved = static_cast<double>(before - state.latency_ps()) / estimate;
    state.Undo();
    const double total = base + std::clamp(saved, -kMostSaved, kMostSaved);
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
  if (weights.size() != kPolicyWeights) {
    return absl::InvalidArgumentError(absl::StrCat("weights of a policy: found ", weights.size(),
                                                   " numbers, allowed: ", +kPolicyWeights));
  }
  const auto bad =
      std::find_if(weights.begin(), weights.end(), [](float w) { return !std::isfinite(w); });
  if (bad == weights.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("weights of a policy: found ", *bad, " as number ",
                                                 bad - weights.begin(), ", allowed: finite ones"));
}

absl::Span<const float> LearnedPolicyWeights() { return kLearned; }

PolicyGame::PolicyGame(const Game& game) : game_(GameOf(game)) {
  const PriorityTables& tables = game_->priority_tables();
  const RunGraph graph(tables);
  const RunPrices prices(tables);
  features_.resize(tables.runs.size());
  for (size_t r = 0; r < tables.runs.size(); ++r) {
    const Run& run = tables.runs[r];
    const float* const known = &graph.features[static_cast<size_t>(run.id) * RunGraph::kFeatures];
    const auto saving = static_cast<float>(run.saving_ps);
    const float pays = prices.pays[r], parts = prices.parts[r];
    const float own = run.placeable ? saving - pays : 0;
    const Tick first = tables.arrangement.decision(run.buffer, run.first).tick;
    const Tick last = tables.arrangement.decision(run.buffer, run.last).tick;
    features_[run.id] = {
        .saving = known[ColumnOf(kRunFeatures, "saving")],
        .bytes = known[ColumnOf(kRunFeatures, "bytes")],
        .held = known[ColumnOf(kRunFeatures, "held")],
        .used = prices.used[r],
        .worth = Ratio(saving - pays, 2 * std::min(saving, pays)),
        .parts = Ratio(own - parts, std::min(std::abs(own), parts)),
        .gap = std::log(static_cast<float>(1 + last - first) /
                        static_cast<float>(1 + run.last - run.first)) /
               4,
        .importance =
            graph.log_saving[run.id] - graph.log_bytes[run.id] / 2 - graph.log_held[run.id] / 2,
    };
  }
}

PolicyGame::Played PolicyGame::Play(absl::Span<const float> weights) const {
  MG_CHECK(CheckPolicyWeights(weights).ok());
  const float* const w = weights.data();
  std::vector<float> importance;
  std::vector<Worths> worths;
  for (const Features& f : features_) {
    importance.push_back(w[kImportanceOfSaving] * f.saving + w[kImportanceOfBytes] * f.bytes +
                         w[kImportanceOfHeld] * f.held + w[kImportanceOfWorth] * f.worth +
                         w[kImportanceOfUsed] * f.used + f.importance);
    worths.push_back({.place = w[kPlace] + w[kPlaceOfWorth] * f.worth + w[kPlaceOfUsed] * f.used,
                      .early = w[kEarly],
                      .split = w[kSplit] + w[kSplitOfParts] * f.parts + w[kSplitOfGap] * f.gap});
  }
  const PriorityTables tables(game_->priority_tables(), importance);
  PriorityState state(game_, tables);
  while (!state.IsTerminal()) Serve(state, worths[tables.runs[state.candidates()[0]].id]);
  return {state.ToPlan(), state.latency_ps()};
}

}  // namespace mallocgame
