// The population: graph networks, which say a map by one forward pass, and Boltzmann chromosomes,
// which hold for every tensor what they think of each level. What a network says can become a
// Boltzmann chromosome, never the other way.
#ifndef AGENTS_EGRL_POPULATION_H_
#define AGENTS_EGRL_POPULATION_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "agents/egrl/config.h"
#include "agents/egrl/learner.h"
#include "agents/egrl/policy.h"
#include "agents/egrl/problem_graph.h"
#include "agents/egrl/replay.h"
#include "mallocgame/base/rng.h"
#include "mallocgame/placement/boltzmann.h"
#include "mallocgame/placement/placement.h"

namespace mallocgame::egrl {

struct Member {
  std::vector<float> weights;        // of a network; empty: a Boltzmann chromosome
  std::vector<float> probabilities;  // that the network says
  std::optional<Boltzmann> genes;
  bool migrant = false;  // the policy gradient's actor, not yet selected or discarded

  PlacementMap map;  // that it was graded by
  double reward = 0;

  bool network() const { return !weights.empty(); }
};

// What a birth needs; `policy` and `rng` are the thread's own.
struct Nursery {
  const Config& config;
  const ProblemGraph& graph;
  const Replay& known;
  const Learner* critics;  // that choose among several maps; null: the first new one is taken
  Policy& policy;
  Rng& rng;
};
// Makes a member with its map, as yet ungraded. Births of one generation are independent of each
// other.
using Birth = std::function<absl::StatusOr<Member>(const Nursery&)>;

// The network with these weights, and its most likely map.
absl::StatusOr<Member> NetworkMember(std::vector<float> weights, Policy& policy,
                                     const ProblemGraph& graph);

// A Boltzmann chromosome that leans towards `map`.
Member ChromosomeAt(PlacementMap map, const Nursery& nursery);

// The most likely level of each decision; decisions of nothing are in the slowest level. Likewise a
// map drawn.
PlacementMap MostLikelyMap(const std::vector<float>& probabilities, const ProblemGraph& graph);
PlacementMap DrawMap(const std::vector<float>& probabilities, const ProblemGraph& graph, Rng& rng);

// What a member thinks of every tensor, as a Boltzmann chromosome that leans towards its map.
Boltzmann GenesOf(const Member& member, const Nursery& nursery);

// Of config.candidates maps that `draw` makes the one that the critics expect most of, known ones
// left out; without critics, or if all are known, the last one drawn.
absl::StatusOr<PlacementMap> ChooseMap(const Nursery& nursery,
                                       const std::function<PlacementMap()>& draw);

// Single-point crossover; ERL's mutation, in which each block is touched at a rate of its own.
std::vector<float> CrossWeights(const std::vector<float>& a, const std::vector<float>& b, Rng& rng);
void MutateWeights(const Config& config, const std::vector<WeightBlock>& blocks, Rng& rng,
                   std::vector<float>& weights);

class Population {
 public:
  struct Migrations {
    int64_t arrived = 0, elite = 0, selected = 0;
  };

  // `ancestors`: weights of networks that are among the first.
  Population(const Config& config, std::vector<std::vector<float>> ancestors)
      : config_(config), ancestors_(std::move(ancestors)) {}

  // The births of the next generation; `migrant`, if any, are the weights of an actor that takes
  // one of the places. The births read the members: they must have happened when Admit is called.
  std::vector<Birth> Conceive(Rng& rng, const std::vector<float>* migrant);
  // The graded children replace all members but the elites that Conceive chose; of those and
  // `guests` the best stay.
  void Admit(std::vector<Member> children, std::vector<Member> guests);

  const std::vector<Member>& members() const { return members_; }  // the best first
  const Migrations& migrations() const { return migrations_; }

  void Write(std::string& out) const;
  // InvalidArgument: damaged.
  absl::Status Read(absl::string_view& in, const ProblemGraph& graph, size_t num_weights);

 private:
  std::vector<Birth> FirstBirths(Rng& rng) const;
  // The members that a child may have as parents: of a network, networks.
  std::vector<size_t> Candidates(bool network) const;
  size_t Tournament(const std::vector<size_t>& candidates, Rng& rng) const;

  Config config_;
  std::vector<std::vector<float>> ancestors_;
  std::vector<Member> members_;
  std::vector<uint8_t> elite_;  // one a member, once Conceive has chosen
  Migrations migrations_;
};

}  // namespace mallocgame::egrl

#endif  // AGENTS_EGRL_POPULATION_H_
