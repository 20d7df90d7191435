// The policy network as a list of weights, and who attends to whom.
#include "agents/egrl/policy.h"

#include <algorithm>
#include <cmath>

#include "agents/egrl/edge_attention.h"
#include "agents/training/torch_runtime.h"
#include "tests/agents/egrl/training_problem.h"
#include "tests/catch.h"

namespace mallocgame::egrl {
namespace {

TEST_CASE("the blocks cover the list of weights, and the seed alone draws it") {
  training::UseOneTorchThread();
  const ProblemGraph graph = MakeProblemGraph(*TinyProblem(3, 12));
  const auto policy = *Policy::Create(TinyConfig(), graph);
  size_t begin = 0;
  for (const WeightBlock& block : policy->blocks()) {
    REQUIRE(block.begin == begin);
    begin += block.size;
  }
  REQUIRE(begin == policy->num_weights());
  REQUIRE(begin == Policy::NumWeights(TinyConfig(), graph));
  const std::vector<float> weights = *policy->Initial(1);
  REQUIRE(weights.size() == policy->num_weights());
  REQUIRE(weights == *policy->Initial(1));
  REQUIRE(weights != *policy->Initial(2));
  for (const WeightBlock& block : policy->blocks()) {
    const auto from = weights.begin() + static_cast<ptrdiff_t>(block.begin);
    const bool constant = std::all_of(from, from + static_cast<ptrdiff_t>(block.size),
                                      [&](float weight) { return weight == 0 || weight == 1; });
    REQUIRE(constant != block.matrix);  // biases are 0, norms 0 and 1
  }
}

TEST_CASE("what a policy says are probabilities of its weights alone") {
  training::UseOneTorchThread();
  const ProblemGraph graph = MakeProblemGraph(*TinyProblem(3, 12));
  const auto policy = *Policy::Create(TinyConfig(), graph);
  const std::vector<float> weights = *policy->Initial(1);
  const std::vector<float> said = *policy->Probabilities(weights);
  REQUIRE(said.size() == static_cast<size_t>(graph.map_size() * graph.levels));
  for (size_t i = 0; i < said.size(); i += graph.levels) {
    double sum = 0;
    for (int level = 0; level < graph.levels; ++level) sum += said[i + level];
    REQUIRE(sum == Approx(1).margin(1e-5));
  }
  REQUIRE(*policy->Probabilities(*policy->Initial(2)) != said);
  REQUIRE(*policy->Probabilities(weights) == said);
}

TEST_CASE("a node attends in proportion to the exponential of its scores") {
  training::UseOneTorchThread();
  Links links;
  links.first = {0, 2, 3};  // node 0 reads 0 and 1, node 1 itself
  links.from = {0, 1, 1};
  const auto values = torch::tensor({1.0F, 5.0F}).view({2, 1, 1});
  auto scores = torch::zeros({2, 2, 1});
  scores[1][0][0] = std::log(3.0F);
  const auto read = EdgeAttention(values, scores, LinkTensors(links));
  REQUIRE(read[0].item<float>() == Approx((1 + 3 * 5) / 4.0));
  REQUIRE(read[1].item<float>() == Approx(5));
  scores[1][0][0] = -10;  // below 0 LeakyReLU takes a fifth of it
  const double share = std::exp(-2.0);
  REQUIRE(EdgeAttention(values, scores, LinkTensors(links))[0].item<float>() ==
          Approx((1 + share * 5) / (1 + share)));
}

}  // namespace
}  // namespace mallocgame::egrl
