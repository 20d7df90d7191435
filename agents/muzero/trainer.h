// Training: iterations of self-play and learning on one or several programs, and the best plan of
// each.
//
//     auto trainer = *Trainer::Create(problems, config, seed);
//     while (...) MG_ASSIGN_OR_RETURN(Progress progress, trainer->Step(nullptr));
//     MG_RETURN_IF_ERROR(WriteFile(path, *trainer->Save()));
//
// The first step collects demonstrations, every later one is an iteration: groups of games are
// played with the networks as they were before it, while the networks learn from what was played
// before it. So the stream of iterations depends on problems, config and seed only, not on the
// number of threads, and goes on the same after Save and Load.
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
  int64_t iteration = 0;  // 0: demonstrations
  // By problem: the latency of the best plan known, and the mean return (1 - latency / all-main
  // latency) of the games that self-play finished; NaN if none.
  std::vector<int64_t> best_ps;
  std::vector<double> mean_return;
  int64_t games = 0;   // finished by self-play
  int64_t varied = 0;  // variations played
  int64_t searches = 0;
  int64_t evaluations = 0;   // positions that the networks looked at in searches
  double depth = 0;          // mean over searches: of the leaves
  double entropy = 0;        // likewise: of the improved policy, in nats
  int64_t updates = 0;       // of the networks, since the begin
  int64_t replay_steps = 0;  // decisions of recent games that are kept
  // Means over the step's updates.
  double policy_loss = 0, value_loss = 0, reward_loss = 0, consistency_loss = 0;
  double value_error = 0;  // |predicted - target|, thousandths of the baseline's latency
  double policy_entropy = 0, gradient_norm = 0, learning_rate = 0;
  double play_seconds = 0;  // summed over threads
  double learn_seconds = 0;
};

// Belongs to one thread at a time.
class Trainer {
 public:
  // InvalidArgument: no problem, settings out of range or that don't go together, hardware that
  // isn't any, or a game in which nothing is to be decided. `threads` 0: one a core.
  static absl::StatusOr<std::unique_ptr<Trainer>> Create(std::vector<TrainingProblem> problems,
                                                         const Config& config, uint64_t seed,
                                                         int threads);
  // Goes on with what Save wrote. InvalidArgument: damaged, of another version of the format or the
  // rules, or of other problems; the message names what was found and what was expected.
  static absl::StatusOr<std::unique_ptr<Trainer>> Load(std::vector<TrainingProblem> problems,
                                                       absl::string_view checkpoint, int threads);
  virtual ~Trainer() = default;

  // Cancelled by `cancel`: the trainer can then only be asked for results; what Save wrote before
  // goes on.
  virtual absl::StatusOr<Progress> Step(const std::atomic<bool>* cancel) = 0;

  virtual absl::StatusOr<std::string> Save() const = 0;

  // The best plan of problem i. FailedPrecondition before the first step.
  virtual absl::StatusOr<SolveResult> Best(size_t i) const = 0;
  // The best game that was played of problem i, in the game of the config.
  virtual absl::StatusOr<SolveResult> BestGame(size_t i) const = 0;
  // What local search over the whole plan (solvers/planning/polish_plan.h) makes of Best(i) within so much time,
  // or, with 0, within a number of changes. It is Best(i) from then on; the iterations to come are
  // the same as without.
  virtual absl::StatusOr<SolveResult> Polish(size_t i, double seconds,
                                             const std::atomic<bool>* cancel) = 0;

  virtual const Config& config() const = 0;
  virtual uint64_t seed() const = 0;
  virtual int64_t iterations() const = 0;  // steps done
  virtual const std::vector<TrainingProblem>& problems() const = 0;
  virtual int64_t parameters() const = 0;  // of the networks
};

}  // namespace mallocgame::muzero

#endif  // AGENTS_MUZERO_TRAINER_H_
