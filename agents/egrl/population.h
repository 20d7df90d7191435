// The population: graph networks, which make a map by one forward pass, and Boltzmann chromosomes,
// which hold a preference for each level of each tensor. What a network says can become a Boltzmann
// chromosome, but not the other way round.
#pragma once

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
  std::vector<float> weights;        // of a network; empty in a Boltzmann chromosome
  std::vector<float> probabilities;  // what the network says of its graph
  std::optional<Boltzmann> genes;    // of a Boltzmann chromosome
  bool migrant = false;  // whether it is the policy gradient's actor, not yet selected or discarded

  PlacementMap map;   // the map that was graded
  double reward = 0;  // the reward of that map

  bool network() const { return !weights.empty(); }
};

// A member as bytes and back. InvalidArgument: the bytes are damaged, or of another graph or
// network.
void WriteMember(const Member& member, std::string& out);
absl::Status ReadMember(absl::string_view& in, const ProblemGraph& graph, size_t num_weights,
                        Member& member);

// What making a member needs. `policy` and `rng` belong to the thread.
struct BreedingContext {
  const Config& config;
  const PlacementProblem& problem;
  const ProblemGraph& graph;
  const Replay& known;     // the maps that were graded already
  const Learner* critics;  // choose among several maps; null to take the first new one
  Policy& policy;
  Rng& rng;
};
// Makes a member with a map that is not yet graded. The births of a generation are independent of
// each other.
using Birth = std::function<absl::StatusOr<Member>(const BreedingContext&)>;

// The network with these weights, and its most likely map.
absl::StatusOr<Member> NetworkMember(std::vector<float> weights, const BreedingContext& context);

// The map as it is graded: on a hierarchy the rectified one, so that it fits, but with a penalty.
// Where there is nothing to place it has the slowest level. A run that is not open would be Late,
// when its turn comes by importance.
PlacementMap Settled(PlacementMap map, const BreedingContext& context);

// A Boltzmann chromosome that leans towards `map`.
Member ChromosomeAt(PlacementMap map, const BreedingContext& context);

// The map of the most likely level of each decision, and a map drawn from the probabilities.
PlacementMap MostLikelyMap(const std::vector<float>& probabilities, const ProblemGraph& graph);
PlacementMap DrawMap(const std::vector<float>& probabilities, const ProblemGraph& graph, Rng& rng);

// The preferences of a member as a Boltzmann chromosome, which leans towards the member's map if
// config.redrawn says so.
Boltzmann GenesOf(const Member& member, const BreedingContext& context);

// The map with the levels of about `count` decisions drawn anew.
PlacementMap Redrawn(PlacementMap map, double count, const BreedingContext& context);

// A map near `from` that is not yet graded. The critics choose it among config.candidates redrawn
// maps, and go on from there as long as they expect more, `climbs` times at most. Without critics
// it is redrawn once.
absl::StatusOr<PlacementMap> Climbed(const PlacementMap& from, int climbs,
                                     const BreedingContext& context);

// Of config.candidates maps that `draw` makes, the one with the greatest reward in the eyes of the
// critics; known maps are left out. Without critics it is the first new map, and if all maps are
// known, the last one drawn.
absl::StatusOr<PlacementMap> ChooseMap(const BreedingContext& context,
                                       const std::function<PlacementMap()>& draw);

// Single-point crossover, and the mutation of ERL, which changes each block at a rate of its own.
std::vector<float> CrossWeights(const std::vector<float>& a, const std::vector<float>& b, Rng& rng);
void MutateWeights(const Config& config, const std::vector<WeightBlock>& blocks, Rng& rng,
                   std::vector<float>& weights);

class Population {
 public:
  struct Migrations {
    int64_t arrived = 0, elite = 0, selected = 0;
  };

  // `ancestors` are weights of networks that are among the first members.
  Population(const Config& config, std::vector<std::vector<float>> ancestors)
      : config_(config), ancestors_(std::move(ancestors)) {}

  // Chooses elites and parents, and returns the births of the next generation. `migrant` holds the
  // weights of an actor that takes one of the places, or is null. The births read the members, so
  // they must all be done before Admit is called.
  std::vector<Birth> Breed(Rng& rng, const std::vector<float>* migrant);
  // Replaces all members but the elites that Breed chose by the graded children. Guests, which were
  // made beside the population, stay if they are better than those.
  void Admit(std::vector<Member> children, std::vector<Member> guests);

  const std::vector<Member>& members() const { return members_; }  // the best first
  const Migrations& migrations() const { return migrations_; }
  const std::vector<std::vector<float>>& ancestors() const { return ancestors_; }

  void Write(std::string& out) const;
  // InvalidArgument: damaged.
  absl::Status Read(absl::string_view& in, const ProblemGraph& graph, size_t num_weights);

 private:
  std::vector<Birth> FirstBirths(Rng& rng) const;
  // The members that may be parents of a child. A network has only networks as parents.
  std::vector<size_t> Candidates(bool network) const;
  size_t Tournament(const std::vector<size_t>& candidates, Rng& rng) const;

  Config config_;
  std::vector<std::vector<float>> ancestors_;
  std::vector<Member> members_;
  std::vector<uint8_t> elite_;  // for each member, whether Breed chose it
  Migrations migrations_;
};

}  // namespace mallocgame::egrl
