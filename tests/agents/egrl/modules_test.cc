// The parts that include Torch: attention along links, compared with a slow implementation and with
// finite differences; poolings; critics.
#include "agents/egrl/modules.h"

#include <cmath>

#include "tests/agents/egrl/training_problem.h"
#include "tests/catch.h"

namespace mallocgame::egrl {
namespace {

// Node 0 is linked to all five nodes, the others to 0 and to themselves.
Links Star() {
  Links links;
  links.first = {0, 5, 7, 9, 11, 13};
  links.from = {0, 1, 2, 3, 4, 0, 1, 0, 2, 0, 3, 0, 4};
  return links;
}

// The same with a matrix of attention between all nodes, and operations of Torch.
torch::Tensor DenseAttention(const torch::Tensor& values, const torch::Tensor& scores,
                             const Links& links) {
  auto linked = torch::full({5, 5}, -1e9);
  for (int64_t n = 0; n < 5; ++n) {
    for (int64_t l = links.first[n]; l < links.first[n + 1]; ++l) {
      linked[n][links.from[l]] = 0;
    }
  }
  const auto to = scores.select(1, 1).unsqueeze(1), from = scores.select(1, 0).unsqueeze(0);
  // [to, from, heads]
  const auto attention = torch::softmax(torch::leaky_relu(to + from, 0.2) + linked.unsqueeze(2), 1);
  return torch::einsum("nmh,mhw->nhw", {attention, values});
}

TEST_CASE("attention along links is what a matrix of all nodes makes, and so are its gradients") {
  torch::manual_seed(1);
  const Links links = Star();
  const auto weight = torch::randn({5, 2, 3});
  auto values = torch::randn({5, 2, 3}).requires_grad_(),
       scores = torch::randn({5, 2, 2}).requires_grad_();
  const auto mine = EdgeAttention(values, scores, LinkTensors(links));
  const auto theirs = DenseAttention(values, scores, links);
  REQUIRE(torch::allclose(mine, theirs, 1e-5, 1e-6));
  const auto my_slopes = torch::autograd::grad({(mine * weight).sum()}, {values, scores});
  const auto their_slopes = torch::autograd::grad({(theirs * weight).sum()}, {values, scores});
  for (size_t i : {0, 1}) REQUIRE(torch::allclose(my_slopes[i], their_slopes[i], 1e-4, 1e-5));
  REQUIRE(my_slopes[1].abs().max().item<float>() > 1e-3);
}

TEST_CASE("great scores do not overflow") {
  const auto values = torch::ones({5, 1, 2}), scores = torch::full({5, 2, 1}, 300.0);
  const auto result = EdgeAttention(values, scores, LinkTensors(Star()));
  REQUIRE(torch::allclose(result, values));
}

TEST_CASE("a pooling keeps its share of the nodes, those of the highest scores, in order") {
  REQUIRE(BestNodes(torch::tensor({0.1F, 0.9F, 0.5F, 0.7F}), 0.5) == std::vector<int64_t>{1, 3});
  REQUIRE(BestNodes(torch::tensor({0.1F, 0.9F, 0.5F, 0.7F}), 0.6) == std::vector<int64_t>{1, 2, 3});
  REQUIRE(BestNodes(torch::tensor({2.0F, 2.0F, 2.0F}), 0.3) == std::vector<int64_t>{0});
  REQUIRE(BestNodes(torch::zeros({4}), 1).size() == 4);
}

TEST_CASE("a critic reads each map by itself, and its slope says what a change of the map does") {
  const bool order = GENERATE(false, true);  // there it reads what a map wants of memory, too
  const ProblemGraph graph = MakeProblemGraph(
      order ? **PlacementProblem::Create(TinyGame(5, "priority")) : *TinyProblem(3, 12));
  const GraphTensors tensors(graph);
  REQUIRE(tensors.alive.defined() == order);
  CriticModule critic(TinyConfig(), graph.features, graph.levels, graph.wanted());
  Initialise(*critic, 4);
  const auto context = critic->Context(tensors).detach();
  torch::manual_seed(2);
  auto maps = torch::rand({3, 2 * graph.nodes, graph.levels});
  const auto together = critic->forward(tensors, context, maps);
  REQUIRE(together.sizes() == at::IntArrayRef({3}));
  for (int64_t i = 0; i < 3; ++i) {
    REQUIRE(critic->forward(tensors, context, maps.narrow(0, i, 1)).item<float>() ==
            Approx(together[i].item<float>()).margin(1e-5));
  }
  maps.requires_grad_();
  const auto slope =
      torch::autograd::grad({critic->forward(tensors, context, maps).sum()}, {maps})[0];
  const auto direction = torch::randn(maps.sizes());
  const torch::NoGradGuard no_gradient;
  constexpr double kStep = 1e-2;
  const double by_difference = (critic->forward(tensors, context, maps + kStep * direction) -
                                critic->forward(tensors, context, maps - kStep * direction))
                                   .sum()
                                   .item<double>() /
                               (2 * kStep);
  REQUIRE((slope * direction).sum().item<double>() ==
          Approx(by_difference).epsilon(0.05).margin(1e-3));
}

TEST_CASE("weights as a list and back") {
  PolicyModule one(TinyConfig(), 2, 3), other(TinyConfig(), 2, 3);
  Initialise(*one, 1);
  Initialise(*other, 2);
  REQUIRE(WeightsOf(*one) != WeightsOf(*other));
  SetWeights(WeightsOf(*one), *other);
  REQUIRE(WeightsOf(*one) == WeightsOf(*other));
}

}  // namespace
}  // namespace mallocgame::egrl
