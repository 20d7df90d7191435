// The graph network that places tensors, as a list of weights and what they make of a graph. In
// this form evolution can treat it as a chromosome, and Torch stays behind this header.
#pragma once

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

// The place of one parameter of the network in its list of weights.
struct WeightBlock {
  size_t begin = 0, size = 0;
  bool matrix = false;  // otherwise it is a bias, or the scale or shift of a norm
};

// One thread at a time may use a policy. Several policies of the same graph give the same results.
class Policy {
 public:
  // Internal: Torch reports an error.
  static absl::StatusOr<std::unique_ptr<Policy>> Create(const Config& config,
                                                        const ProblemGraph& graph);
  // The num_weights() of the policy that Create would make.
  static size_t NumWeights(const Config& config, const ProblemGraph& graph);
  virtual ~Policy() = default;

  virtual const std::vector<WeightBlock>& blocks() const = 0;
  size_t num_weights() const { return blocks().back().begin + blocks().back().size; }

  // Weights drawn from the seed.
  virtual absl::StatusOr<std::vector<float>> Initial(uint64_t seed) = 0;

  // The probabilities of the levels for each decision, [2 * nodes, levels], row-major. There must
  // be num_weights() weights.
  virtual absl::StatusOr<std::vector<float>> Probabilities(absl::Span<const float> weights) = 0;
};

}  // namespace mallocgame::egrl
