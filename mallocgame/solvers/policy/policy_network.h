// The network of the solver `policy`: a few dozen features of each run of a priority game become
// the run's importance and the worth of each mode.
#ifndef MALLOCGAME_SOLVERS_POLICY_POLICY_NETWORK_H_
#define MALLOCGAME_SOLVERS_POLICY_POLICY_NETWORK_H_

#include <iterator>
#include <vector>

#include "absl/types/span.h"
#include "mallocgame/game/feature.h"
#include "mallocgame/game/priority/run_graph.h"

namespace mallocgame {

// What the network reads of a run beside kRunFeatures. Prices are those of RunPrices.
inline constexpr Feature kPricedFeatures[] = {
    {"worth", "(saves - pays) / (saves + pays), for bytes and copies"},
    {"space", "what its bytes pay / (it and what the run saves)"},
    {"channel", "what its copies pay / (it and what the run saves)"},
    {"preload", "the same of the bytes of a preload"},
    {"against_parts", "(its worth - that of its parts) / (sum of their amounts)"},
    {"used", "share of the steps in which it was chosen"},
    {"crowding", "mean use of fast memory while it is held, - 1"},
    {"crowding_most", "the largest, - 1"},
    {"busy", "mean use of the channel in the time of its prefetch"},
    {"repeats", "log2(how many times its first instruction repeats in the program) / 4"},
    {"gap", "ln(ticks held / its accesses) / 4"},
    {"log_importance", "ln(what it saves / square root of bytes and time held) / 8"},
};

struct PolicyNetwork {
  static constexpr int kFeatures = RunGraph::kFeatures + std::size(kPricedFeatures);
  static constexpr int kHidden = 16;
  // The importance of a run, and the worths of placing it at all, Early, Preload and Split.
  enum Output : int { kImportance, kPlace, kEarly, kPreload, kSplit, kOutputs };
  // Weights into the hidden layer and its biases; those out of it; a linear part; biases; and what
  // the true saving of a decision counts.
  static constexpr int kParameters =
      (kFeatures + 1) * kHidden + kHidden * kOutputs + kFeatures * kOutputs + kOutputs + 1;
};

// What the network reads: [runs, kFeatures], in the order of Run::id.
std::vector<float> PolicyFeatures(const PriorityTables& tables, const RunGraph& graph);

// What it says: [runs, kOutputs]. `weights` has kParameters.
std::vector<float> PolicyOutputs(absl::Span<const float> weights, absl::Span<const float> features);

}  // namespace mallocgame

#endif  // MALLOCGAME_SOLVERS_POLICY_POLICY_NETWORK_H_
