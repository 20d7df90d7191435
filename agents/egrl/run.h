// One training: what Trainer is, and what the solver needs beside it. Private to the folder.
#ifndef AGENTS_EGRL_RUN_H_
#define AGENTS_EGRL_RUN_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agents/egrl/checkpoint.h"
#include "agents/egrl/learner.h"
#include "agents/egrl/policy.h"
#include "agents/egrl/population.h"
#include "agents/egrl/problem_graph.h"
#include "agents/egrl/replay.h"
#include "agents/egrl/trainer.h"
#include "mallocgame/base/worker_pool.h"

namespace mallocgame::egrl {

// The fastest map of those that fit, evaluation by evaluation.
class Champion {
 public:
  explicit Champion(const PlacementProblem& problem);
  // Whether it is better than all before.
  bool Offer(const PlacementProblem& problem, const PlacementMap& map,
             const PlacementOutcome& outcome);
  const PlacementSearchResult& result() const { return result_; }
  // As it was once; it must be a map of the problem.
  void Restore(const PlacementProblem& problem, PlacementMap map, std::vector<int64_t> best_ps);

 private:
  PlacementSearchResult result_;
};

class Run final : public Trainer {
 public:
  // `ancestors`: weights of policy networks to begin with; the first is the actor's.
  static absl::StatusOr<std::unique_ptr<Run>> Create(
      std::shared_ptr<const PlacementProblem> problem, std::string name, const Config& config,
      uint64_t seed, int threads, std::vector<std::vector<float>> ancestors);
  absl::Status Restore(const Checkpoint& checkpoint);

  absl::StatusOr<Progress> Step(const std::atomic<bool>* cancel) override;
  // Looks at `interrupted` between maps and between updates; Cancelled if it is.
  absl::StatusOr<Progress> StepUnless(const std::function<bool()>& interrupted);
  absl::StatusOr<std::string> Save() const override;

  const PlacementSearchResult& best() const override { return champion_.result(); }
  const PlacementProblem& problem() const override { return *problem_; }
  const std::string& name() const override { return name_; }
  const Config& config() const override { return config_; }
  uint64_t seed() const override { return seed_; }
  int64_t generations() const override { return generations_; }
  int64_t parameters() const override { return static_cast<int64_t>(policies_[0]->num_weights()); }

 private:
  // Who makes a map. kCompiler: the compiler, and whoever refines its map as long as exploring has
  // found none better. Nobody learns from those, and they join no population: it would gather
  // around them.
  enum class Source { kPopulation, kGradient, kRefining, kCompiler };
  struct Task {
    Source source;
    Birth birth;
  };
  struct Graded {
    absl::StatusOr<Member> member;
    PlacementOutcome outcome;
  };
  struct Explored {
    PlacementMap map;
    double reward;
  };
  struct Contributions {
    int64_t gnn = 0, boltzmann = 0, gradient = 0, refining = 0;
  };

  Run(std::shared_ptr<const PlacementProblem> problem, std::string name, const Config& config,
      uint64_t seed, int threads, std::vector<std::vector<float>> ancestors);
  absl::Status Initialise(const std::vector<std::vector<float>>& ancestors);

  bool learning() const {
    return learner_ != nullptr && replay_.size() >= static_cast<size_t>(config_.warmup);
  }
  // Of the next generation; they read `actor`, the policy gradient's weights.
  std::vector<Task> TasksOf(Rng& rng, const std::vector<float>& actor);
  Birth Rollout(const std::vector<float>& actor) const;
  Task Baseline() const;
  Birth Refinement() const;
  Birth CompilersRefinement() const;
  // A map near `from` that fits.
  absl::StatusOr<PlacementMap> Refined(const PlacementMap& from, const Nursery& nursery) const;
  absl::Status Grade(const std::vector<Task>& tasks, uint64_t seed,
                     const std::function<bool()>& interrupted, std::vector<Graded>& graded);
  int64_t& ContributionOf(Source source, const Member& member);
  void Take(const std::vector<Task>& tasks, std::vector<Graded>& graded, Progress& progress);
  absl::Status Learn(int64_t updates, uint64_t seed, const std::function<bool()>& interrupted,
                     Progress& progress);
  void Describe(Progress& progress) const;

  std::shared_ptr<const PlacementProblem> problem_;
  std::string name_;
  Config config_;
  uint64_t seed_;
  WorkerPool pool_;
  ProblemGraph graph_;
  std::vector<std::unique_ptr<Policy>> policies_;  // one a thread
  std::unique_ptr<Learner> learner_;               // null without gradient
  Population population_;
  Replay replay_;
  Replay compilers_;  // of Source::kCompiler
  Champion champion_;
  Explored explored_;  // the best map that is not of Source::kCompiler
  Contributions contributions_;
  int64_t generations_ = 0;
  bool broken_ = false;
};

}  // namespace mallocgame::egrl

#endif  // AGENTS_EGRL_RUN_H_
