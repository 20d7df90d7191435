// Training on one or more placement problems. Each problem has a population of graph networks and
// Boltzmann chromosomes, which goes through generations. The best map, at first a compiler's, is
// refined. Beside the populations one policy gradient (soft actor-critic) learns from the graded
// maps of all problems. Its critics choose among maps, and its actor migrates into the populations.
//
// In a round each problem has a generation, after which the policy gradient learns from its maps.
// All maps of a round are made with the networks as they were when it began. So the generations of
// a round can be made at the same time, and on other machines.
//
//     auto trainer = *Trainer::Create({problem}, config, seed, 0);
//     while (trainer->evaluations() < 4000) {
//       MG_ASSIGN_OR_RETURN(Progress progress, trainer->Step(nullptr));
//     }
//     const PlacementSearchResult& best = trainer->best(0);
//     MG_RETURN_IF_ERROR(WriteFile(path, *trainer->Save()));
//
// The generations depend only on the problems, the config and the seed. They do not depend on the
// number of threads or on where they are made, and continue the same after Save and Load.
#pragma once

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
#include "agents/egrl/progress.h"
#include "mallocgame/placement/placement.h"
#include "mallocgame/placement/search.h"

namespace mallocgame::egrl {

using Problems = std::vector<std::shared_ptr<const PlacementProblem>>;

// One thread at a time may use a trainer.
class Trainer {
 public:
  // With `threads` 0 there is one for each core. `ancestors` are weights of policy networks to
  // start from; the first of them become the actor's too. InvalidArgument: there is no problem;
  // they differ in their number of levels, or only some are on priority games; the settings do not
  // go together; `threads` is outside 0 to 1024; or an ancestor has the wrong number of weights.
  static absl::StatusOr<std::unique_ptr<Trainer>> Create(
      Problems problems, const Config& config, uint64_t seed, int threads,
      const std::vector<std::vector<float>>& ancestors = {});
  // Continues from what Save returned, with the same problems in the same order. InvalidArgument:
  // the checkpoint is damaged, of another version of the format or the rules, or of other problems.
  // The message names what was found and what was expected.
  static absl::StatusOr<std::unique_ptr<Trainer>> Load(Problems problems, absl::string_view bytes,
                                                       int threads);
  virtual ~Trainer() = default;

  // Runs one generation of one problem; the problems take turns. With a `harvest` it learns from
  // maps that Evolution::Harvest has made, instead of making them. Cancelled: `cancel` was set (it
  // may be null). InvalidArgument: the harvest is damaged, or of another generation. After an error
  // the trainer only gives results; to go on, load what Save returned earlier.
  absl::StatusOr<Progress> Step(const std::atomic<bool>* cancel,
                                const std::string* harvest = nullptr);
  // The same, but `interrupted` says between maps and between updates whether to cancel.
  virtual absl::StatusOr<Progress> StepUnless(const std::function<bool()>& interrupted,
                                              const std::string* harvest) = 0;

  // What Evolution::Harvest takes: the networks of this round, and the assignment of a problem.
  // InvalidArgument: the problem has had its turn in this round, or there is no such problem.
  // FailedPrecondition: the last generation was cancelled.
  virtual std::string Weights() const = 0;
  virtual absl::StatusOr<std::string> Assign(size_t problem) const = 0;

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
