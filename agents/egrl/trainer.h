// Training on one or more placement problems. Each problem has a population of graph networks and
// Boltzmann chromosomes, which goes through generations. The best map, at first a compiler's, is
// refined. Beside the populations one policy gradient (soft actor-critic) learns from the graded
// maps of all problems. Its critics choose among maps, and its actor migrates into the populations.
//
//     auto trainer = *Trainer::Create({problem}, config, seed, 0);
//     while (trainer->evaluations() < 4000) {
//       MG_ASSIGN_OR_RETURN(Progress progress, trainer->Step(nullptr));
//     }
//     const PlacementSearchResult& best = trainer->best(0);
//     MG_RETURN_IF_ERROR(WriteFile(path, *trainer->Save()));
//
// The generations depend only on the problems, the config and the seed. They do not depend on the
// number of threads, and continue the same after Save and Load.
#ifndef AGENTS_EGRL_TRAINER_H_
#define AGENTS_EGRL_TRAINER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "agents/egrl/config.h"
#include "mallocgame/placement/placement.h"
#include "mallocgame/placement/search.h"

namespace mallocgame::egrl {

using Problems = std::vector<std::shared_ptr<const PlacementProblem>>;

// What a generation did. All but the last fields are of its problem. Rewards are the squares of the
// speed-up. They are NaN where nothing was graded or learned.
struct Progress {
  int64_t generation = 0;   // of all problems
  int64_t problem = 0;      // the place of its problem among all
  int64_t evaluations = 0;  // maps graded since the start
  int64_t best_ps = 0;      // latency of the best map so far that fits; 0 if there is none yet
  double best_reward = 0;   // the reward of that map
  double fresh = 0;         // share of this generation's maps that had not been graded before

  // The number of members of the population after the generation, and the rewards of its networks,
  // of its Boltzmann chromosomes, of the policy gradient's rollouts and of the refinements.
  int gnn_members = 0, boltzmann_members = 0;
  double gnn_mean = 0, gnn_max = 0;
  double boltzmann_mean = 0, boltzmann_max = 0;
  double gradient_mean = 0, gradient_max = 0;
  double refined_mean = 0, refined_max = 0;

  // How often each found a better map than all before, since the start.
  int64_t best_by_gnn = 0, best_by_boltzmann = 0, best_by_gradient = 0, best_by_refining = 0;
  // Actors that migrated into the population since the start. The next selection made some of them
  // elites, selected some others as parents, and discarded the rest.
  int64_t migrants = 0, migrants_elite = 0, migrants_selected = 0;

  // Means over the generation's updates. A value is minus the latency over the baseline's,
  // multiplied by the setting reward_scale.
  int64_t updates = 0;        // number of updates since the start, for all problems
  double critic_loss = 0;     // mean square error of the critics' values
  double value = 0;           // value that the critics expect of the actor's map
  double entropy = 0;         // entropy of the actor in nats, mean over the real decisions
  double actor_gradient = 0;  // norm of the actor's gradient before clipping
  int64_t replay = 0;         // number of maps in the replay buffer

  double rollout_seconds = 0;  // wall time spent on making and grading maps
  double learn_seconds = 0;    // wall time spent on updates
};

// One thread at a time may use a trainer.
class Trainer {
 public:
  // With `threads` 0 there is one for each core. `ancestors` are weights of policy networks to
  // start from; the first of them become the actor's too. InvalidArgument: there is no problem, or
  // they differ in their number of levels; the settings do not go together; `threads` is outside 0
  // to 1024; or an ancestor has the wrong number of weights.
  static absl::StatusOr<std::unique_ptr<Trainer>> Create(
      Problems problems, const Config& config, uint64_t seed, int threads,
      const std::vector<std::vector<float>>& ancestors = {});
  // Continues from what Save returned, with the same problems in the same order. InvalidArgument:
  // the checkpoint is damaged, of another version of the format or the rules, or of other problems.
  // The message names what was found and what was expected.
  static absl::StatusOr<std::unique_ptr<Trainer>> Load(Problems problems, absl::string_view bytes,
                                                       int threads);
  virtual ~Trainer() = default;

  // Runs one generation of one problem; the problems take turns. Cancelled: `cancel` was set (it
  // may be null). The trainer then only gives results; to go on, load what Save returned earlier.
  absl::StatusOr<Progress> Step(const std::atomic<bool>* cancel);
  // The same, but `interrupted` says between maps and between updates whether to cancel.
  virtual absl::StatusOr<Progress> StepUnless(const std::function<bool()>& interrupted) = 0;

  // The checkpoint. FailedPrecondition: the last generation was cancelled.
  virtual absl::StatusOr<std::string> Save() const = 0;

  // Of a problem, the fastest map so far that fits; as long as there is none, the map with
  // everything in the slowest level. best_ps has one entry for each evaluation, which is 0 before
  // the first such map.
  virtual const PlacementSearchResult& best(size_t problem) const = 0;

  virtual const Problems& problems() const = 0;
  virtual const Config& config() const = 0;
  virtual uint64_t seed() const = 0;
  virtual int64_t generations() const = 0;  // number of steps done
  virtual int64_t evaluations() const = 0;  // number of maps graded, for all problems
  virtual int64_t parameters() const = 0;   // number of weights of the policy network
};

}  // namespace mallocgame::egrl

#endif  // AGENTS_EGRL_TRAINER_H_
