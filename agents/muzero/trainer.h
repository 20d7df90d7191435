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
#ifndef AGENTS_MUZERO_TRAINER_H_
#define AGENTS_MUZERO_TRAINER_H_

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
#include "agents/muzero/config.h"
#include "mallocgame/hardware/hardware.h"
#include "mallocgame/plan/plan.h"
#include "mallocgame/program/program.h"
#include "mallocgame/solvers/solver.h"

namespace mallocgame::muzero {

struct TrainingProblem {
  std::string name;  // as the caller knows it
  std::shared_ptr<const Program> program;
  Hardware hardware;
  std::optional<Plan> xla_plan;
};

// What a step did.
struct Progress {
  int64_t iteration = 0;  // 0 for the demonstrations
  // For each problem, the latency of the best plan known, and the mean return, which is
  // 1 - latency / all-main latency, of the games that self-play finished; NaN without such games.
  std::vector<int64_t> best_ps;
  std::vector<double> mean_return;
  int64_t games = 0;   // number of games that self-play finished
  int64_t varied = 0;  // number of variations played
  int64_t searches = 0;
  int64_t evaluations = 0;   // number of positions that the networks evaluated in searches
  double depth = 0;          // depth of the leaves, mean over the searches
  double entropy = 0;        // entropy of the improved policy in nats, mean over the searches
  int64_t updates = 0;       // number of updates since the start
  int64_t replay_steps = 0;  // number of decisions of recent games in the replay buffer
  // Means over the updates of the step.
  double policy_loss = 0, value_loss = 0, reward_loss = 0, consistency_loss = 0;
  double value_error = 0;  // |predicted - target| in thousandths of the baseline's latency
  double policy_entropy = 0, gradient_norm = 0, learning_rate = 0;
  double play_seconds = 0;   // time spent on self-play, summed over threads
  double learn_seconds = 0;  // time spent on updates
};

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

  // The checkpoint. FailedPrecondition: the last step was cancelled.
  virtual absl::StatusOr<std::string> Save() const = 0;

  // The best plan of problem i. FailedPrecondition before the first step.
  virtual absl::StatusOr<SolveResult> Best(size_t i) const = 0;
  // The best game that was played of problem i, in the game of the config. An order game may have
  // other weights of importance, or forbid the largest buffers: the one that is most promising is
  // played (demonstrations.h).
  virtual absl::StatusOr<SolveResult> BestGame(size_t i) const = 0;
  // What local search over the whole plan (solvers/planning/polish_plan.h) makes of Best(i) within
  // so much time, or, with 0, within a number of changes. It is Best(i) from then on; the
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

#endif  // AGENTS_MUZERO_TRAINER_H_
