// Training on one or several programs, by iterations of self-play and learning. It gives the best
// plan of each program.
//
//     auto trainer = *Trainer::Create(problems, config, seed, 0);
//     while (...) MG_ASSIGN_OR_RETURN(Progress progress, trainer->Step(nullptr));
//     MG_RETURN_IF_ERROR(WriteFile(path, *trainer->Save()));
//
// The first step collects demonstrations. Each later step is an iteration: groups of games are
// played with the networks as they were before it, while the networks learn from what was played
// before it. The iterations therefore depend only on the problems, the config and the seed. They do
// not depend on the number of threads, and continue the same after Save and Load.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "agents/muzero/config.h"
#include "agents/muzero/progress.h"
#include "agents/muzero/task.h"
#include "mallocgame/solvers/solver.h"

namespace mallocgame::muzero {

// One thread at a time may use a trainer.
class Trainer {
 public:
  // With `threads` 0 there is one for each core. With `tuned_from`, which another trainer's Save
  // returned, of whatever problems, the networks begin as they are there. InvalidArgument: there is
  // no problem, the settings do not go together, the hardware is not valid, a game has nothing to
  // decide, `threads` is outside 0 to 1024, or `tuned_from` is damaged or of networks that other
  // settings make.
  static absl::StatusOr<std::unique_ptr<Trainer>> Create(std::vector<TrainingProblem> problems,
                                                         const Config& config, uint64_t seed,
                                                         int threads,
                                                         absl::string_view tuned_from = {});
  // Continues from what Save returned. InvalidArgument: the checkpoint is damaged, of another
  // version of the format or the rules, or of other problems. The message names what was found and
  // what was expected.
  static absl::StatusOr<std::unique_ptr<Trainer>> Load(std::vector<TrainingProblem> problems,
                                                       absl::string_view bytes, int threads);
  virtual ~Trainer() = default;

  // Does one step. Cancelled: `cancel` was set (it may be null). The trainer then only gives
  // results; to continue, load what Save returned earlier.
  virtual absl::StatusOr<Progress> Step(const std::atomic<bool>* cancel) = 0;

  // The parts of a step, for games that actors play elsewhere (actor.h). The first step is
  // TakeDemonstrations, with what PlayDemonstrations gave for each problem. Each later step is, in
  // any order and any number, Assign a group, Take its harvest, and Learn; EndStep ends it. A group
  // may be out longer than a step. The harvest of one that is lost is had again by playing the same
  // assignment. If each group is assigned once, then config().updates are learned, and then the
  // harvests are taken in the order of the groups, the step is the same as Step's.
  //
  // An Assign goes with the Weights before it. With `most_stale`, games that networks searched
  // which were older by more updates are dropped. InvalidArgument: the bytes are damaged, or of
  // other problems; FailedPrecondition: a group is taken that isn't out.
  virtual absl::StatusOr<Progress> TakeDemonstrations(
      absl::Span<const std::string> demonstrations) = 0;
  virtual absl::StatusOr<std::string> Introduction() const = 0;  // what Actor::Create takes
  virtual absl::StatusOr<std::string> Weights() const = 0;
  virtual absl::StatusOr<std::string> Assign(int group) = 0;
  virtual absl::Status Take(int group, absl::string_view harvest,
                            std::optional<int64_t> most_stale) = 0;
  virtual absl::Status Learn(int updates, const std::atomic<bool>* cancel) = 0;
  virtual absl::StatusOr<Progress> EndStep() = 0;

  // The checkpoint. FailedPrecondition: the last step was cancelled, or has not ended.
  virtual absl::StatusOr<std::string> Save() const = 0;

  // The best plan of problem i, by both sets of prices where its program has them.
  // FailedPrecondition before the first step.
  virtual absl::StatusOr<SolveResult> Best(size_t i) const = 0;
  // The best game that was played of problem i, in the game of the config. A priority game may have
  // other weights of importance, or forbid the largest buffers: the one that is most promising is
  // played (demonstrations.h).
  virtual absl::StatusOr<SolveResult> BestGame(size_t i) const = 0;
  // What annealing the residences (search/anneal_plan.h) of Best(i) makes of it within so much
  // time, or, with 0, within a number of trials. It is Best(i) from then on; the
  // iterations to come are the same as without.
  virtual absl::StatusOr<SolveResult> Polish(size_t i, double seconds,
                                             const std::atomic<bool>* cancel) = 0;

  virtual const Config& config() const = 0;
  virtual uint64_t seed() const = 0;
  virtual int64_t iterations() const = 0;  // number of steps done
  virtual const std::vector<TrainingProblem>& problems() const = 0;
  virtual int64_t parameters() const = 0;  // number of weights of the networks
};

}  // namespace mallocgame::muzero
