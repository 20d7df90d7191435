#include "mallocgame/solvers/policy/policy_network.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <string_view>

#include "mallocgame/search/repeats.h"
#include "mallocgame/solvers/policy/run_prices.h"

namespace mallocgame {
namespace {

constexpr int kFeatures = PolicyNetwork::kFeatures, kHidden = PolicyNetwork::kHidden,
              kOutputs = PolicyNetwork::kOutputs;

consteval size_t Column(std::string_view name) {
  return RunGraph::kFeatures + ColumnOf(kPricedFeatures, name);
}

float Ratio(float part, float rest) {
  const float sum = std::abs(part) + std::abs(rest);
  return sum > 0 ? part / sum : 0;
}

// How often what stands at each tick repeats in the program.
std::vector<int32_t> RepeatsOf(const Game& game) {
  const Repeats repeats(game);
  std::vector<int32_t> count(game.program().ticks());
  for (Tick t = 0; t < game.program().ticks(); ++t) ++count[repeats.representative(t)];
  std::vector<int32_t> of(count.size());
  for (Tick t = 0; t < game.program().ticks(); ++t) of[t] = count[repeats.representative(t)];
  return of;
}

}  // namespace

std::vector<float> PolicyFeatures(const PriorityTables& tables, const RunGraph& graph) {
  const RunPrices prices(tables);
  const std::vector<int32_t> repeats = RepeatsOf(tables.arrangement.game);
  std::vector<float> features(tables.runs.size() * kFeatures);
  for (size_t r = 0; r < tables.runs.size(); ++r) {
    const Run& run = tables.runs[r];
    const float* const known = &graph.features[static_cast<size_t>(run.id) * RunGraph::kFeatures];
    float* const f = &features[static_cast<size_t>(run.id) * kFeatures];
    std::copy(known, known + RunGraph::kFeatures, f);
    const float saving = prices.saving[r], pays = prices.space[r] + prices.channel[r];
    f[Column("worth")] = Ratio(saving - pays, 2 * std::min(saving, pays));
    f[Column("space")] = Ratio(prices.space[r], saving);
    f[Column("channel")] = Ratio(prices.channel[r], saving);
    f[Column("preload")] = run.preloadable ? Ratio(prices.preload[r], saving) : 1;
    const float own = run.placeable ? saving - pays : 0;
    const float parts = prices.parts[r];
    f[Column("against_parts")] = Ratio(own - parts, std::min(std::abs(own), parts));
    f[Column("used")] = prices.used[r];
    f[Column("crowding")] = std::min(prices.crowding[r], 4.0F) - 1;
    f[Column("crowding_most")] = std::min(prices.crowding_most[r], 4.0F) - 1;
    f[Column("busy")] = std::min(prices.busy[r], 4.0F);
    const Tick first = tables.arrangement.decision(run.buffer, run.first).tick;
    f[Column("repeats")] = std::log2(static_cast<float>(repeats[first])) / 4;
    const Tick last = tables.arrangement.decision(run.buffer, run.last).tick;
    f[Column("gap")] = std::log(static_cast<float>(1 + last - first) /
                                static_cast<float>(1 + run.last - run.first)) /
                       4;
    f[Column("log_importance")] =
        (graph.log_saving[run.id] - graph.log_bytes[run.id] / 2 - graph.log_held[run.id] / 2) / 8;
  }
  return features;
}

std::vector<float> PolicyOutputs(absl::Span<const float> weights,
                                 absl::Span<const float> features) {
  const size_t runs = features.size() / kFeatures;
  const float* const in = weights.data();
  const float* const bias = in + kFeatures * kHidden;
  const float* const out = bias + kHidden;
  const float* const linear = out + kHidden * kOutputs;
  const float* const last = linear + kFeatures * kOutputs;
  std::vector<float> outputs(runs * kOutputs);
  for (size_t r = 0; r < runs; ++r) {
    const float* const f = &features[r * kFeatures];
    std::array<float, kHidden> hidden;
    std::copy(bias, bias + kHidden, hidden.begin());
    float* const told = &outputs[r * kOutputs];
    std::copy(last, last + kOutputs, told);
    for (int i = 0; i < kFeatures; ++i) {
      for (int h = 0; h < kHidden; ++h) hidden[h] += f[i] * in[i * kHidden + h];
      for (int o = 0; o < kOutputs; ++o) told[o] += f[i] * linear[i * kOutputs + o];
    }
    for (int h = 0; h < kHidden; ++h) {
      const float active = std::max(hidden[h], 0.0F);
      for (int o = 0; o < kOutputs; ++o) told[o] += active * out[h * kOutputs + o];
    }
  }
  return outputs;
}

}  // namespace mallocgame
