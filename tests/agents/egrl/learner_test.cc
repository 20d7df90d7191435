// The graph, the policy and the critics: what they attend to, that the order of nodes does not
// matter, and that they learn a known reward.
#include "agents/egrl/learner.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "agents/egrl/policy.h"
#include "agents/egrl/population.h"
#include "agents/egrl/problem_graph.h"
#include "agents/training/torch_runtime.h"
#include "tests/agents/egrl/training_problem.h"
#include "tests/catch.h"

namespace mallocgame::egrl {
namespace {

// A path 0 - 1 - 2 - ... of nodes whose features all differ.
ProblemGraph Path(int nodes) {
  ProblemGraph graph;
  graph.nodes = nodes;
  graph.levels = 3;
  graph.features = 2;
  for (int n = 0; n < nodes; ++n) {
    for (const double x : {std::sin(2.0 * n), std::cos(1.3 * n)})
      graph.node_features.push_back(static_cast<float>(x));
    for (const int from : {n - 1, n, n + 1}) {
      if (from >= 0 && from < nodes) graph.links.from.push_back(from);
    }
    graph.links.first.push_back(static_cast<int64_t>(graph.links.from.size()));
    graph.share.push_back(1.0F / static_cast<float>(nodes));
    for (const int decision : {2 * n, 2 * n + 1}) graph.parts.push_back({n, decision, 0.5F});
  }
  graph.real.assign(2 * nodes, 1);
  graph.decisions = 2 * nodes;
  return graph;
}

// The same graph with its nodes in another order: node n becomes order[n].
ProblemGraph Reordered(const ProblemGraph& graph, const std::vector<int>& order) {
  ProblemGraph other = graph;
  std::vector<std::vector<int64_t>> from(order.size());
  for (size_t n = 0; n < order.size(); ++n) {
    const size_t to = order[n];
    for (size_t f = 0; f < 2; ++f) other.node_features[2 * to + f] = graph.node_features[2 * n + f];
    for (int64_t l = graph.links.first[n]; l < graph.links.first[n + 1]; ++l) {
      from[to].push_back(order[graph.links.from[l]]);
    }
  }
  other.links = {};
  for (std::vector<int64_t>& row : from) {
    std::sort(row.begin(), row.end());
    other.links.from.insert(other.links.from.end(), row.begin(), row.end());
    other.links.first.push_back(static_cast<int64_t>(other.links.from.size()));
  }
  return other;
}

std::vector<float> Ask(const Config& config, const ProblemGraph& graph, uint64_t seed) {
  training::UseOneTorchThread();
  const auto policy = *Policy::Create(config, graph);
  const auto probabilities = policy->Probabilities(*policy->Initial(seed));
  REQUIRE(probabilities.ok());
  return *probabilities;
}

TEST_CASE("pooled graphs link what two steps join") {
  const ProblemGraph path = Path(6);
  const Links links = LinksWithinTwoSteps(path.links, {0, 2, 3, 5});
  REQUIRE(links.nodes() == 4);
  // The links are 0: 0, 2; 2: 0, 2, 3; 3: 2, 3, 5; 5: 3, 5, here by their new numbers.
  REQUIRE(links.first == std::vector<int64_t>{0, 2, 5, 8, 10});
  REQUIRE(links.from == std::vector<int64_t>{0, 1, 0, 1, 2, 1, 2, 3, 2, 3});
}

TEST_CASE("the graph of a problem holds its links, its decisions and all of its bytes") {
  const auto problem = TinyProblem(3, 12);
  const ProblemGraph graph = MakeProblemGraph(*problem);
  REQUIRE(graph.nodes == static_cast<int>(problem->graph().nodes.size()));
  for (int n = 0; n < graph.nodes; ++n) {
    const auto begin = graph.links.from.begin() + graph.links.first[n];
    const auto end = graph.links.from.begin() + graph.links.first[n + 1];
    REQUIRE(std::is_sorted(begin, end));
    REQUIRE(std::count(begin, end, n) == 1);  // itself
    for (auto from = begin; from != end; ++from) {
      const auto back = graph.links.from.begin() + graph.links.first[*from];
      REQUIRE(std::count(back, graph.links.from.begin() + graph.links.first[*from + 1], n) == 1);
    }
  }
  int real = 0;
  // A map that fits fills no level on the mean of a slice, and all shares are of one whole.
  REQUIRE(graph.fill.size() == 2 * graph.real.size() * ProblemGraph::kSlices);
  for (size_t level : {0, 1}) {
    const PlacementMap fits =
        *problem->Rectify(PlacementMap(graph.real.size(), static_cast<uint8_t>(level)));
    double most = 0;
    for (int slice = 0; slice < ProblemGraph::kSlices; ++slice) {
      double filled = 0;
      for (size_t i = 0; i < graph.real.size(); ++i) {
        if (fits[i] == level)
          filled += graph.fill[(level * graph.real.size() + i) * ProblemGraph::kSlices + slice];
      }
      most = std::max(most, filled);
    }
    REQUIRE(most > 0);
    REQUIRE(most <= 1 + 1e-5);
  }
  std::vector<double> parts(graph.nodes, 0.0);
  for (const auto& [node, decision, share] : graph.parts) parts[node] += share;
  for (const double part : parts) REQUIRE(part <= 1 + 1e-5);
  REQUIRE(std::accumulate(graph.share.begin(), graph.share.end(), 0.0) == Approx(1).epsilon(1e-5));
  for (size_t i = 0; i < graph.real.size(); ++i) {
    const bool placed = problem->graph().nodes[i / 2].tensors[i % 2].size_bytes > 0;
    REQUIRE(graph.real[i] == static_cast<float>(placed));
    real += placed;
  }
  REQUIRE(graph.decisions == real);
}

TEST_CASE("a policy says probabilities, whatever the order of nodes; the seed decides which") {
  Config config = TinyConfig();
  config.depth = 3;
  const ProblemGraph graph = Path(11);
  const std::vector<float> p = Ask(config, graph, 5);
  REQUIRE(p.size() == 2 * 11 * 3);
  for (size_t i = 0; i < p.size(); i += 3)
    REQUIRE(p[i] + p[i + 1] + p[i + 2] == Approx(1).margin(1e-5));
  REQUIRE(Ask(config, graph, 5) == p);
  REQUIRE(Ask(config, graph, 6) != p);
  std::vector<int> order(11);
  std::iota(order.begin(), order.end(), 0);
  std::reverse(order.begin(), order.end());
  std::swap(order[2], order[7]);
  const std::vector<float> q = Ask(config, Reordered(graph, order), 5);
  for (size_t n = 0; n < 11; ++n) {
    for (size_t i = 0; i < 6; ++i)
      REQUIRE(q[6 * order[n] + i] == Approx(p[6 * n + i]).margin(1e-5));
  }
}

TEST_CASE("attention follows the links: what is far away changes nothing") {
  Config config = TinyConfig();
  config.depth = 0;  // one attention: one step
  ProblemGraph graph = Path(9);
  const std::vector<float> before = Ask(config, graph, 5);
  graph.node_features[0] += 1;
  const std::vector<float> after = Ask(config, graph, 5);
  for (size_t node = 0; node < 9; ++node) {
    const bool same = std::equal(before.begin() + static_cast<ptrdiff_t>(6 * node),
                                 before.begin() + static_cast<ptrdiff_t>(6 * node + 6),
                                 after.begin() + static_cast<ptrdiff_t>(6 * node));
    REQUIRE(same == (node > 1));
  }
  // With poolings the network reaches further.
  config.depth = 3;
  graph = Path(9);
  const std::vector<float> deep = Ask(config, graph, 5);
  graph.node_features[0] += 1;
  const std::vector<float> deep_after = Ask(config, graph, 5);
  REQUIRE(!std::equal(deep.begin() + 12, deep.begin() + 30, deep_after.begin() + 12));
}

TEST_CASE("the more the slowest level is favoured, the more of a first map lies there") {
  Config config = TinyConfig();
  const ProblemGraph graph = Path(40);
  int64_t slow = -1;
  for (const double bias : {0.0, 1.5, 20.0}) {
    config.slow_bias = bias;
    const PlacementMap map = MostLikelyMap(Ask(config, graph, 2), graph);
    const int64_t now = std::count(map.begin(), map.end(), 2);
    REQUIRE(now > slow);
    slow = now;
  }
  REQUIRE(slow == 80);
}

// Random maps with a known value: minus the share of the real decisions that are not in level 0.
struct Lesson {
  std::vector<uint8_t> maps;
  std::vector<double> values;
};
Lesson SomeMaps(const ProblemGraph& graph, int count, Rng& rng) {
  Lesson lesson;
  for (int i = 0; i < count; ++i) {
    const uint32_t favoured = rng.Below(4);  // so that values differ
    double good = 0;
    for (size_t d = 0; d < graph.real.size(); ++d) {
      const auto level = static_cast<uint8_t>(rng.Below(4) < favoured ? 0 : 1 + rng.Below(2));
      lesson.maps.push_back(level);
      good += level == 0 && graph.real[d] > 0;
    }
    lesson.values.push_back(good / graph.decisions - 1);
  }
  return lesson;
}

TEST_CASE("the critics learn a known value, and the actor the map that is worth most") {
  training::UseOneTorchThread();
  Config config = TinyConfig();
  config.batch = 24;
  config.learning_rate = config.critic_learning_rate = 3e-3;
  ProblemGraph graph = Path(6);
  graph.real[4] = 0;
  graph.decisions = 11;
  const auto learner = *Learner::Create(config, {graph}, 3);
  const auto policy = *Policy::Create(config, graph);
  Rng rng(1);
  double first = 0, last = 0;
  for (int i = 0; i < 600; ++i) {
    const Lesson lesson = SomeMaps(graph, config.batch, rng);
    const auto losses = learner->Update(0, lesson.maps, lesson.values, rng);
    REQUIRE(losses.ok());
    REQUIRE(std::isfinite(losses->actor_gradient));
    REQUIRE(losses->entropy <= std::log(3.0) + 1e-6);
    if (i < 10) first += losses->critic;
    if (i >= 590) last += losses->critic;
  }
  REQUIRE(last < 0.1 * first);
  REQUIRE(learner->updates() == 600);
  const Lesson lesson = SomeMaps(graph, 50, rng);
  REQUIRE(learner->Prepare(0).ok());
  const auto values = learner->Values(lesson.maps);
  double error = 0;
  for (size_t i = 0; i < 50; ++i)
    error += std::abs((*values)[i] / config.reward_scale - lesson.values[i]) / 50;
  REQUIRE(error < 0.1);
  const auto p = policy->Probabilities(learner->Actor());
  for (size_t d = 0; d < graph.real.size(); ++d) {
    if (graph.real[d] > 0) REQUIRE((*p)[3 * d] > 0.8);
  }
  // A decision without a tensor changes nothing.
  std::vector<uint8_t> map(12, 0), same = map;
  same[4] = 2;
  REQUIRE(learner->Values(map)->front() == learner->Values(same)->front());
}

TEST_CASE("what is not open changes nothing, and what opens it is paid for what it opens") {
  training::UseOneTorchThread();
  Config config = TinyConfig();
  config.batch = 24;
  config.entropy = 0.01;
  config.learning_rate = config.critic_learning_rate = 3e-3;
  ProblemGraph graph = Path(4);
  graph.levels = 5;
  // The first decision of all opens the others of its kind, which are worth something in level 0.
  graph.parent.assign(8, -1);
  for (size_t i = 2; i < 8; i += 2) graph.parent[i] = 0;
  for (size_t i = 1; i < 8; i += 2) graph.real[i] = 0;
  graph.decisions = 4;
  const auto learner = *Learner::Create(config, {graph}, 3);
  Rng rng(1);
  std::vector<uint8_t> maps;
  for (int i = 0; i < 800; ++i) {
    maps.clear();
    std::vector<double> values;
    for (int m = 0; m < config.batch; ++m) {
      const size_t first = maps.size();
      for (int d = 0; d < 8; ++d) maps.push_back(static_cast<uint8_t>(rng.Below(5)));
      if (rng.Below(2) == 0) maps[first] = PlacementProblem::kSplitLevel;
      double value = -1;
      for (size_t d = 2; d < 8; d += 2)
        value += maps[first] == PlacementProblem::kSplitLevel && maps[first + d] == 0 ? 0.2 : 0;
      values.push_back(value);
    }
    REQUIRE(learner->Update(0, maps, values, rng).ok());
  }
  REQUIRE(learner->Prepare(0).ok());
  const auto value_of = [&](const std::vector<uint8_t>& map) {
    return learner->Values(map)->front();
  };
  REQUIRE(value_of({0, 0, 1, 0, 2, 0, 3, 0}) == value_of({0, 0, 4, 0, 4, 0, 0, 0}));
  REQUIRE(value_of({3, 0, 0, 0, 0, 0, 0, 0}) > value_of({3, 0, 4, 0, 4, 0, 4, 0}) + 0.5);
  const auto policy = *Policy::Create(config, graph);
  const auto p = *policy->Probabilities(learner->Actor());
  REQUIRE(p[PlacementProblem::kSplitLevel] > 0.8);
  for (size_t d = 2; d < 8; d += 2) REQUIRE(p[5 * d] > 0.8);
}

TEST_CASE("saved and loaded it goes on with the same bytes; other networks are refused") {
  training::UseOneTorchThread();
  const Config config = TinyConfig();
  const ProblemGraph graph = Path(5);
  const auto one = *Learner::Create(config, {graph}, 1),
             other = *Learner::Create(config, {graph}, 2);
  REQUIRE((*one->Save() != *other->Save()));
  Rng maps_rng(4);
  const Lesson lesson = SomeMaps(graph, 8, maps_rng);
  const auto teach = [&](Learner& learner, uint64_t seed) {
    Rng rng(seed);
    for (int i = 0; i < 3; ++i) REQUIRE(learner.Update(0, lesson.maps, lesson.values, rng).ok());
  };
  teach(*one, 1);
  const std::string saved = *one->Save();
  REQUIRE(other->Load(saved).ok());
  REQUIRE(other->updates() == 3);
  teach(*one, 2);
  teach(*other, 2);
  REQUIRE((*one->Save() == *other->Save()));

  Config wider = config;
  wider.critic_hidden = 12;
  const auto third = *Learner::Create(wider, {graph}, 1);
  REQUIRE(absl::IsInvalidArgument(third->Load(saved)));
  REQUIRE(!third->Load(saved.substr(0, saved.size() / 2)).ok());
  REQUIRE(!third->Load("nonsense").ok());
  teach(*third, 1);  // still usable
}

}  // namespace
}  // namespace mallocgame::egrl
