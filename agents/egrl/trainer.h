// Training on one placement problem: generations of a population of graph networks and Boltzmann
// chromosomes, with a policy gradient (SAC) beside it that learns from what was graded and migrates
// into the population, and refinements of the best map, at first of the compiler's.
//
//     auto trainer = *Trainer::Create(problem, "resnet50_b1.tpu_v4i", config, seed, 0); while
//     (trainer->evaluations() < 4000) MG_ASSIGN_OR_RETURN(Progress progress,
//     trainer->Step(nullptr)); const PlacementSearchResult& best = trainer->best();
//     MG_RETURN_IF_ERROR(WriteFile(path, *trainer->Save()));
//
// The stream of generations depends on problem, config and seed only, not on the number of threads,
// and goes on the same after Save and Load.
#ifndef AGENTS_EGRL_TRAINER_H_
#define AGENTS_EGRL_TRAINER_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "agents/egrl/config.h"
#include "mallocgame/placement/placement.h"
#include "mallocgame/placement/search.h"

namespace mallocgame::egrl {

// What a generation did. Rewards are the problem's (minus the share of bytes moved, or the square
// of the speed-up); NaN where nothing was graded or learned.
struct Progress {
  int64_t generation = 0;
  int64_t evaluations = 0;  // maps graded since the begin
  int64_t best_ps = 0;      // of the best map ever that fits; 0: none yet
  double best_reward = 0;   // its reward
  double valid = 0;         // share of this generation's maps that fit
  double fresh = 0;         // share of this generation's maps that had not been graded before

  // The population behind the generation, and what the policy gradient's rollouts and the maps near
  // the best one got.
  int gnn_members = 0, boltzmann_members = 0;
  double gnn_mean = 0, gnn_max = 0;
  double boltzmann_mean = 0, boltzmann_max = 0;
  double gradient_mean = 0, gradient_max = 0;
  double refined_mean = 0, refined_max = 0;

  // Since the begin: how often a better map was found, by whom.
  int64_t best_by_gnn = 0, best_by_boltzmann = 0, best_by_gradient = 0, best_by_refining = 0;
  // Since the begin: actors that migrated into the population, and of those how many the next
  // selection made elites, or parents without that. The others went.
  int64_t migrants = 0, migrants_elite = 0, migrants_selected = 0;

  // Means over the generation's updates. The critics' error and value are of rewards times
  // reward_scale.
  int64_t updates = 0;        // since the begin
  double critic_loss = 0;     // mean square
  double value = 0;           // what the critics expect of the actor's map
  double entropy = 0;         // of the actor, in nats, mean over the real decisions
  double actor_gradient = 0;  // norm, before clipping
  int64_t replay = 0;         // maps kept

  double rollout_seconds = 0;  // wall time
  double learn_seconds = 0;
};

// Belongs to one thread at a time.
class Trainer {
 public:
  // `name`: of the problem, as the caller knows it. `threads` 0: one a core. InvalidArgument:
  // settings that don't go together, threads outside 0 to 1024.
  static absl::StatusOr<std::unique_ptr<Trainer>> Create(
      std::shared_ptr<const PlacementProblem> problem, std::string name, const Config& config,
      uint64_t seed, int threads);
  // Goes on with what Save wrote. InvalidArgument: damaged, of another version of the format or the
  // rules, or of another problem; the message names what was found and what was expected.
  static absl::StatusOr<std::unique_ptr<Trainer>> Load(
      std::shared_ptr<const PlacementProblem> problem, absl::string_view checkpoint, int threads);
  virtual ~Trainer() = default;

  // One generation. Cancelled by `cancel`: the trainer can then only be asked for results; what
  // Save wrote before goes on.
  virtual absl::StatusOr<Progress> Step(const std::atomic<bool>* cancel) = 0;

  virtual absl::StatusOr<std::string> Save() const = 0;

  // The fastest map so far of those that fit, as searches give it: the all-slowest one if there was
  // none. All zeros of best_ps: none yet.
  virtual const PlacementSearchResult& best() const = 0;

  virtual const PlacementProblem& problem() const = 0;
  virtual const std::string& name() const = 0;
  virtual const Config& config() const = 0;
  virtual uint64_t seed() const = 0;
  virtual int64_t generations() const = 0;  // steps done
  int64_t evaluations() const { return best().evaluations; }
  virtual int64_t parameters() const = 0;  // of the policy network
};

}  // namespace mallocgame::egrl

#endif  // AGENTS_EGRL_TRAINER_H_
