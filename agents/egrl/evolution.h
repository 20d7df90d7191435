// The part of training that belongs to one problem: its population, the maps that were graded, and
// the best of them. A generation is a function of that, of the round's networks, and of a seed. So
// a copy of it elsewhere can make and grade the maps of a generation (Harvest), and this one takes
// them as if they had been made here:
//
//     const std::string assignment = evolution->Assign(seed);
//     MG_ASSIGN_OR_RETURN(const std::string harvest,  // on any machine
//                         Evolution::Harvest(problem, weights, assignment, 1, never));
//     MG_RETURN_IF_ERROR(evolution->Generate(networks, seed, never, &harvest, progress));
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "agents/egrl/config.h"
#include "agents/egrl/learner.h"
#include "agents/egrl/policy.h"
#include "agents/egrl/population.h"
#include "agents/egrl/problem_graph.h"
#include "agents/egrl/progress.h"
#include "agents/egrl/replay.h"
#include "mallocgame/base/worker_pool.h"
#include "mallocgame/placement/best_map.h"
#include "mallocgame/placement/placement.h"

namespace mallocgame::egrl {

// Streams of random numbers that are drawn from the seed of a generation. The births have the
// numbers that follow.
enum GenerationStream : uint64_t { kBreedingStream, kLearningStream, kBirthStream };

// The networks that make and choose the maps of a round, in which each problem has a generation.
struct RoundNetworks {
  Config config;
  std::vector<float> actor, critics;  // weights; empty without the policy gradient

  template <class Self>
  static auto Fields(Self& self) {
    return std::tie(self.config, self.actor, self.critics);
  }
};

// One thread at a time may use an evolution, which uses those of the pool.
class Evolution {
 public:
  // `ancestors` are weights of networks that are among the first members. `problem` and `pool` must
  // outlive it. InvalidArgument: an ancestor has the wrong number of weights. Internal: Torch
  // reports an error.
  static absl::StatusOr<std::unique_ptr<Evolution>> Create(
      const PlacementProblem& problem, const Config& config, WorkerPool& pool,
      const std::vector<std::vector<float>>& ancestors);

  // Makes and grades the maps of a generation, and selects from them. With a `harvest`, which
  // Harvest made of the same networks and seed, the maps are those. `interrupted` says between maps
  // whether to cancel. InvalidArgument: the harvest is damaged, or of another generation. After an
  // error only the best map is of use.
  absl::Status Generate(const RoundNetworks& networks, uint64_t seed,
                        const std::function<bool()>& interrupted, const std::string* harvest,
                        Progress& progress);
  // What Harvest needs to know of this problem for the generation that Generate would make.
  std::string Assign(uint64_t seed) const;
  // Makes and grades the maps of a generation of `problem`, for Generate. They do not depend on
  // `threads`, but another kind of processor may round otherwise. `networks` is what
  // Trainer::Weights returned. InvalidArgument: the bytes are damaged, or of another problem;
  // `threads` is outside 0 to 1024. Cancelled: `interrupted` said so.
  static absl::StatusOr<std::string> Harvest(const PlacementProblem& problem,
                                             absl::string_view networks,
                                             absl::string_view assignment, int threads,
                                             const std::function<bool()>& interrupted);

  // InvalidArgument: the networks do not have the weights that the settings ask for.
  static absl::Status CheckSizes(const RoundNetworks& networks, const ProblemGraph& graph);

  // Whether the replay buffer has enough maps to learn from.
  bool Learning() const;
  // Fills in what a generation's progress says of the problem since the start.
  void Describe(Progress& progress) const;

  const ProblemGraph& graph() const { return graph_; }
  const Population& population() const { return population_; }
  const Replay& replay() const { return replay_; }
  const PlacementSearchResult& best() const { return best_.result(); }
  size_t num_weights() const { return policies_[0]->num_weights(); }

  void Write(std::string& out) const;
  // InvalidArgument: damaged.
  absl::Status Read(absl::string_view& in);

 private:
  // Who makes a map.
  enum class Source { kPopulation, kGradient, kRefining };
  // A map of the next generation that is yet to be made.
  struct PlannedMap {
    Source source;
    Birth birth;
  };
  struct GradedMap {
    Member member;
    PlacementOutcome outcome;
  };
  // How often each kind of player found a better map than all before.
  struct Contributions {
    int64_t gnn = 0, boltzmann = 0, gradient = 0, refining = 0;
    int64_t& Of(Source source, const Member& member);
  };

  Evolution(const PlacementProblem& problem, const Config& config, WorkerPool& pool,
            const std::vector<std::vector<float>>& ancestors);

  // The maps that the generation grades. They read `actor`.
  std::vector<PlannedMap> Plan(uint64_t seed, const std::vector<float>& actor);
  Birth Refinement() const;
  absl::StatusOr<std::vector<GradedMap>> Grade(const std::vector<PlannedMap>& planned,
                                               const RoundNetworks& networks, uint64_t seed,
                                               const std::function<bool()>& interrupted);
  absl::StatusOr<std::vector<GradedMap>> ReadHarvest(absl::string_view harvest, uint64_t seed,
                                                     size_t expected) const;
  void Take(const std::vector<PlannedMap>& planned, std::vector<GradedMap> graded,
            Progress& progress);

  const PlacementProblem& problem_;
  Config config_;
  WorkerPool& pool_;
  ProblemGraph graph_;
  std::vector<std::unique_ptr<Policy>> policies_;  // one for each thread
  std::unique_ptr<Learner> critics_;               // null without the policy gradient
  Population population_;
  Replay replay_;
  BestMap best_;
  Contributions contributions_;
  int64_t generations_ = 0;
};

}  // namespace mallocgame::egrl
