#include "agents/egrl/trainer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "agents/egrl/checkpoint.h"
#include "agents/egrl/evolution.h"
#include "agents/egrl/learner.h"
#include "agents/egrl/policy.h"
#include "agents/egrl/population.h"
#include "agents/egrl/problem_graph.h"
#include "agents/training/bytes.h"
#include "agents/training/stopwatch.h"
#include "agents/training/threads.h"
#include "agents/training/torch_runtime.h"
#include "mallocgame/base/error.h"
#include "mallocgame/base/worker_pool.h"

namespace mallocgame::egrl {
namespace {

using training::CutShort;
using training::ReadBytes;
using training::Stopwatch;
using training::WriteBytes;

// Streams of random numbers that are drawn from the trainer's seed.
enum Stream : uint64_t { kNetworkStream = 1, kGenerationStream };

class EgrlTrainer final : public Trainer {
 public:
  EgrlTrainer(Problems problems, const Config& config, uint64_t seed, int threads)
      : problems_(std::move(problems)), config_(config), seed_(seed),
        pool_(training::ThreadsOrCores(threads)), networks_{config, {}, {}} {}

  absl::Status Initialise(const std::vector<std::vector<float>>& ancestors) {
    std::vector<ProblemGraph> graphs;
    for (const auto& problem : problems_) {
      MG_ASSIGN_OR_RETURN(auto evolution, Evolution::Create(*problem, config_, pool_, ancestors));
      graphs.push_back(evolution->graph());
      evolutions_.push_back(std::move(evolution));
    }
    if (!config_.gradient) return absl::OkStatus();
    MG_ASSIGN_OR_RETURN(learner_,
                        Learner::Create(config_, graphs, MixSeeds(seed_, kNetworkStream)));
    if (!ancestors.empty()) learner_->SetActor(ancestors[0]);
    BeginRound();
    return absl::OkStatus();
  }

  absl::StatusOr<Progress> StepUnless(const std::function<bool()>& interrupted,
                                      const std::string* harvest) override {
    MG_RETURN_IF_ERROR(CheckWhole("go on from a checkpoint"));
    broken_ = true;
    training::UseOneTorchThread();
    const Stopwatch watch;
    const size_t turn = Turn();
    Evolution& evolution = *evolutions_[turn];
    const uint64_t seed = SeedOf(turn);
    Progress progress;
    const int64_t before = evolution.best().evaluations;
    MG_RETURN_IF_ERROR(evolution.Generate(networks_, seed, interrupted, harvest, progress));
    progress.rollout_seconds = watch.seconds();
    if (evolution.Learning()) {
      const auto updates = [this](int64_t maps) {
        return static_cast<int64_t>(config_.updates * static_cast<double>(maps));
      };
      MG_RETURN_IF_ERROR(Learn(turn, updates(evolution.best().evaluations) - updates(before),
                               MixSeeds(seed, kLearningStream), interrupted, progress));
    }
    progress.learn_seconds = watch.seconds() - progress.rollout_seconds;
    progress.generation = generations_++;
    progress.problem = static_cast<int64_t>(turn);
    progress.updates = learner_ == nullptr ? 0 : learner_->updates();
    evolution.Describe(progress);
    if (Turn() == 0) BeginRound();
    broken_ = false;
    return progress;
  }

  std::string Weights() const override {
    std::string out;
    training::WriteField(networks_, out);
    return out;
  }

  absl::StatusOr<std::string> Assign(size_t problem) const override {
    MG_RETURN_IF_ERROR(CheckWhole("go on from a checkpoint"));
    if (problem < Turn() || problem >= evolutions_.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("egrl: problem: found ", problem, ", allowed: ", Turn(), " to ",
                       evolutions_.size() - 1, ", which have not had their turn in this round"));
    }
    return evolutions_[problem]->Assign(SeedOf(problem));
  }

  absl::StatusOr<std::string> Save() const override {
    MG_RETURN_IF_ERROR(CheckWhole("there is nothing to save"));
    Checkpoint checkpoint;
    checkpoint.name = absl::StrJoin(problems_, ", ", [](std::string* out, const auto& problem) {
      absl::StrAppend(out, problem->program().name());
    });
    checkpoint.fingerprint = FingerprintOf(problems_);
    checkpoint.levels = problems_[0]->levels();
    checkpoint.config = config_;
    checkpoint.seed = seed_;
    checkpoint.generations = generations_;
    checkpoint.evaluations = evaluations();
    if (learner_ != nullptr) {
      checkpoint.actor = learner_->Actor();
      checkpoint.critics = learner_->Critics();
    }
    const auto& members = evolutions_[0]->population().members();
    const auto best_network =
        std::find_if(members.begin(), members.end(), [](const Member& m) { return m.network(); });
    if (best_network != members.end()) checkpoint.best_network = best_network->weights;
    std::string& out = checkpoint.training;
    if (learner_ != nullptr) {
      MG_ASSIGN_OR_RETURN(const std::string learned, learner_->Save());
      WriteBytes(learned, out);
    }
    for (const auto& evolution : evolutions_) evolution->Write(out);
    if (Turn() > 0) {
      WriteBytes(networks_.actor, out);
      WriteBytes(networks_.critics, out);
    }
    return training::PackCheckpoint(checkpoint);
  }

  absl::Status Restore(const Checkpoint& checkpoint) {
    absl::string_view in = checkpoint.training;
    if (learner_ != nullptr) {
      absl::string_view learned;
      MG_RETURN_IF_ERROR(ReadBytes(in, learned));
      MG_RETURN_IF_ERROR(learner_->Load(learned));
    }
    for (const auto& evolution : evolutions_) MG_RETURN_IF_ERROR(evolution->Read(in));
    if (checkpoint.generations < 0) return CutShort();
    generations_ = checkpoint.generations;
    if (Turn() > 0) {
      MG_RETURN_IF_ERROR(ReadBytes(in, networks_.actor));
      MG_RETURN_IF_ERROR(ReadBytes(in, networks_.critics));
      MG_RETURN_IF_ERROR(Evolution::CheckSizes(networks_, evolutions_[0]->graph()));
    } else {
      BeginRound();
    }
    return in.empty() ? absl::OkStatus() : CutShort();
  }

  const PlacementSearchResult& best(size_t problem) const override {
    return evolutions_[problem]->best();
  }
  const Problems& problems() const override { return problems_; }
  const Config& config() const override { return config_; }
  uint64_t seed() const override { return seed_; }
  int64_t generations() const override { return generations_; }
  int64_t evaluations() const override {
    int64_t sum = 0;
    for (const auto& evolution : evolutions_) sum += evolution->best().evaluations;
    return sum;
  }
  int64_t parameters() const override {
    return static_cast<int64_t>(evolutions_[0]->num_weights());
  }

 private:
  absl::Status CheckWhole(absl::string_view so) const {
    if (!broken_) return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrCat("egrl: the last generation was cancelled; ", so));
  }

  // Whose generation the next step runs.
  size_t Turn() const { return static_cast<size_t>(generations_) % problems_.size(); }
  // The seed of a problem's generation in this round.
  uint64_t SeedOf(size_t problem) const {
    const auto generation = static_cast<uint64_t>(generations_) - Turn() + problem;
    return MixSeeds(MixSeeds(seed_, kGenerationStream), generation);
  }

  void BeginRound() {
    if (learner_ == nullptr) return;
    networks_.actor = learner_->Actor();
    networks_.critics = learner_->Critics();
  }

  absl::Status Learn(size_t turn, int64_t updates, uint64_t seed,
                     const std::function<bool()>& interrupted, Progress& progress) {
    Rng rng(seed);
    const auto share = 1 / static_cast<double>(std::max<int64_t>(1, updates));
    for (int64_t update = 0; update < updates; ++update) {
      if (interrupted()) return absl::CancelledError("egrl: cancelled");
      std::vector<uint8_t> maps;
      std::vector<double> values;
      evolutions_[turn]->replay().Draw(config_.batch, rng, &maps, &values);
      MG_ASSIGN_OR_RETURN(const Losses losses, learner_->Update(turn, maps, values, rng));
      progress.critic_loss += share * losses.critic;
      progress.value += share * losses.value;
      progress.entropy += share * losses.entropy;
      progress.actor_gradient += share * losses.actor_gradient;
    }
    return absl::OkStatus();
  }

  Problems problems_;
  Config config_;
  uint64_t seed_;
  WorkerPool pool_;
  std::vector<std::unique_ptr<Evolution>> evolutions_;  // one for each problem
  std::unique_ptr<Learner> learner_;                    // null without gradient
  RoundNetworks networks_;                              // as they were when the round began
  int64_t generations_ = 0;
  bool broken_ = false;  // a generation was cancelled halfway
};

// A few damaged bytes must not make networks of gigabytes. Networks of the default settings are
// made for any checkpoint, because a population without networks saves none.
absl::Status CheckNetworks(const Checkpoint& checkpoint, const ProblemGraph& graph) {
  const Config& config = checkpoint.config;
  if (config.gradient) return Learner::CheckSize(config, graph, checkpoint.training);
  const size_t found = checkpoint.best_network.size(), most = Policy::NumWeights({}, graph),
               expected = Policy::NumWeights(config, graph);
  if (expected <= std::max(found, most)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("egrl: the checkpoint has a network of ", found,
                                                 " weights, expected ", expected));
}

absl::Status CheckLevels(const Problems& problems) {
  if (problems.empty())
    return absl::InvalidArgumentError("egrl: problems: found none, allowed: one or more");
  for (const auto& problem : problems) {
    const int found = problem->levels(), first = problems[0]->levels();
    if (problem->graph().of_runs() != problems[0]->graph().of_runs()) {
      return absl::InvalidArgumentError(
          absl::StrCat("egrl: problems: found ", problem->program().name(),
                       " beside the first one, allowed: all on priority games or none"));
    }
    if (found == first) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("egrl: problems: found ", problem->program().name(), " with ", found,
                     " levels of memory, allowed: ", first, " as the first has"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<EgrlTrainer>> Make(
    Problems problems, const Config& config, uint64_t seed, int threads,
    const std::vector<std::vector<float>>& ancestors) {
  MG_RETURN_IF_ERROR(training::CheckThreads("egrl", threads));
  MG_RETURN_IF_ERROR(Check(config));
  MG_RETURN_IF_ERROR(CheckLevels(problems));
  auto trainer = std::make_unique<EgrlTrainer>(std::move(problems), config, seed, threads);
  MG_RETURN_IF_ERROR(trainer->Initialise(ancestors));
  return trainer;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Trainer>> Trainer::Create(
    Problems problems, const Config& config, uint64_t seed, int threads,
    const std::vector<std::vector<float>>& ancestors) {
  return Make(std::move(problems), config, seed, threads, ancestors);
}

absl::StatusOr<std::unique_ptr<Trainer>> Trainer::Load(Problems problems, absl::string_view bytes,
                                                       int threads) {
  MG_ASSIGN_OR_RETURN(const Checkpoint checkpoint, training::UnpackCheckpoint<Checkpoint>(bytes));
  MG_RETURN_IF_ERROR(CheckLevels(problems));
  if (const std::string expected = FingerprintOf(problems); checkpoint.fingerprint != expected) {
    return absl::InvalidArgumentError(absl::StrCat("the checkpoint is of another problem: found ",
                                                   checkpoint.name, " (", checkpoint.fingerprint,
                                                   "), expected (", expected, ")"));
  }
  MG_RETURN_IF_ERROR(CheckNetworks(checkpoint, MakeProblemGraph(*problems[0])));
  MG_ASSIGN_OR_RETURN(auto trainer,
                      Make(std::move(problems), checkpoint.config, checkpoint.seed, threads, {}));
  MG_RETURN_IF_ERROR(trainer->Restore(checkpoint));
  return trainer;
}

absl::StatusOr<Progress> Trainer::Step(const std::atomic<bool>* cancel,
                                       const std::string* harvest) {
  return StepUnless(
      [cancel] { return cancel != nullptr && cancel->load(std::memory_order_relaxed); }, harvest);
}

}  // namespace mallocgame::egrl
