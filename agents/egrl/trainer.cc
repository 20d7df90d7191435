#include "agents/egrl/trainer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agents/egrl/best_map.h"
#include "agents/egrl/checkpoint.h"
#include "agents/egrl/learner.h"
#include "agents/egrl/policy.h"
#include "agents/egrl/population.h"
#include "agents/egrl/problem_graph.h"
#include "agents/egrl/replay.h"
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
// Streams that are drawn from the seed of a generation. The births have the numbers that follow.
enum : uint64_t { kBreedingStream, kLearningStream, kBirthStream };

// Share of the refinements that refine the best explored map, where the compiler's is better.
constexpr double kExploredShare = 0.5;

// Draws the levels of about `redrawn` tensors anew.
void Redraw(const ProblemGraph& graph, double redrawn, Rng& rng, PlacementMap& map) {
  const double share = std::min(1.0, redrawn / graph.decisions);
  for (size_t i = 0; i < map.size(); ++i) {
    if (graph.real[i] == 0 || rng.Uniform() >= share) continue;
    map[i] = static_cast<uint8_t>(rng.Below(graph.levels));
  }
}

// Mean and maximum of numbers; NaN where there is none.
class Tally {
 public:
  void Add(double x) {
    sum_ += x;
    max_ = std::max(max_, x);
    ++count_;
  }
  int count() const { return count_; }
  double mean() const { return count_ > 0 ? sum_ / count_ : kNone; }
  double max() const { return count_ > 0 ? max_ : kNone; }

 private:
  static constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  double sum_ = 0, max_ = -std::numeric_limits<double>::infinity();
  int count_ = 0;
};

class EgrlTrainer final : public Trainer {
 public:
  EgrlTrainer(std::shared_ptr<const PlacementProblem> problem, std::string name,
              const Config& config, uint64_t seed, int threads,
              const std::vector<std::vector<float>>& ancestors)
      : problem_(std::move(problem)), name_(std::move(name)), config_(config), seed_(seed),
        pool_(training::ThreadsOrCores(threads)), graph_(MakeProblemGraph(*problem_)),
        population_(config, ancestors), replay_(problem_->map_size(), config.capacity),
        compiler_replay_(problem_->map_size(), config.capacity), best_(*problem_),
        explored_{best().map, best().outcome.reward} {}

  absl::Status Initialise(const std::vector<std::vector<float>>& ancestors) {
    const size_t expected = Policy::NumWeights(config_, graph_);
    for (const std::vector<float>& weights : ancestors) {
      if (weights.size() == expected) continue;
      return absl::InvalidArgumentError(absl::StrCat("egrl: found a network of ", weights.size(),
                                                     " weights, expected ", expected));
    }
    for (int i = 0; i < pool_.threads(); ++i) {
      MG_ASSIGN_OR_RETURN(auto policy, Policy::Create(config_, graph_));
      policies_.push_back(std::move(policy));
    }
    if (!config_.gradient) return absl::OkStatus();
    MG_ASSIGN_OR_RETURN(learner_,
                        Learner::Create(config_, graph_, MixSeeds(seed_, kNetworkStream)));
    if (!ancestors.empty()) learner_->SetActor(ancestors[0]);
    return absl::OkStatus();
  }

  absl::StatusOr<Progress> StepUnless(const std::function<bool()>& interrupted) override {
    if (broken_)
      return absl::FailedPreconditionError(
          "egrl: the last generation was cancelled; go on from a checkpoint");
    broken_ = true;
    training::UseOneTorchThread();
    const Stopwatch watch;
    const uint64_t seed =
        MixSeeds(MixSeeds(seed_, kGenerationStream), static_cast<uint64_t>(generations_));
    Rng rng(seed, kBreedingStream);
    std::vector<float> actor;
    if (learner_ != nullptr) actor = learner_->Actor();
    const std::vector<PlannedMap> planned = PlanGeneration(rng, actor);
    std::vector<GradedMap> graded(planned.size());
    MG_RETURN_IF_ERROR(Grade(planned, seed, interrupted, graded));

    Progress progress;
    const int64_t before = evaluations();
    Take(planned, graded, progress);
    progress.rollout_seconds = watch.seconds();
    if (learning()) {
      const auto updates = [this](int64_t maps) {
        return static_cast<int64_t>(config_.updates * static_cast<double>(maps));
      };
      MG_RETURN_IF_ERROR(Learn(updates(evaluations()) - updates(before),
                               MixSeeds(seed, kLearningStream), interrupted, progress));
    }
    progress.learn_seconds = watch.seconds() - progress.rollout_seconds;
    progress.generation = generations_++;
    Describe(progress);
    broken_ = false;
    return progress;
  }

  absl::StatusOr<std::string> Save() const override {
    if (broken_)
      return absl::FailedPreconditionError(
          "egrl: the last generation was cancelled, there is nothing to save");
    Checkpoint checkpoint;
    checkpoint.name = name_;
    checkpoint.fingerprint = FingerprintOf(*problem_);
    checkpoint.levels = problem_->levels();
    checkpoint.config = config_;
    checkpoint.seed = seed_;
    checkpoint.generations = generations_;
    checkpoint.evaluations = evaluations();
    if (learner_ != nullptr) checkpoint.actor = learner_->Actor();
    const auto& members = population_.members();
    const auto best_network =
        std::find_if(members.begin(), members.end(), [](const Member& m) { return m.network(); });
    if (best_network != members.end()) checkpoint.best_network = best_network->weights;
    std::string& out = checkpoint.training;
    if (learner_ != nullptr) {
      MG_ASSIGN_OR_RETURN(const std::string learned, learner_->Save());
      WriteBytes(learned, out);
    }
    population_.Write(out);
    replay_.Write(out);
    compiler_replay_.Write(out);
    WriteBytes(explored_.map, out);
    WriteBytes(best().map, out);
    WriteBytes(best().best_ps, out);
    for (const int64_t count : {contributions_.gnn, contributions_.boltzmann,
                                contributions_.gradient, contributions_.refining}) {
      WriteBytes(count, out);
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
    MG_RETURN_IF_ERROR(population_.Read(in, graph_, policies_[0]->num_weights()));
    MG_RETURN_IF_ERROR(replay_.Read(in, graph_.levels));
    MG_RETURN_IF_ERROR(compiler_replay_.Read(in, graph_.levels));
    PlacementMap map;
    MG_RETURN_IF_ERROR(ReadBytes(in, map));
    const absl::StatusOr<PlacementOutcome> explored = problem_->Evaluate(map);
    if (!explored.ok()) return CutShort();
    explored_ = {map, explored->reward};
    std::vector<int64_t> best_ps;
    MG_RETURN_IF_ERROR(ReadBytes(in, map));
    MG_RETURN_IF_ERROR(ReadBytes(in, best_ps));
    if (!problem_->Evaluate(map).ok()) return CutShort();
    best_.Restore(std::move(map), std::move(best_ps));
    for (int64_t* count : {&contributions_.gnn, &contributions_.boltzmann, &contributions_.gradient,
                           &contributions_.refining}) {
      MG_RETURN_IF_ERROR(ReadBytes(in, *count));
    }
    if (!in.empty()) return CutShort();
    generations_ = checkpoint.generations;
    return absl::OkStatus();
  }

  const PlacementSearchResult& best() const override { return best_.result(); }
  const PlacementProblem& problem() const override { return *problem_; }
  const std::string& name() const override { return name_; }
  const Config& config() const override { return config_; }
  uint64_t seed() const override { return seed_; }
  int64_t generations() const override { return generations_; }
  int64_t parameters() const override { return static_cast<int64_t>(policies_[0]->num_weights()); }

 private:
  // Who makes a map. kCompiler is the compiler, and whoever refines its map as long as exploring
  // has found none better. Nobody learns from those maps, and they do not join the population,
  // which would gather around them.
  enum class Source { kPopulation, kGradient, kRefining, kCompiler };
  // A map of the next generation that is yet to be made.
  struct PlannedMap {
    Source source;
    Birth birth;
  };
  struct GradedMap {
    absl::StatusOr<Member> member;
    PlacementOutcome outcome;
  };
  struct Explored {
    PlacementMap map;
    double reward;
  };
  // How often each kind of player found a better map than all before.
  struct Contributions {
    int64_t gnn = 0, boltzmann = 0, gradient = 0, refining = 0;
  };

  bool learning() const {
    return learner_ != nullptr && replay_.size() >= static_cast<size_t>(config_.warmup);
  }

  // The maps that the next generation grades. They read `actor`, the weights of the policy
  // gradient.
  std::vector<PlannedMap> PlanGeneration(Rng& rng, const std::vector<float>& actor) {
    std::vector<PlannedMap> planned;
    if (config_.population > 0) {
      const bool migrates = learning() && generations_ % config_.migration == 0;
      for (Birth& birth : population_.Breed(rng, migrates ? &actor : nullptr)) {
        planned.push_back({Source::kPopulation, std::move(birth)});
      }
    }
    for (int i = 0; learner_ != nullptr && i < config_.rollouts; ++i)
      planned.push_back({Source::kGradient, Rollout(actor)});
    // Rounded so that no generation grades more than the first.
    const double due =
        static_cast<double>(planned.size()) * config_.refined / (1 - config_.refined);
    const auto refinements =
        static_cast<int>(generations_ == 0 ? std::ceil(due) : std::floor(due + rng.Uniform()));
    for (int i = 0; i < refinements; ++i) {
      if (generations_ == 0 && i == 0) {
        planned.push_back(CompilersMap());
      } else if (explored_.reward >= best().outcome.reward || rng.Uniform() < kExploredShare) {
        planned.push_back({Source::kRefining, Refinement()});
      } else {
        planned.push_back({Source::kCompiler, CompilersRefinement()});
      }
    }
    return planned;
  }

  // A rollout of the actor. What it finds joins the population as a Boltzmann chromosome with genes
  // from the actor.
  Birth Rollout(const std::vector<float>& actor) const {
    return [this, &actor](const BreedingContext& context) -> absl::StatusOr<Member> {
      MG_ASSIGN_OR_RETURN(Member member, NetworkMember(actor, context.policy, context.graph));
      MG_ASSIGN_OR_RETURN(member.map, ChooseMap(context, [&] {
                            PlacementMap map = DrawMap(member.probabilities, graph_, context.rng);
                            Redraw(graph_, config_.exploration, context.rng, map);
                            return map;
                          }));
      member.genes = GenesOf(member, context);
      member.weights.clear();
      member.probabilities.clear();
      return member;
    };
  }

  // The compiler's map. A game has none; its baseline, the map with everything in fast memory, is
  // as good a start as any.
  PlannedMap CompilersMap() const {
    const bool game = problem_->game() != nullptr;
    return {game ? Source::kRefining : Source::kCompiler,
            [this](const BreedingContext& context) -> absl::StatusOr<Member> {
              return ChromosomeAt(problem_->baseline_map(), context);
            }};
  }

  Birth Refinement() const {
    return [this](const BreedingContext& context) -> absl::StatusOr<Member> {
      MG_ASSIGN_OR_RETURN(PlacementMap map, Refined(explored_.map, context));
      return ChromosomeAt(std::move(map), context);
    };
  }

  // A refinement of the compiler's map. The critics know nothing of maps like these, so they do not
  // choose among them.
  Birth CompilersRefinement() const {
    return [this](const BreedingContext& context) -> absl::StatusOr<Member> {
      const BreedingContext apart{context.config, context.graph,  compiler_replay_,
                                  nullptr,        context.policy, context.rng};
      MG_ASSIGN_OR_RETURN(PlacementMap map, Refined(best().map, apart));
      return ChromosomeAt(std::move(map), apart);
    };
  }

  absl::StatusOr<PlacementMap> Refined(const PlacementMap& from,
                                       const BreedingContext& context) const {
    return ChooseMap(context, [&] {
      PlacementMap map = from;
      Redraw(graph_, config_.redrawn, context.rng, map);
      return problem_->game() == nullptr ? *problem_->Rectify(map) : map;
    });
  }

  absl::Status Grade(const std::vector<PlannedMap>& planned, uint64_t seed,
                     const std::function<bool()>& interrupted, std::vector<GradedMap>& graded) {
    const auto count = static_cast<int>(planned.size()),
               workers = static_cast<int>(policies_.size());
    std::atomic<int> next{0};
    pool_.Run(workers, 1, [&](int worker, int) {
      training::UseOneTorchThread();
      for (int i = next++; i < count; i = next++) {
        const size_t at = i;
        if (interrupted()) {
          graded[at].member = absl::CancelledError("egrl: cancelled");
          continue;
        }
        Rng rng(seed, kBirthStream + static_cast<uint64_t>(i));
        const Learner* const critics =
            learning() && rng.Uniform() < config_.screened ? learner_.get() : nullptr;
        graded[at].member =
            planned[at].birth({config_, graph_, replay_, critics, *policies_[worker], rng});
        if (!graded[at].member.ok()) continue;
        graded[at].outcome = *problem_->Evaluate(graded[at].member->map);
        graded[at].member->reward = graded[at].outcome.reward;
      }
    });
    for (const GradedMap& one : graded) MG_RETURN_IF_ERROR(one.member.status());
    return absl::OkStatus();
  }

  int64_t& ContributionOf(Source source, const Member& member) {
    if (source == Source::kRefining || source == Source::kCompiler) return contributions_.refining;
    if (source == Source::kGradient || member.migrant) return contributions_.gradient;
    return member.network() ? contributions_.gnn : contributions_.boltzmann;
  }

  void Take(const std::vector<PlannedMap>& planned, std::vector<GradedMap>& graded,
            Progress& progress) {
    std::vector<Member> children, guests;
    Tally rollouts, refined, valid, fresh;
    for (size_t i = 0; i < graded.size(); ++i) {
      const Source source = planned[i].source;
      const PlacementOutcome& outcome = graded[i].outcome;
      Member& member = *graded[i].member;
      if (best_.Offer(member.map, outcome)) ++ContributionOf(source, member);
      valid.Add(outcome.moved == 0 || problem_->game() != nullptr);
      Replay& known = source == Source::kCompiler ? compiler_replay_ : replay_;
      fresh.Add(!known.Holds(member.map));
      known.Add(member.map, outcome.reward);
      if (source == Source::kGradient) rollouts.Add(outcome.reward);
      if (source == Source::kRefining || source == Source::kCompiler) refined.Add(outcome.reward);
      if (source == Source::kCompiler) continue;
      if (outcome.reward >= explored_.reward) explored_ = {member.map, outcome.reward};
      (source == Source::kPopulation ? children : guests).push_back(std::move(member));
    }
    population_.Admit(std::move(children), std::move(guests));
    progress.valid = valid.mean();
    progress.fresh = fresh.mean();
    progress.gradient_mean = rollouts.mean();
    progress.gradient_max = rollouts.max();
    progress.refined_mean = refined.mean();
    progress.refined_max = refined.max();
  }

  absl::Status Learn(int64_t updates, uint64_t seed, const std::function<bool()>& interrupted,
                     Progress& progress) {
    Rng rng(seed);
    const auto share = 1 / static_cast<double>(std::max<int64_t>(1, updates));
    for (int64_t update = 0; update < updates; ++update) {
      if (interrupted()) return absl::CancelledError("egrl: cancelled");
      std::vector<uint8_t> maps;
      std::vector<double> rewards;
      replay_.Draw(config_.batch, rng, &maps, &rewards);
      MG_ASSIGN_OR_RETURN(const Losses losses, learner_->Update(maps, rewards, rng));
      progress.critic_loss += share * losses.critic;
      progress.value += share * losses.value;
      progress.entropy += share * losses.entropy;
      progress.actor_gradient += share * losses.actor_gradient;
    }
    return absl::OkStatus();
  }

  void Describe(Progress& progress) const {
    progress.evaluations = evaluations();
    progress.best_ps = best().best_ps.back();
    progress.best_reward = best().outcome.reward;
    Tally networks, boltzmann;
    for (const Member& member : population_.members())
      (member.network() ? networks : boltzmann).Add(member.reward);
    progress.gnn_members = networks.count();
    progress.boltzmann_members = boltzmann.count();
    progress.gnn_mean = networks.mean();
    progress.gnn_max = networks.max();
    progress.boltzmann_mean = boltzmann.mean();
    progress.boltzmann_max = boltzmann.max();
    progress.best_by_gnn = contributions_.gnn;
    progress.best_by_boltzmann = contributions_.boltzmann;
    progress.best_by_gradient = contributions_.gradient;
    progress.best_by_refining = contributions_.refining;
    progress.migrants = population_.migrations().arrived;
    progress.migrants_elite = population_.migrations().elite;
    progress.migrants_selected = population_.migrations().selected;
    progress.updates = learner_ == nullptr ? 0 : learner_->updates();
    progress.replay = static_cast<int64_t>(replay_.size());
  }

  std::shared_ptr<const PlacementProblem> problem_;
  std::string name_;
  Config config_;
  uint64_t seed_;
  WorkerPool pool_;
  ProblemGraph graph_;
  std::vector<std::unique_ptr<Policy>> policies_;  // one for each thread
  std::unique_ptr<Learner> learner_;               // null without gradient
  Population population_;
  Replay replay_;
  Replay compiler_replay_;  // the maps of Source::kCompiler
  BestMap best_;
  Explored explored_;  // the best map that is not of Source::kCompiler
  Contributions contributions_;
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

absl::StatusOr<std::unique_ptr<EgrlTrainer>> Make(
    std::shared_ptr<const PlacementProblem> problem, std::string name, const Config& config,
    uint64_t seed, int threads, const std::vector<std::vector<float>>& ancestors) {
  MG_RETURN_IF_ERROR(training::CheckThreads("egrl", threads));
  MG_RETURN_IF_ERROR(Check(config));
  auto trainer = std::make_unique<EgrlTrainer>(std::move(problem), std::move(name), config, seed,
                                               threads, ancestors);
  MG_RETURN_IF_ERROR(trainer->Initialise(ancestors));
  return trainer;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Trainer>> Trainer::Create(
    std::shared_ptr<const PlacementProblem> problem, std::string name, const Config& config,
    uint64_t seed, int threads, const std::vector<std::vector<float>>& ancestors) {
  return Make(std::move(problem), std::move(name), config, seed, threads, ancestors);
}

absl::StatusOr<std::unique_ptr<Trainer>> Trainer::Load(
    std::shared_ptr<const PlacementProblem> problem, absl::string_view bytes, int threads) {
  MG_ASSIGN_OR_RETURN(const Checkpoint checkpoint, training::UnpackCheckpoint<Checkpoint>(bytes));
  if (const std::string expected = FingerprintOf(*problem); checkpoint.fingerprint != expected) {
    return absl::InvalidArgumentError(absl::StrCat("the checkpoint is of another problem: found ",
                                                   checkpoint.name, " (", checkpoint.fingerprint,
                                                   "), expected (", expected, ")"));
  }
  MG_RETURN_IF_ERROR(CheckNetworks(checkpoint, MakeProblemGraph(*problem)));
  MG_ASSIGN_OR_RETURN(auto trainer, Make(std::move(problem), checkpoint.name, checkpoint.config,
                                         checkpoint.seed, threads, {}));
  MG_RETURN_IF_ERROR(trainer->Restore(checkpoint));
  return trainer;
}

absl::StatusOr<Progress> Trainer::Step(const std::atomic<bool>* cancel) {
  return StepUnless(
      [cancel] { return cancel != nullptr && cancel->load(std::memory_order_relaxed); });
}

}  // namespace mallocgame::egrl
