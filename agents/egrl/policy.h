// The graph network that places tensors, as a list of weights and what it makes of a graph: so
// evolution can treat it as a chromosome, and Torch stays behind this header.
#ifndef AGENTS_EGRL_POLICY_H_
#define AGENTS_EGRL_POLICY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "agents/egrl/config.h"
#include "agents/egrl/problem_graph.h"

namespace mallocgame::egrl {

// One parameter of the network inside its list of weights.
struct WeightBlock {
  size_t begin = 0, size = 0;
  bool matrix = false;  // else a bias, or the scale or shift of a norm
};

// Belongs to one thread at a time; any number of them agree.
class Policy {
 public:
  // Internal: what Torch has to say.
  static absl::StatusOr<std::unique_ptr<Policy>> Create(const Config& config,
                                                        const ProblemGraph& graph);
  virtual ~Policy() = default;

  virtual const std::vector<WeightBlock>& blocks() const = 0;
  size_t num_weights() const { return blocks().back().begin + blocks().back().size; }

  virtual absl::StatusOr<std::vector<float>> Initial(uint64_t seed) = 0;

  // [2 * nodes, levels], row-major, each decision's sum 1. `weights`: num_weights() of them.
  virtual absl::StatusOr<std::vector<float>> Probabilities(absl::Span<const float> weights) = 0;
};

}  // namespace mallocgame::egrl

#endif  // AGENTS_EGRL_POLICY_H_
