#include "agents/egrl/run.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agents/training/bytes.h"
#include "agents/training/torch_runtime.h"
#include "mallocgame/base/error.h"

namespace mallocgame::egrl {
namespace {

using training::CutShort;
using training::ReadBytes;
using training::WriteBytes;

// Streams of random numbers drawn from the seed.
enum Stream : uint64_t { kNetworkStream = 1, kGenerationStream };
// Of a generation; births have the numbers behind.
enum : uint64_t { kConceptionStream, kLearningStream, kBirthStream };

// Where there is a choice of what to refine, the share of what exploring found.
constexpr double kExploredShare = 0.5;

// Draws the levels of about `redrawn` tensors anew.
void Redraw(const ProblemGraph& graph, double redrawn, Rng& rng, PlacementMap& map) {
  const double share = std::min(1.0, redrawn / graph.decisions);
  for (size_t i = 0; i < map.size(); ++i) {
    if (graph.real[i] == 0 || rng.Uniform() >= share) continue;
    map[i] = static_cast<uint8_t>(rng.Below(graph.levels));
  }
}

uint64_t Mix(uint64_t seed, uint64_t stream) { return Rng(seed, stream).Next(); }

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

struct Tally {
  double sum = 0, most = -std::numeric_limits<double>::infinity();
  int count = 0;
  void Add(double x) {
    sum += x;
    most = std::max(most, x);
    ++count;
  }
  double mean() const { return count > 0 ? sum / count : std::numeric_limits<double>::quiet_NaN(); }
  double max() const { return count > 0 ? most : std::numeric_limits<double>::quiet_NaN(); }
};

}  // namespace

Champion::Champion(const PlacementProblem& problem) {
  Restore(problem, PlacementMap(problem.map_size(), static_cast<uint8_t>(problem.levels() - 1)),
          {});
}

bool Champion::Offer(const PlacementProblem& problem, const PlacementMap& map,
                     const PlacementOutcome& outcome) {
  ++result_.evaluations;
  int64_t best = result_.best_ps.empty() ? 0 : result_.best_ps.back();
  const bool fits = outcome.moved == 0 || problem.game() != nullptr;
  const bool better = fits && (best == 0 || outcome.latency_ps < best);
  if (better) {
    best = outcome.latency_ps;
    result_.map = map;
    result_.outcome = outcome;
  }
  result_.best_ps.push_back(best);
  return better;
}

void Champion::Restore(const PlacementProblem& problem, PlacementMap map,
                       std::vector<int64_t> best_ps) {
  result_.map = std::move(map);
  result_.outcome = *problem.Evaluate(result_.map);
  result_.evaluations = static_cast<int64_t>(best_ps.size());
  result_.best_ps = std::move(best_ps);
}

Run::Run(std::shared_ptr<const PlacementProblem> problem, std::string name, const Config& config,
         uint64_t seed, int threads, std::vector<std::vector<float>> ancestors)
    : problem_(std::move(problem)), name_(std::move(name)), config_(config), seed_(seed),
      pool_(threads > 0 ? threads
                        : std::max(1, static_cast<int>(std::thread::hardware_concurrency()))),
      graph_(MakeProblemGraph(*problem_)), population_(config, std::move(ancestors)),
      replay_(problem_->map_size(), config.capacity),
      compilers_(problem_->map_size(), config.capacity), champion_(*problem_),
      explored_{best().map, best().outcome.reward} {}

absl::StatusOr<std::unique_ptr<Run>> Run::Create(std::shared_ptr<const PlacementProblem> problem,
                                                 std::string name, const Config& config,
                                                 uint64_t seed, int threads,
                                                 std::vector<std::vector<float>> ancestors) {
  if (threads < 0 || threads > 1024) {
    return absl::InvalidArgumentError(
        absl::StrCat("egrl: threads: found ", threads, ", allowed: 0 to 1024"));
  }
  MG_RETURN_IF_ERROR(Check(config));
  std::unique_ptr<Run> run(
      new Run(std::move(problem), std::move(name), config, seed, threads, ancestors));
  MG_RETURN_IF_ERROR(run->Initialise(ancestors));
  return run;
}

absl::Status Run::Initialise(const std::vector<std::vector<float>>& ancestors) {
  for (int i = 0; i < pool_.threads(); ++i) {
    MG_ASSIGN_OR_RETURN(auto policy, Policy::Create(config_, graph_));
    policies_.push_back(std::move(policy));
  }
  for (const std::vector<float>& weights : ancestors) {
    if (weights.size() == policies_[0]->num_weights()) continue;
    return absl::InvalidArgumentError(absl::StrCat("egrl: found a network of ", weights.size(),
                                                   " weights, expected ",
                                                   policies_[0]->num_weights()));
  }
  if (!config_.gradient) return absl::OkStatus();
  MG_ASSIGN_OR_RETURN(learner_, Learner::Create(config_, graph_, Mix(seed_, kNetworkStream)));
  if (!ancestors.empty()) learner_->SetActor(ancestors[0]);
  return absl::OkStatus();
}

absl::StatusOr<Progress> Run::Step(const std::atomic<bool>* cancel) {
  return StepUnless(
      [cancel] { return cancel != nullptr && cancel->load(std::memory_order_relaxed); });
}

absl::StatusOr<Progress> Run::StepUnless(const std::function<bool()>& interrupted) {
  if (broken_)
    return absl::FailedPreconditionError(
        "egrl: the last generation was cancelled; go on from a checkpoint");
  broken_ = true;
  training::UseOneTorchThread();
  const auto start = std::chrono::steady_clock::now();
  const uint64_t seed = Mix(Mix(seed_, kGenerationStream), static_cast<uint64_t>(generations_));
  Rng rng(seed, kConceptionStream);
  std::vector<float> actor;
  if (learner_ != nullptr) actor = learner_->Actor();
  const std::vector<Task> tasks = TasksOf(rng, actor);
  std::vector<Graded> graded(tasks.size());
  MG_RETURN_IF_ERROR(Grade(tasks, seed, interrupted, graded));

  Progress progress;
  const int64_t before = evaluations();
  Take(tasks, graded, progress);
  progress.rollout_seconds = SecondsSince(start);
  if (learning()) {
    const auto updates = [this](int64_t maps) {
      return static_cast<int64_t>(config_.updates * static_cast<double>(maps));
    };
    MG_RETURN_IF_ERROR(Learn(updates(evaluations()) - updates(before), Mix(seed, kLearningStream),
                             interrupted, progress));
  }
  progress.learn_seconds = SecondsSince(start) - progress.rollout_seconds;
  progress.generation = generations_++;
  Describe(progress);
  broken_ = false;
  return progress;
}

std::vector<Run::Task> Run::TasksOf(Rng& rng, const std::vector<float>& actor) {
  std::vector<Task> tasks;
  if (config_.population > 0) {
    const bool migrates = learning() && generations_ % config_.migration == 0;
    for (Birth& birth : population_.Conceive(rng, migrates ? &actor : nullptr)) {
      tasks.push_back({Source::kPopulation, std::move(birth)});
    }
  }
  for (int i = 0; learner_ != nullptr && i < config_.rollouts; ++i)
    tasks.push_back({Source::kGradient, Rollout(actor)});
  // Rounded so that no generation grades more than the first.
  const double due = static_cast<double>(tasks.size()) * config_.refined / (1 - config_.refined);
  const auto refinements =
      static_cast<int>(generations_ == 0 ? std::ceil(due) : std::floor(due + rng.Uniform()));
  for (int i = 0; i < refinements; ++i) {
    if (generations_ == 0 && i == 0) {
      tasks.push_back(Baseline());
    } else if (explored_.reward >= best().outcome.reward || rng.Uniform() < kExploredShare) {
      tasks.push_back({Source::kRefining, Refinement()});
    } else {
      tasks.push_back({Source::kCompiler, CompilersRefinement()});
    }
  }
  return tasks;
}

// What a rollout finds joins the population as a Boltzmann chromosome that the actor seeds.
Birth Run::Rollout(const std::vector<float>& actor) const {
  return [this, &actor](const Nursery& nursery) -> absl::StatusOr<Member> {
    MG_ASSIGN_OR_RETURN(Member member, NetworkMember(actor, nursery.policy, nursery.graph));
    MG_ASSIGN_OR_RETURN(member.map, ChooseMap(nursery, [&] {
                          PlacementMap map = DrawMap(member.probabilities, graph_, nursery.rng);
                          Redraw(graph_, config_.exploration, nursery.rng, map);
                          return map;
                        }));
    member.genes = GenesOf(member, nursery);
    member.weights.clear();
    member.probabilities.clear();
    return member;
  };
}

// A game has no compiler's map: that with everything in fast memory is as good a begin as any.
Run::Task Run::Baseline() const {
  const bool game = problem_->game() != nullptr;
  return {game ? Source::kRefining : Source::kCompiler,
          [this](const Nursery& nursery) -> absl::StatusOr<Member> {
            return ChromosomeAt(problem_->baseline_map(), nursery);
          }};
}

Birth Run::Refinement() const {
  return [this](const Nursery& nursery) -> absl::StatusOr<Member> {
    MG_ASSIGN_OR_RETURN(PlacementMap map, Refined(explored_.map, nursery));
    return ChromosomeAt(std::move(map), nursery);
  };
}

// The critics know nothing of maps like these.
Birth Run::CompilersRefinement() const {
  return [this](const Nursery& nursery) -> absl::StatusOr<Member> {
    const Nursery apart{nursery.config, nursery.graph,  compilers_,
                        nullptr,        nursery.policy, nursery.rng};
    MG_ASSIGN_OR_RETURN(PlacementMap map, Refined(best().map, apart));
    return ChromosomeAt(std::move(map), apart);
  };
}

absl::StatusOr<PlacementMap> Run::Refined(const PlacementMap& from, const Nursery& nursery) const {
  return ChooseMap(nursery, [&] {
    PlacementMap map = from;
    Redraw(graph_, config_.redrawn, nursery.rng, map);
    return problem_->game() == nullptr ? *problem_->Rectify(map) : map;
  });
}

absl::Status Run::Grade(const std::vector<Task>& tasks, uint64_t seed,
                        const std::function<bool()>& interrupted, std::vector<Graded>& graded) {
  const auto count = static_cast<int>(tasks.size()), workers = static_cast<int>(policies_.size());
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
          tasks[at].birth({config_, graph_, replay_, critics, *policies_[worker], rng});
      if (!graded[at].member.ok()) continue;
      graded[at].outcome = *problem_->Evaluate(graded[at].member->map);
      graded[at].member->reward = graded[at].outcome.reward;
    }
  });
  for (const Graded& one : graded) MG_RETURN_IF_ERROR(one.member.status());
  return absl::OkStatus();
}

int64_t& Run::ContributionOf(Source source, const Member& member) {
  if (source == Source::kRefining || source == Source::kCompiler) return contributions_.refining;
  if (source == Source::kGradient || member.migrant) return contributions_.gradient;
  return member.network() ? contributions_.gnn : contributions_.boltzmann;
}

void Run::Take(const std::vector<Task>& tasks, std::vector<Graded>& graded, Progress& progress) {
  std::vector<Member> children, guests;
  Tally rollouts, refined, valid, fresh;
  for (size_t i = 0; i < graded.size(); ++i) {
    const Source source = tasks[i].source;
    const PlacementOutcome& outcome = graded[i].outcome;
    Member& member = *graded[i].member;
    if (champion_.Offer(*problem_, member.map, outcome)) ++ContributionOf(source, member);
    valid.Add(outcome.moved == 0 || problem_->game() != nullptr);
    Replay& known = source == Source::kCompiler ? compilers_ : replay_;
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

absl::Status Run::Learn(int64_t updates, uint64_t seed, const std::function<bool()>& interrupted,
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

void Run::Describe(Progress& progress) const {
  progress.evaluations = evaluations();
  progress.best_ps = best().best_ps.back();
  progress.best_reward = best().outcome.reward;
  Tally networks, boltzmann;
  for (const Member& member : population_.members())
    (member.network() ? networks : boltzmann).Add(member.reward);
  progress.gnn_members = networks.count;
  progress.boltzmann_members = boltzmann.count;
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

absl::StatusOr<std::string> Run::Save() const {
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
  if (best_network != members.end()) checkpoint.champion = best_network->weights;
  std::string& out = checkpoint.training;
  if (learner_ != nullptr) {
    MG_ASSIGN_OR_RETURN(const std::string learned, learner_->Save());
    WriteBytes(learned, out);
  }
  population_.Write(out);
  replay_.Write(out);
  compilers_.Write(out);
  WriteBytes(explored_.map, out);
  WriteBytes(best().map, out);
  WriteBytes(best().best_ps, out);
  for (const int64_t count : {contributions_.gnn, contributions_.boltzmann, contributions_.gradient,
                              contributions_.refining}) {
    WriteBytes(count, out);
  }
  return PackCheckpoint(checkpoint);
}

absl::Status Run::Restore(const Checkpoint& checkpoint) {
  absl::string_view in = checkpoint.training;
  if (learner_ != nullptr) {
    absl::string_view learned;
    MG_RETURN_IF_ERROR(ReadBytes(in, learned));
    MG_RETURN_IF_ERROR(learner_->Load(learned));
  }
  MG_RETURN_IF_ERROR(population_.Read(in, graph_, policies_[0]->num_weights()));
  MG_RETURN_IF_ERROR(replay_.Read(in, graph_.levels));
  MG_RETURN_IF_ERROR(compilers_.Read(in, graph_.levels));
  PlacementMap map;
  MG_RETURN_IF_ERROR(ReadBytes(in, map));
  const absl::StatusOr<PlacementOutcome> explored = problem_->Evaluate(map);
  if (!explored.ok()) return CutShort();
  explored_ = {map, explored->reward};
  std::vector<int64_t> best_ps;
  MG_RETURN_IF_ERROR(ReadBytes(in, map));
  MG_RETURN_IF_ERROR(ReadBytes(in, best_ps));
  if (!problem_->Evaluate(map).ok()) return CutShort();
  champion_.Restore(*problem_, std::move(map), std::move(best_ps));
  for (int64_t* count : {&contributions_.gnn, &contributions_.boltzmann, &contributions_.gradient,
                         &contributions_.refining}) {
    MG_RETURN_IF_ERROR(ReadBytes(in, *count));
  }
  if (!in.empty()) return CutShort();
  generations_ = checkpoint.generations;
  return absl::OkStatus();
}

}  // namespace mallocgame::egrl
