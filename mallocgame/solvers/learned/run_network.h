// The network of the solver `learned`. It reads the runs of an order game once. A first layer says
// of each run how much it wants to be in fast memory; what the runs want together, over time, is
// the pressure on space and on the channel; a second layer sees what presses on each run, and says
// when it is decided and how it is served.
#ifndef MALLOCGAME_SOLVERS_LEARNED_RUN_NETWORK_H_
#define MALLOCGAME_SOLVERS_LEARNED_RUN_NETWORK_H_

#include <vector>

#include "absl/types/span.h"
#include "mallocgame/game/order/run_graph.h"

namespace mallocgame {

// What the network says of one run.
struct RunAdvice {
  float importance = 0;  // runs are decided by falling importance
  // What the services of order_state.h are worth, beside what they save; to skip is worth 0.
  float late = 0, early = 0, preload = 0, split = 0;
  float saving = 1;  // what it is worth that all of a run's estimated saving comes true
};

struct RunNetwork {
  static constexpr int kHidden = 32, kState = 12, kSpaceWants = 4, kChannelWants = 2;
  static constexpr int kFirst = kState + kSpaceWants + kChannelWants;
  static constexpr int kPressures = 2 * kSpaceWants + kChannelWants;
  static constexpr int kSecondInputs = RunGraph::kFeatures + kState + kPressures;
  static constexpr int kOutputs = 6;
  static constexpr int kNumWeights = RunGraph::kFeatures * kHidden + (kHidden + 1) * kFirst +
                                     kSecondInputs * kHidden + (kHidden + 1) * kOutputs;
};

// `weights`: RunNetwork::kNumWeights numbers. One advice for each run, in the order of Run::id.
std::vector<RunAdvice> Advise(const RunGraph& graph, absl::Span<const float> weights);

}  // namespace mallocgame

#endif  // MALLOCGAME_SOLVERS_LEARNED_RUN_NETWORK_H_
