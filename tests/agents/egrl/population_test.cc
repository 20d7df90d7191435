// The population: crossover, mutation, who becomes a parent or an elite, and what is saved.
#include "agents/egrl/population.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "agents/egrl/problem_graph.h"
#include "agents/egrl/replay.h"
#include "agents/training/torch_runtime.h"
#include "tests/agents/egrl/training_problem.h"
#include "tests/catch.h"

namespace mallocgame::egrl {
namespace {

// Makes the members of generations and grades them by `reward`.
class Breeder {
 public:
  explicit Breeder(const Config& config)
      : config_(config), problem_(TinyProblem(3, 12)), graph_(MakeProblemGraph(*problem_)),
        known_(size(), 10000) {
    training::UseOneTorchThread();
    policy_ = *Policy::Create(config_, graph_);
  }

  size_t size() const { return graph_.map_size(); }
  const ProblemGraph& graph() const { return graph_; }
  const PlacementProblem& problem() const { return *problem_; }
  Policy& policy() { return *policy_; }
  Replay& known() { return known_; }
  BreedingContext context(Rng& rng) {
    return {config_, *problem_, graph_, known_, nullptr, *policy_, rng};
  }

  template <class Reward>
  void Generation(Population& population, uint64_t seed, const std::vector<float>* migrant,
                  const Reward& reward) {
    Rng rng(seed);
    std::vector<Member> children;
    for (const Birth& birth : population.Breed(rng, migrant)) {
      absl::StatusOr<Member> child = birth(context(rng));
      REQUIRE(child.ok());
      REQUIRE(child->map.size() == size());
      for (size_t i = 0; i < size(); ++i) {
        if (graph_.real[i] == 0) REQUIRE(child->map[i] == graph_.levels - 1);
      }
      child->reward = reward(*child);
      children.push_back(*std::move(child));
    }
    population.Admit(std::move(children), {});
  }

 private:
  Config config_;
  std::shared_ptr<const PlacementProblem> problem_;
  ProblemGraph graph_;
  Replay known_;
  std::unique_ptr<Policy> policy_;
};

double FastShare(const Member& member) {
  return static_cast<double>(std::count(member.map.begin(), member.map.end(), 0)) /
         static_cast<double>(member.map.size());
}

int Networks(const Population& population) {
  return static_cast<int>(std::count_if(population.members().begin(), population.members().end(),
                                        [](const Member& m) { return m.network(); }));
}

TEST_CASE("a crossing is the begin of one and the end of the other") {
  const std::vector<float> a(50, 1), b(50, 2);
  Rng rng(1);
  std::set<int64_t> cuts;
  for (int i = 0; i < 500; ++i) {
    const std::vector<float> child = CrossWeights(a, b, rng);
    REQUIRE(std::is_sorted(child.begin(), child.end()));
    cuts.insert(std::count(child.begin(), child.end(), 1));
  }
  REQUIRE(cuts.size() == 51);
}

TEST_CASE("a mutation touches no more than the share allowed, vectors seldom") {
  Config config = TinyConfig();
  config.mutated_share = 0.1;
  const std::vector<WeightBlock> blocks = {{0, 400, true}, {400, 20, false}};
  Rng rng(2);
  int matrices = 0, vectors = 0;
  for (int i = 0; i < 400; ++i) {
    std::vector<float> weights(420, 1);
    MutateWeights(config, blocks, rng, weights);
    const auto changed = [&](size_t begin, size_t end) {
      return std::count_if(weights.begin() + static_cast<ptrdiff_t>(begin),
                           weights.begin() + static_cast<ptrdiff_t>(end),
                           [](float w) { return w != 1; });
    };
    REQUIRE(changed(0, 400) <= 40);
    REQUIRE(changed(400, 420) <= 2);
    matrices += changed(0, 400) > 0;
    vectors += changed(400, 420) > 0;
  }
  REQUIRE(matrices > 200);
  REQUIRE(vectors > 0);
  REQUIRE(vectors < 60);
}

TEST_CASE("a draw follows the probabilities, the most likely map is that") {
  Breeder breeder(TinyConfig());
  const ProblemGraph& graph = breeder.graph();
  std::vector<float> p;
  for (size_t i = 0; i < breeder.size(); ++i) p.insert(p.end(), {0.2F, 0.7F, 0.1F});
  const PlacementMap likely = MostLikelyMap(p, graph);
  Rng rng(3);
  std::vector<double> counts(3);
  for (int i = 0; i < 2000; ++i) {
    const PlacementMap map = DrawMap(p, graph, rng);
    for (size_t d = 0; d < map.size(); ++d) {
      REQUIRE(likely[d] == 1);
      if (graph.real[d] > 0) counts[map[d]] += 1.0 / (2000 * graph.decisions);
    }
  }
  REQUIRE(counts[0] == Approx(0.2).margin(0.02));
  REQUIRE(counts[1] == Approx(0.7).margin(0.02));
}

TEST_CASE("both kinds are born in their shares, the best stay, fitness never falls") {
  Config config = TinyConfig();
  config.population = 20;
  config.boltzmann_share = 0.2;
  Breeder breeder(config);
  Population population(config, {});
  double best = -1;
  for (uint64_t g = 0; g < 15; ++g) {
    breeder.Generation(population, g, nullptr, FastShare);
    const auto& members = population.members();
    REQUIRE(members.size() == 20);
    REQUIRE(std::is_sorted(members.begin(), members.end(),
                           [](const Member& a, const Member& b) { return a.reward > b.reward; }));
    REQUIRE(members.front().reward >= best);
    best = members.front().reward;
    if (g == 0) REQUIRE(Networks(population) == 16);
    REQUIRE(Networks(population) > 0);
    REQUIRE(Networks(population) < 20);
  }
}

TEST_CASE("of one kind alone there is none of the other") {
  for (const double share : {0.0, 1.0}) {
    Config config = TinyConfig();
    config.boltzmann_share = share;
    Breeder breeder(config);
    Population population(config, {});
    for (uint64_t g = 0; g < 4; ++g) breeder.Generation(population, g, nullptr, FastShare);
    REQUIRE(Networks(population) == (share == 0 ? config.population : 0));
  }
}

TEST_CASE("a network seeds a chromosome that draws maps like its own") {
  Config config = TinyConfig();
  config.redrawn = 1;
  Breeder breeder(config);
  Rng rng(4);
  const auto network = NetworkMember(*breeder.policy().Initial(9), breeder.context(rng));
  REQUIRE(network.ok());
  const Boltzmann genes = GenesOf(*network, breeder.context(rng));
  double differing = 0;
  for (int i = 0; i < 300; ++i) {
    PlacementMap map;
    genes.Draw(rng, &map);
    for (size_t d = 0; d < map.size(); ++d)
      differing += breeder.graph().real[d] > 0 && map[d] != network->map[d];
  }
  REQUIRE(differing / 300 == Approx(1).margin(0.3));
}

TEST_CASE("a chromosome at a map draws maps around it, and leaves what is nothing alone") {
  Config config = TinyConfig();
  config.redrawn = 1;
  Breeder breeder(config);
  Rng rng(6);
  const BreedingContext context = breeder.context(rng);
  const PlacementMap settled = Settled(PlacementMap(breeder.size(), 1), context);
  const Member member = ChromosomeAt(PlacementMap(breeder.size(), 1), context);
  REQUIRE(!member.network());
  double differing = 0;
  for (int i = 0; i < 300; ++i) {
    PlacementMap map;
    member.genes->Draw(rng, &map);
    for (size_t d = 0; d < map.size(); ++d)
      differing += breeder.graph().real[d] > 0 && map[d] != settled[d];
  }
  REQUIRE(member.map == settled);
  for (size_t d = 0; d < breeder.size(); ++d)
    if (breeder.graph().real[d] == 0) REQUIRE(settled[d] == 2);
  REQUIRE(breeder.problem().Evaluate(settled)->moved == 0);
  REQUIRE(differing / 300 == Approx(1).margin(0.3));
}

// The share of decisions in which the children of chromosomes with this temperature have another
// level than the prior's greatest.
double Straying(const Config& config, double temperature) {
  Breeder breeder(config);
  Population population(config, {});
  Rng rng(8);
  population.Breed(rng, nullptr);
  Member parent = ChromosomeAt(PlacementMap(breeder.size(), 2), breeder.context(rng));
  std::vector<double> priors;
  for (size_t i = 0; i < breeder.size(); ++i) priors.insert(priors.end(), {0, 0, 2});
  parent.genes = Boltzmann::FromGenes(priors, std::vector<double>(breeder.size(), temperature));
  population.Admit(std::vector<Member>(config.population, parent), {});
  double strayed = 0, decisions = 0;
  for (int i = 0; i < 50; ++i) {
    for (const Birth& birth : population.Breed(rng, nullptr)) {
      const Member child = *birth(breeder.context(rng));
      for (size_t d = 0; d < breeder.size(); ++d) {
        strayed += breeder.graph().real[d] > 0 && child.map[d] != 2;
        decisions += breeder.graph().real[d] > 0;
      }
    }
  }
  return strayed / decisions;
}

TEST_CASE("as published, a chromosome's temperature says how far its children stray") {
  Config config = TinyPaperConfig();
  config.boltzmann_share = 1;
  const double cold = Straying(config, 0.05), mild = Straying(config, 1), hot = Straying(config, 2);
  CHECK(cold < 0.05);
  CHECK(mild == Approx(2 / (2 + std::exp(2))).margin(0.04));
  CHECK(hot == Approx(2 / (2 + std::exp(1))).margin(0.04));
}

TEST_CASE("guests take the places of the worst, but never the last network's") {
  Config config = TinyConfig();
  Breeder breeder(config);
  Population population(config, {});
  breeder.Generation(population, 1, nullptr, FastShare);
  const auto best = std::find_if(population.members().begin(), population.members().end(),
                                 [](const Member& m) { return m.network(); });
  const std::vector<float> weights = best->weights;
  Rng rng(7);
  std::vector<Member> children, guests;
  for (const Birth& birth : population.Breed(rng, nullptr)) {
    children.push_back(*birth(breeder.context(rng)));
    children.back().reward = -1;
  }
  for (int i = 0; i < 2 * config.population; ++i) {
    guests.push_back(ChromosomeAt(PlacementMap(breeder.size(), 0), breeder.context(rng)));
    guests.back().reward = 5;
  }
  population.Admit(std::move(children), std::move(guests));
  REQUIRE(population.members().size() == static_cast<size_t>(config.population));
  REQUIRE(Networks(population) == 1);
  REQUIRE(population.members().back().weights == weights);
  REQUIRE(population.members().front().reward == 5);
}

TEST_CASE("maps that are known are not chosen while there are others") {
  Config config = TinyConfig();
  config.candidates = 50;
  Breeder breeder(config);
  const PlacementMap one(breeder.size(), 0), other(breeder.size(), 1);
  breeder.known().Add(one, 0.5);
  Rng rng(5);
  int draws = 0;
  const auto draw = [&] { return ++draws < 3 ? one : other; };
  REQUIRE(*ChooseMap(breeder.context(rng), draw) == other);
  REQUIRE(draws == 3);
  breeder.known().Add(other, 0.5);
  REQUIRE(*ChooseMap(breeder.context(rng), draw) == other);  // there is no other
}

TEST_CASE("a migrant is counted once: as elite, as selected, or as neither") {
  Config config = TinyConfig();
  Breeder breeder(config);
  Population population(config, {});
  breeder.Generation(population, 1, nullptr, FastShare);
  const std::vector<float> actor = *breeder.policy().Initial(77);
  const auto reward = [](double of_migrants) {
    return [of_migrants](const Member& m) { return m.migrant ? of_migrants : FastShare(m); };
  };
  breeder.Generation(population, 2, &actor, reward(9));
  breeder.Generation(population, 3, nullptr, reward(0));
  REQUIRE(population.migrations().arrived == 1);
  REQUIRE(population.migrations().elite == 1);
  breeder.Generation(population, 4, &actor, reward(-9));
  breeder.Generation(population, 5, nullptr, reward(0));
  breeder.Generation(population, 6, nullptr, reward(0));
  REQUIRE(population.migrations().arrived == 2);
  REQUIRE(population.migrations().elite == 1);
  REQUIRE(population.migrations().selected <= 1);
}

TEST_CASE("the replay draws all that it holds, forgets the oldest, and reads back") {
  constexpr size_t kCapacity = 6;
  Replay replay(2, kCapacity);
  for (uint8_t i = 0; i < 9; ++i) replay.Add(std::vector<uint8_t>{i, 1}, i);
  REQUIRE(replay.size() == kCapacity);
  REQUIRE(!replay.Holds(std::vector<uint8_t>{2, 1}));
  REQUIRE(replay.Holds(std::vector<uint8_t>{3, 1}));
  const auto drawn = [](const Replay& from) {
    Rng rng(1);
    std::vector<uint8_t> maps;
    std::vector<double> rewards;
    from.Draw(200, rng, &maps, &rewards);
    for (size_t i = 0; i < 200; ++i) REQUIRE(maps[2 * i] == rewards[i]);
    return rewards;
  };
  const std::vector<double> rewards = drawn(replay);
  REQUIRE(std::set<double>(rewards.begin(), rewards.end()) == std::set<double>{3, 4, 5, 6, 7, 8});
  std::string bytes;
  replay.Write(bytes);
  Replay again(2, kCapacity);
  absl::string_view in = bytes;
  REQUIRE(again.Read(in, 10).ok());
  REQUIRE(drawn(again) == rewards);
  again.Add(std::vector<uint8_t>{9, 1}, 9);
  REQUIRE(!again.Holds(std::vector<uint8_t>{3, 1}));
  in = bytes;
  REQUIRE(!Replay(2, kCapacity).Read(in, 5).ok());  // there is no level 8 of 5
}

TEST_CASE("the best of each kind are kept only where that leaves a place for a child") {
  for (const int size : {1, 2, 3}) {
    Config config = TinyConfig();
    config.population = size;
    config.elites = 0;
    config.boltzmann_share = 0.5;
    Breeder breeder(config);
    Population population(config, {});
    for (uint64_t seed = 0; seed < 20; ++seed) {
      Rng rng(seed);
      REQUIRE(!population.Breed(rng, nullptr).empty());
      breeder.Generation(population, seed, nullptr, FastShare);
    }
  }
}

}  // namespace
}  // namespace mallocgame::egrl
