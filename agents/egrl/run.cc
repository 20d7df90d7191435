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
  Restore(problem, PlacementMap(problem.map_size(), static_cast<uint8_t>(problem.levels() - 1)), {});
}

bool Champion::Offer(const PlacementProblem& problem, const PlacementMap& map, const PlacementOutcome& outcome) {
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

void Champion::Restore(const PlacementProblem& problem, PlacementMap map, std::vector<int64_t> best_ps) {
  result_.map = std::move(map);
  result_.outcome = *problem.Evaluate(result_.map);
  result_.evaluations = static_cast<int64_t>(best_ps.size());
  result_.best_ps = std::move(best_ps);
}

Run::Run(std::shared_ptr<const PlacementProblem> problem, std::string name, const Config& config, uint64_t seed, int threads,
         std::vector<std::vector<float>> ancestors)
    : problem_(std::move(problem)), name_(std::move(name)), config_(config), seed_(seed),
      pool_(threads > 0 ? threads : std::max(1, static_cast<int>(std::thread::hardware_concurrency()))),
      graph_(MakeProblemGraph(*problem_)),
      population_(config, config.start == "compiler" ? &problem_->baseline_map() : nullptr, std::move(ancestors)),
      replay_(problem_->map_size(), static_cast<size_t>(config.capacity)), champion_(*problem_) {}

absl::StatusOr<std::unique_ptr<Run>> Run::Create(std::shared_ptr<const PlacementProblem> problem, std::string name,
                                                 const Config& config, uint64_t seed, int threads,
                                                 std::vector<std::vector<float>> ancestors) {
  if (threads < 0 || threads > 1024) {
    return absl::InvalidArgumentError(absl::StrCat("egrl: threads: found ", threads, ", allowed: 0 to 1024"));
  }
  MG_RETURN_IF_ERROR(Check(config));
  std::unique_ptr<Run> run(new Run(std::move(problem), std::move(name), config, seed, threads, ancestors));
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
    return absl::InvalidArgumentError(absl::StrCat("egrl: found a network of ", weights.size(), " weights, expected ",
                                                   policies_[0]->num_weights()));
  }
  if (!config_.gradient) return absl::OkStatus();
  MG_ASSIGN_OR_RETURN(learner_, Learner::Create(config_, graph_, Mix(seed_, kNetworkStream)));
  if (!ancestors.empty()) learner_->SetActor(ancestors[0]);
  return absl::OkStatus();
}

absl::StatusOr<Progress> Run::Step(const std::atomic<bool>* cancel) {
  return StepUnless([cancel] { return cancel != nullptr && cancel->load(std::memory_order_relaxed); });
}

absl::StatusOr<Progress> Run::StepUnless(const std::function<bool()>& interrupted) {
  if (broken_) return absl::FailedPreconditionError("egrl: the last generation was cancelled; go on from a checkpoint");
  broken_ = true;
  training::UseOneTorchThread();
  const auto start = std::chrono::steady_clock::now();
  const uint64_t seed = Mix(Mix(seed_, kGenerationStream), static_cast<uint64_t>(generations_));
  Rng rng(seed, kConceptionStream);
  std::vector<float> actor;
  if (learner_ != nullptr) actor = learner_->Actor();
  const bool migrates = learning() && generations_ % config_.migration == 0;

  std::vector<Birth> births;
  if (config_.population > 0) births = population_.Conceive(rng, migrates ? &actor : nullptr);
  const size_t children = births.size();
  if (learner_ != nullptr) {
    for (Birth& rollout : Rollouts(actor)) births.push_back(std::move(rollout));
  }
  std::vector<Graded> graded(births.size());
  MG_RETURN_IF_ERROR(Grade(births, seed, interrupted, graded));

  Progress progress;
  const int64_t before = evaluations();
  Take(graded, children, progress);
  progress.rollout_seconds = SecondsSince(start);
  if (learning()) {
    const auto due = [this](int64_t maps) { return static_cast<int64_t>(config_.updates * static_cast<double>(maps)); };
    MG_RETURN_IF_ERROR(Learn(due(evaluations()) - due(before), Mix(seed, kLearningStream), interrupted, progress));
  }
  progress.learn_seconds = SecondsSince(start) - progress.rollout_seconds;
  progress.generation = generations_++;
  Describe(progress);
  broken_ = false;
  return progress;
}

// What a rollout finds joins the population as a Boltzmann chromosome that the actor seeds.
std::vector<Birth> Run::Rollouts(const std::vector<float>& actor) const {
  const Birth rollout = [this, &actor](const Nursery& nursery) -> absl::StatusOr<Member> {
    MG_ASSIGN_OR_RETURN(Member member, NetworkMember(actor, nursery.policy, nursery.graph));
    const double share = std::min(1.0, config_.exploration / graph_.decisions);
    MG_ASSIGN_OR_RETURN(member.map, ChooseMap(nursery, [&] {
      PlacementMap map = DrawMap(member.probabilities, graph_, nursery.rng);
      for (size_t i = 0; i < map.size(); ++i) {
        if (graph_.real[i] == 0 || nursery.rng.Uniform() >= share) continue;
        map[i] = static_cast<uint8_t>(nursery.rng.Below(static_cast<uint32_t>(graph_.levels)));
      }
      return map;
    }));
    member.genes = GenesOf(member, nursery);
    member.weights.clear();
    member.probabilities.clear();
    return member;
  };
  return std::vector<Birth>(static_cast<size_t>(config_.rollouts), rollout);
}

absl::Status Run::Grade(const std::vector<Birth>& births, uint64_t seed, const std::function<bool()>& interrupted,
                        std::vector<Graded>& graded) {
  const auto count = static_cast<int>(births.size()), workers = static_cast<int>(policies_.size());
  std::atomic<int> next{0};
  pool_.Run(workers, 1, [&](int worker, int) {
    training::UseOneTorchThread();
    for (int i = next++; i < count; i = next++) {
      const auto at = static_cast<size_t>(i);
      if (interrupted()) {
        graded[at].member = absl::CancelledError("egrl: cancelled");
        continue;
      }
      Rng rng(seed, kBirthStream + static_cast<uint64_t>(i));
      const Learner* const critics = learning() && rng.Uniform() < config_.screened ? learner_.get() : nullptr;
      graded[at].member = births[at]({config_, graph_, replay_, critics, *policies_[static_cast<size_t>(worker)], rng});
      if (!graded[at].member.ok()) continue;
      graded[at].outcome = *problem_->Evaluate(graded[at].member->map);
      graded[at].member->reward = graded[at].outcome.reward;
    }
  });
  for (const Graded& one : graded) MG_RETURN_IF_ERROR(one.member.status());
  return absl::OkStatus();
}

void Run::Take(std::vector<Graded>& graded, size_t rollouts_from, Progress& progress) {
  std::vector<Member> children, guests;
  Tally rollouts, valid, fresh;
  for (size_t i = 0; i < graded.size(); ++i) {
    Member& member = *graded[i].member;
    const PlacementOutcome& outcome = graded[i].outcome;
    const bool rollout = i >= rollouts_from;
    if (champion_.Offer(*problem_, member.map, outcome)) {
      const bool of_gradient = rollout || member.migrant;
      ++(of_gradient ? contributions_.gradient : member.network() ? contributions_.gnn : contributions_.boltzmann);
    }
    fresh.Add(!replay_.Holds(member.map));
    replay_.Add(member.map, outcome.reward);
    valid.Add(outcome.moved == 0 || problem_->game() != nullptr);
    if (rollout) rollouts.Add(outcome.reward);
    (rollout ? guests : children).push_back(std::move(member));
  }
  population_.Admit(std::move(children), std::move(guests));
  progress.valid = valid.mean();
  progress.fresh = fresh.mean();
  progress.gradient_mean = rollouts.mean();
  progress.gradient_max = rollouts.max();
}

absl::Status Run::Learn(int64_t updates, uint64_t seed, const std::function<bool()>& interrupted, Progress& progress) {
  Rng rng(seed);
  const auto share = 1 / static_cast<double>(std::max<int64_t>(1, updates));
  for (int64_t update = 0; update < updates; ++update) {
    if (interrupted()) return absl::CancelledError("egrl: cancelled");
    std::vector<uint8_t> maps;
    std::vector<double> rewards;
    replay_.Draw(static_cast<size_t>(config_.batch), rng, &maps, &rewards);
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
  for (const Member& member : population_.members()) (member.network() ? networks : boltzmann).Add(member.reward);
  progress.gnn_members = networks.count;
  progress.boltzmann_members = boltzmann.count;
  progress.gnn_mean = networks.mean();
  progress.gnn_max = networks.max();
  progress.boltzmann_mean = boltzmann.mean();
  progress.boltzmann_max = boltzmann.max();
  progress.best_by_gnn = contributions_.gnn;
  progress.best_by_boltzmann = contributions_.boltzmann;
  progress.best_by_gradient = contributions_.gradient;
  progress.migrants = population_.migrations().arrived;
  progress.migrants_elite = population_.migrations().elite;
  progress.migrants_selected = population_.migrations().selected;
  progress.updates = learner_ == nullptr ? 0 : learner_->updates();
  progress.replay = static_cast<int64_t>(replay_.size());
}

absl::StatusOr<std::string> Run::Save() const {
  if (broken_) return absl::FailedPreconditionError("egrl: the last generation was cancelled, there is nothing to save");
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
  const auto best_network = std::find_if(members.begin(), members.end(), [](const Member& m) { return m.network(); });
  if (best_network != members.end()) checkpoint.champion = best_network->weights;
  std::string& out = checkpoint.training;
  if (learner_ != nullptr) {
    MG_ASSIGN_OR_RETURN(const std::string learned, learner_->Save());
    WriteBytes(learned, out);
  }
  population_.Write(out);
  replay_.Write(out);
  WriteBytes(best().map, out);
  WriteBytes(best().best_ps, out);
  for (const int64_t count : {contributions_.gnn, contributions_.boltzmann, contributions_.gradient}) WriteBytes(count, out);
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
  PlacementMap map;
  std::vector<int64_t> best_ps;
  MG_RETURN_IF_ERROR(ReadBytes(in, map));
  MG_RETURN_IF_ERROR(ReadBytes(in, best_ps));
  if (!problem_->Evaluate(map).ok()) return CutShort();
  champion_.Restore(*problem_, std::move(map), std::move(best_ps));
  for (int64_t* count : {&contributions_.gnn, &contributions_.boltzmann, &contributions_.gradient}) {
    MG_RETURN_IF_ERROR(ReadBytes(in, *count));
  }
  if (!in.empty()) return CutShort();
  generations_ = checkpoint.generations;
  return absl::OkStatus();
}

}  // namespace mallocgame::egrl
