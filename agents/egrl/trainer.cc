#include "agents/egrl/trainer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
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

// Who makes a map.
enum class Source { kPopulation, kGradient, kRefining };
// A map of the next generation that is yet to be made.
struct PlannedMap {
  Source source;
  Birth birth;
};
struct GradedMap {
  absl::StatusOr<Member> member;
  PlacementOutcome outcome;
};

// How often each kind of player found a better map than all before.
struct Contributions {
  int64_t gnn = 0, boltzmann = 0, gradient = 0, refining = 0;

  int64_t& Of(Source source, const Member& member) {
    if (source == Source::kRefining) return refining;
    if (source == Source::kGradient || member.migrant) return gradient;
    return member.network() ? gnn : boltzmann;
  }
};

// What belongs to one problem alone.
struct Field {
  Field(const PlacementProblem& problem_given, const Config& config,
        const std::vector<std::vector<float>>& ancestors)
      : problem(problem_given), graph(MakeProblemGraph(problem)), population(config, ancestors),
        replay(problem.map_size(), config.capacity), best(problem) {}

  const PlacementProblem& problem;
  ProblemGraph graph;
  std::vector<std::unique_ptr<Policy>> policies;  // one for each thread
  Population population;
  Replay replay;
  BestMap best;
  Contributions contributions;
  int64_t generations = 0;
};

class EgrlTrainer final : public Trainer {
 public:
  EgrlTrainer(Problems problems, const Config& config, uint64_t seed, int threads,
              const std::vector<std::vector<float>>& ancestors)
      : problems_(std::move(problems)), config_(config), seed_(seed),
        pool_(training::ThreadsOrCores(threads)) {
    for (const auto& problem : problems_)
      fields_.push_back(std::make_unique<Field>(*problem, config, ancestors));
  }

  absl::Status Initialise(const std::vector<std::vector<float>>& ancestors) {
    const size_t expected = Policy::NumWeights(config_, fields_[0]->graph);
    for (const std::vector<float>& weights : ancestors) {
      if (weights.size() == expected) continue;
      return absl::InvalidArgumentError(absl::StrCat("egrl: found a network of ", weights.size(),
                                                     " weights, expected ", expected));
    }
    std::vector<ProblemGraph> graphs;
    for (const auto& field : fields_) {
      graphs.push_back(field->graph);
      for (int i = 0; i < pool_.threads(); ++i) {
        MG_ASSIGN_OR_RETURN(auto policy, Policy::Create(config_, field->graph));
        field->policies.push_back(std::move(policy));
      }
    }
    if (!config_.gradient) return absl::OkStatus();
    MG_ASSIGN_OR_RETURN(learner_,
                        Learner::Create(config_, graphs, MixSeeds(seed_, kNetworkStream)));
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
    const size_t turn = static_cast<size_t>(generations_) % fields_.size();
    Field& field = *fields_[turn];
    Rng rng(seed, kBreedingStream);
    std::vector<float> actor;
    if (learner_ != nullptr) {
      actor = learner_->Actor();
      MG_RETURN_IF_ERROR(learner_->Prepare(turn));
    }
    const std::vector<PlannedMap> planned = PlanGeneration(field, rng, actor);
    std::vector<GradedMap> graded(planned.size());
    MG_RETURN_IF_ERROR(Grade(field, planned, seed, interrupted, graded));

    Progress progress;
    const int64_t before = field.best.result().evaluations;
    Take(planned, graded, field, progress);
    progress.rollout_seconds = watch.seconds();
    if (Learning(field)) {
      const auto updates = [this](int64_t maps) {
        return static_cast<int64_t>(config_.updates * static_cast<double>(maps));
      };
      MG_RETURN_IF_ERROR(Learn(turn, updates(field.best.result().evaluations) - updates(before),
                               MixSeeds(seed, kLearningStream), interrupted, progress));
    }
    progress.learn_seconds = watch.seconds() - progress.rollout_seconds;
    ++field.generations;
    progress.generation = generations_++;
    progress.problem = static_cast<int64_t>(turn);
    Describe(field, progress);
    broken_ = false;
    return progress;
  }

  absl::StatusOr<std::string> Save() const override {
    if (broken_)
      return absl::FailedPreconditionError(
          "egrl: the last generation was cancelled, there is nothing to save");
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
    const auto& members = fields_[0]->population.members();
    const auto best_network =
        std::find_if(members.begin(), members.end(), [](const Member& m) { return m.network(); });
    if (best_network != members.end()) checkpoint.best_network = best_network->weights;
    std::string& out = checkpoint.training;
    if (learner_ != nullptr) {
      MG_ASSIGN_OR_RETURN(const std::string learned, learner_->Save());
      WriteBytes(learned, out);
    }
    for (const auto& field : fields_) Write(*field, out);
    return training::PackCheckpoint(checkpoint);
  }

  absl::Status Restore(const Checkpoint& checkpoint) {
    absl::string_view in = checkpoint.training;
    if (learner_ != nullptr) {
      absl::string_view learned;
      MG_RETURN_IF_ERROR(ReadBytes(in, learned));
      MG_RETURN_IF_ERROR(learner_->Load(learned));
    }
    for (const auto& field : fields_) MG_RETURN_IF_ERROR(Read(in, *field));
    if (!in.empty() || checkpoint.generations < 0) return CutShort();
    generations_ = checkpoint.generations;
    return absl::OkStatus();
  }

  const PlacementSearchResult& best(size_t problem) const override {
    return fields_[problem]->best.result();
  }
  const Problems& problems() const override { return problems_; }
  const Config& config() const override { return config_; }
  uint64_t seed() const override { return seed_; }
  int64_t generations() const override { return generations_; }
  int64_t evaluations() const override {
    int64_t sum = 0;
    for (const auto& field : fields_) sum += field->best.result().evaluations;
    return sum;
  }
  int64_t parameters() const override {
    return static_cast<int64_t>(fields_[0]->policies[0]->num_weights());
  }

 private:
  static void Write(const Field& field, std::string& out) {
    field.population.Write(out);
    field.replay.Write(out);
    WriteBytes(field.best.result().map, out);
    WriteBytes(field.best.result().best_ps, out);
    const Contributions& found = field.contributions;
    for (const int64_t count :
         {found.gnn, found.boltzmann, found.gradient, found.refining, field.generations})
      WriteBytes(count, out);
  }

  static absl::Status Read(absl::string_view& in, Field& field) {
    MG_RETURN_IF_ERROR(field.population.Read(in, field.graph, field.policies[0]->num_weights()));
    MG_RETURN_IF_ERROR(field.replay.Read(in, field.graph.levels));
    PlacementMap map;
    std::vector<int64_t> best_ps;
    MG_RETURN_IF_ERROR(ReadBytes(in, map));
    MG_RETURN_IF_ERROR(ReadBytes(in, best_ps));
    if (!field.problem.Evaluate(map).ok()) return CutShort();
    field.best.Restore(std::move(map), std::move(best_ps));
    Contributions& found = field.contributions;
    for (int64_t* count :
         {&found.gnn, &found.boltzmann, &found.gradient, &found.refining, &field.generations})
      MG_RETURN_IF_ERROR(ReadBytes(in, *count));
    return absl::OkStatus();
  }

  bool Learning(const Field& field) const {
    return learner_ != nullptr && field.replay.size() >= static_cast<size_t>(config_.warmup);
  }

  // The maps that the next generation grades. They read `actor`, the weights of the policy
  // gradient.
  std::vector<PlannedMap> PlanGeneration(Field& field, Rng& rng, const std::vector<float>& actor) {
    std::vector<PlannedMap> planned;
    if (config_.population > 0) {
      const bool migrates = Learning(field) && field.generations % config_.migration == 0;
      for (Birth& birth : field.population.Breed(rng, migrates ? &actor : nullptr))
        planned.push_back({Source::kPopulation, std::move(birth)});
    }
    // Rounded so that no generation grades more than the first, which has the compilers' maps.
    const double due =
        static_cast<double>(planned.size()) * config_.refined / (1 - config_.refined);
    auto refinements = static_cast<int>(std::floor(due + rng.Uniform()));
    if (field.generations == 0) {
      const std::vector<PlacementMap> known = CompilersMaps(field.problem);
      refinements = static_cast<int>(std::ceil(due));
      for (size_t i = 0; config_.refined > 0 && i < known.size(); ++i, --refinements)
        planned.push_back({Source::kRefining, Chromosome(known[i])});
    }
    for (int i = 0; i < refinements; ++i) planned.push_back({Source::kRefining, Refinement(field)});
    for (int i = 0; learner_ != nullptr && i < config_.rollouts; ++i)
      planned.push_back({Source::kGradient, Rollout(actor)});
    return planned;
  }

  // A rollout of the actor. What it finds joins the population as a Boltzmann chromosome with genes
  // from the actor.
  static Birth Rollout(const std::vector<float>& actor) {
    return [&actor](const BreedingContext& context) -> absl::StatusOr<Member> {
      MG_ASSIGN_OR_RETURN(Member member, NetworkMember(actor, context));
      MG_ASSIGN_OR_RETURN(member.map, ChooseMap(context, [&] {
                            PlacementMap map =
                                DrawMap(member.probabilities, context.graph, context.rng);
                            return Redrawn(std::move(map), context.config.exploration, context);
                          }));
      member.genes = GenesOf(member, context);
      member.weights.clear();
      member.probabilities.clear();
      return member;
    };
  }

  // A game has no compiler; the map with everything in fast memory is as good a start as any.
  static std::vector<PlacementMap> CompilersMaps(const PlacementProblem& problem) {
    if (problem.game() != nullptr) return {problem.baseline_map()};
    return {problem.baseline_map(), *problem.Rectify(PlacementMap(problem.map_size(), 0))};
  }

  static Birth Chromosome(const PlacementMap& map) {
    return [map](const BreedingContext& context) -> absl::StatusOr<Member> {
      return ChromosomeAt(map, context);
    };
  }

  static Birth Refinement(const Field& field) {
    return [&field](const BreedingContext& context) -> absl::StatusOr<Member> {
      MG_ASSIGN_OR_RETURN(PlacementMap map,
                          Climbed(field.best.result().map, context.config.climbs, context));
      return ChromosomeAt(std::move(map), context);
    };
  }

  absl::Status Grade(Field& field, const std::vector<PlannedMap>& planned, uint64_t seed,
                     const std::function<bool()>& interrupted, std::vector<GradedMap>& graded) {
    const auto count = static_cast<int>(planned.size()), workers = pool_.threads();
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
            Learning(field) && rng.Uniform() < config_.screened ? learner_.get() : nullptr;
        graded[at].member = planned[at].birth({config_, field.problem, field.graph, field.replay,
                                               critics, *field.policies[worker], rng});
        if (!graded[at].member.ok()) continue;
        graded[at].outcome = *field.problem.Evaluate(graded[at].member->map);
        graded[at].member->reward = graded[at].outcome.reward;
      }
    });
    for (const GradedMap& one : graded) MG_RETURN_IF_ERROR(one.member.status());
    return absl::OkStatus();
  }

  void Take(const std::vector<PlannedMap>& planned, std::vector<GradedMap>& graded, Field& field,
            Progress& progress) {
    std::vector<Member> children, guests;
    Tally rollouts, refined, fresh;
    for (size_t i = 0; i < graded.size(); ++i) {
      const Source source = planned[i].source;
      const PlacementOutcome& outcome = graded[i].outcome;
      Member& member = *graded[i].member;
      if (field.best.Offer(member.map, outcome)) ++field.contributions.Of(source, member);
      fresh.Add(!field.replay.Holds(member.map));
      field.replay.Add(member.map, -static_cast<double>(outcome.latency_ps) /
                                       static_cast<double>(field.problem.baseline_ps()));
      if (source == Source::kGradient) rollouts.Add(outcome.reward);
      if (source == Source::kRefining) refined.Add(outcome.reward);
      (source == Source::kPopulation ? children : guests).push_back(std::move(member));
    }
    field.population.Admit(std::move(children), std::move(guests));
    progress.fresh = fresh.mean();
    progress.gradient_mean = rollouts.mean();
    progress.gradient_max = rollouts.max();
    progress.refined_mean = refined.mean();
    progress.refined_max = refined.max();
  }

  absl::Status Learn(size_t turn, int64_t updates, uint64_t seed,
                     const std::function<bool()>& interrupted, Progress& progress) {
    Rng rng(seed);
    const auto share = 1 / static_cast<double>(std::max<int64_t>(1, updates));
    for (int64_t update = 0; update < updates; ++update) {
      if (interrupted()) return absl::CancelledError("egrl: cancelled");
      std::vector<uint8_t> maps;
      std::vector<double> values;
      fields_[turn]->replay.Draw(config_.batch, rng, &maps, &values);
      MG_ASSIGN_OR_RETURN(const Losses losses, learner_->Update(turn, maps, values, rng));
      progress.critic_loss += share * losses.critic;
      progress.value += share * losses.value;
      progress.entropy += share * losses.entropy;
      progress.actor_gradient += share * losses.actor_gradient;
    }
    return absl::OkStatus();
  }

  void Describe(const Field& field, Progress& progress) const {
    const PlacementSearchResult& best = field.best.result();
    progress.evaluations = best.evaluations;
    progress.best_ps = best.best_ps.back();
    progress.best_reward = best.outcome.reward;
    Tally networks, boltzmann;
    for (const Member& member : field.population.members())
      (member.network() ? networks : boltzmann).Add(member.reward);
    progress.gnn_members = networks.count();
    progress.boltzmann_members = boltzmann.count();
    progress.gnn_mean = networks.mean();
    progress.gnn_max = networks.max();
    progress.boltzmann_mean = boltzmann.mean();
    progress.boltzmann_max = boltzmann.max();
    progress.best_by_gnn = field.contributions.gnn;
    progress.best_by_boltzmann = field.contributions.boltzmann;
    progress.best_by_gradient = field.contributions.gradient;
    progress.best_by_refining = field.contributions.refining;
    progress.migrants = field.population.migrations().arrived;
    progress.migrants_elite = field.population.migrations().elite;
    progress.migrants_selected = field.population.migrations().selected;
    progress.updates = learner_ == nullptr ? 0 : learner_->updates();
    progress.replay = static_cast<int64_t>(field.replay.size());
  }

  Problems problems_;
  Config config_;
  uint64_t seed_;
  WorkerPool pool_;
  std::vector<std::unique_ptr<Field>> fields_;  // one for each problem
  std::unique_ptr<Learner> learner_;            // null without gradient
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
  auto trainer =
      std::make_unique<EgrlTrainer>(std::move(problems), config, seed, threads, ancestors);
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

absl::StatusOr<Progress> Trainer::Step(const std::atomic<bool>* cancel) {
  return StepUnless(
      [cancel] { return cancel != nullptr && cancel->load(std::memory_order_relaxed); });
}

}  // namespace mallocgame::egrl
