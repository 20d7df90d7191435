#include "agents/egrl/evolution.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agents/training/bytes.h"
#include "agents/training/checkpoint.h"
#include "agents/training/threads.h"
#include "agents/training/torch_runtime.h"
#include "mallocgame/base/error.h"

namespace mallocgame::egrl {
namespace {

using training::CutShort;
using training::ReadBytes;
using training::ReadField;
using training::WriteBytes;

// What Harvest needs beside the networks.
struct Assignment {
  uint64_t seed = 0;
  std::vector<float> ancestors;  // of the first generation, one behind the other
  std::string evolution;         // what Write wrote

  template <class Self>
  static auto Fields(Self& self) {
    return std::tie(self.seed, self.ancestors, self.evolution);
  }
};

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

// The baseline's map, and the one with everything in the fastest level as far as that is possible.
std::vector<PlacementMap> CompilersMaps(const PlacementProblem& problem) {
  PlacementMap fastest(problem.map_size(), 0);
  if (problem.game() == nullptr) fastest = *problem.Rectify(fastest);
  if (problem.game() != nullptr && problem.baseline_map() == fastest) return {fastest};
  return {problem.baseline_map(), std::move(fastest)};
}

Birth Chromosome(const PlacementMap& map) {
  return [map](const BreedingContext& context) -> absl::StatusOr<Member> {
    return ChromosomeAt(map, context);
  };
}

// A rollout of the actor. What it finds joins the population as a Boltzmann chromosome with genes
// from the actor.
Birth Rollout(const std::vector<float>& actor) {
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

template <class T>
absl::StatusOr<T> Unpacked(absl::string_view bytes) {
  T value;
  MG_RETURN_IF_ERROR(ReadField(bytes, value));
  if (!bytes.empty()) return CutShort();
  return value;
}

}  // namespace

int64_t& Evolution::Contributions::Of(Source source, const Member& member) {
  if (source == Source::kRefining) return refining;
  if (source == Source::kGradient || member.migrant) return gradient;
  return member.network() ? gnn : boltzmann;
}

Evolution::Evolution(const PlacementProblem& problem, const Config& config, WorkerPool& pool,
                     const std::vector<std::vector<float>>& ancestors)
    : problem_(problem), config_(config), pool_(pool), graph_(MakeProblemGraph(problem)),
      population_(config, ancestors), replay_(problem.map_size(), config.capacity), best_(problem) {
}

absl::StatusOr<std::unique_ptr<Evolution>> Evolution::Create(
    const PlacementProblem& problem, const Config& config, WorkerPool& pool,
    const std::vector<std::vector<float>>& ancestors) {
  std::unique_ptr<Evolution> evolution(new Evolution(problem, config, pool, ancestors));
  const ProblemGraph& graph = evolution->graph_;
  const size_t expected = Policy::NumWeights(config, graph);
  for (const std::vector<float>& weights : ancestors) {
    if (weights.size() == expected) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("egrl: found a network of ", weights.size(), " weights, expected ", expected));
  }
  for (int i = 0; i < pool.threads(); ++i) {
    MG_ASSIGN_OR_RETURN(auto policy, Policy::Create(config, graph));
    evolution->policies_.push_back(std::move(policy));
  }
  if (config.gradient) {
    MG_ASSIGN_OR_RETURN(evolution->critics_, Learner::Create(config, {graph}, 0));
  }
  return evolution;
}

absl::Status Evolution::Generate(const RoundNetworks& networks, uint64_t seed,
                                 const std::function<bool()>& interrupted,
                                 const std::string* harvest, Progress& progress) {
  const std::vector<PlannedMap> planned = Plan(seed, networks.actor);
  MG_ASSIGN_OR_RETURN(std::vector<GradedMap> graded,
                      harvest == nullptr ? Grade(planned, networks, seed, interrupted)
                                         : ReadHarvest(*harvest, seed, planned.size()));
  Take(planned, std::move(graded), progress);
  ++generations_;
  return absl::OkStatus();
}

std::string Evolution::Assign(uint64_t seed) const {
  Assignment assignment;
  assignment.seed = seed;
  if (population_.members().empty()) {
    for (const std::vector<float>& weights : population_.ancestors())
      assignment.ancestors.insert(assignment.ancestors.end(), weights.begin(), weights.end());
  }
  Write(assignment.evolution);
  std::string out;
  training::WriteField(assignment, out);
  return out;
}

absl::StatusOr<std::string> Evolution::Harvest(const PlacementProblem& problem,
                                               absl::string_view networks_bytes,
                                               absl::string_view assignment_bytes, int threads,
                                               const std::function<bool()>& interrupted) {
  MG_RETURN_IF_ERROR(training::CheckThreads("egrl", threads));
  MG_ASSIGN_OR_RETURN(const RoundNetworks networks, Unpacked<RoundNetworks>(networks_bytes));
  MG_ASSIGN_OR_RETURN(const Assignment assignment, Unpacked<Assignment>(assignment_bytes));
  MG_RETURN_IF_ERROR(Check(networks.config));
  const ProblemGraph graph = MakeProblemGraph(problem);
  MG_RETURN_IF_ERROR(CheckSizes(networks, graph));
  const auto size = static_cast<ptrdiff_t>(Policy::NumWeights(networks.config, graph));
  std::vector<std::vector<float>> ancestors;
  for (auto at = assignment.ancestors.begin(); at != assignment.ancestors.end(); at += size) {
    if (assignment.ancestors.end() - at < size) return CutShort();
    ancestors.emplace_back(at, at + size);
  }
  training::UseOneTorchThread();
  WorkerPool pool(training::ThreadsOrCores(threads));
  MG_ASSIGN_OR_RETURN(const auto evolution, Create(problem, networks.config, pool, ancestors));
  absl::string_view state = assignment.evolution;
  MG_RETURN_IF_ERROR(evolution->Read(state));
  if (!state.empty()) return CutShort();
  const std::vector<PlannedMap> planned = evolution->Plan(assignment.seed, networks.actor);
  MG_ASSIGN_OR_RETURN(const std::vector<GradedMap> graded,
                      evolution->Grade(planned, networks, assignment.seed, interrupted));
  std::string out;
  WriteBytes(assignment.seed, out);
  for (const GradedMap& one : graded) {
    WriteMember(one.member, out);
    WriteBytes(one.outcome.latency_ps, out);
    WriteBytes(one.outcome.moved, out);
  }
  return out;
}

absl::StatusOr<std::vector<Evolution::GradedMap>> Evolution::ReadHarvest(absl::string_view harvest,
                                                                         uint64_t seed,
                                                                         size_t expected) const {
  uint64_t found = 0;
  MG_RETURN_IF_ERROR(ReadBytes(harvest, found));
  if (found != seed) {
    return absl::InvalidArgumentError(absl::StrCat(
        "egrl: the harvest is of another generation: found seed ", found, ", expected ", seed));
  }
  std::vector<GradedMap> graded(expected);
  for (GradedMap& one : graded) {
    MG_RETURN_IF_ERROR(ReadMember(harvest, graph_, num_weights(), one.member));
    MG_RETURN_IF_ERROR(ReadBytes(harvest, one.outcome.latency_ps));
    MG_RETURN_IF_ERROR(ReadBytes(harvest, one.outcome.moved));
    one.outcome.reward = one.member.reward;
  }
  if (!harvest.empty()) return CutShort();
  return graded;
}

absl::Status Evolution::CheckSizes(const RoundNetworks& networks, const ProblemGraph& graph) {
  const Config& config = networks.config;
  const auto check = [&](const char* whose, size_t found, size_t weights) -> absl::Status {
    const size_t expected = config.gradient ? weights : 0;
    if (found == expected) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("egrl: found ", whose, " of ", found, " weights, expected ", expected));
  };
  MG_RETURN_IF_ERROR(check("an actor", networks.actor.size(), Policy::NumWeights(config, graph)));
  return check("critics", networks.critics.size(), Learner::NumCritics(config, graph));
}

bool Evolution::Learning() const {
  return config_.gradient && replay_.size() >= static_cast<size_t>(config_.warmup);
}

std::vector<Evolution::PlannedMap> Evolution::Plan(uint64_t seed, const std::vector<float>& actor) {
  Rng rng(seed, kBreedingStream);
  std::vector<PlannedMap> planned;
  if (config_.population > 0) {
    const bool migrates = Learning() && generations_ % config_.migration == 0;
    for (Birth& birth : population_.Breed(rng, migrates ? &actor : nullptr))
      planned.push_back({Source::kPopulation, std::move(birth)});
  }
  // Rounded so that no generation grades more than the first, which has the compilers' maps.
  const double due = static_cast<double>(planned.size()) * config_.refined / (1 - config_.refined);
  auto refinements = static_cast<int>(std::floor(due + rng.Uniform()));
  if (generations_ == 0) {
    const std::vector<PlacementMap> known = CompilersMaps(problem_);
    refinements = static_cast<int>(std::ceil(due));
    for (size_t i = 0; config_.refined > 0 && i < known.size(); ++i, --refinements)
      planned.push_back({Source::kRefining, Chromosome(known[i])});
  }
  for (int i = 0; i < refinements; ++i) planned.push_back({Source::kRefining, Refinement()});
  for (int i = 0; config_.gradient && i < config_.rollouts; ++i)
    planned.push_back({Source::kGradient, Rollout(actor)});
  return planned;
}

Birth Evolution::Refinement() const {
  return [this](const BreedingContext& context) -> absl::StatusOr<Member> {
    MG_ASSIGN_OR_RETURN(PlacementMap map,
                        Climbed(best_.result().map, context.config.climbs, context));
    return ChromosomeAt(std::move(map), context);
  };
}

absl::StatusOr<std::vector<Evolution::GradedMap>> Evolution::Grade(
    const std::vector<PlannedMap>& planned, const RoundNetworks& networks, uint64_t seed,
    const std::function<bool()>& interrupted) {
  if (critics_ != nullptr) {
    critics_->SetCritics(networks.critics);
    MG_RETURN_IF_ERROR(critics_->Prepare(0));
  }
  const auto count = static_cast<int>(planned.size());
  std::vector<GradedMap> graded(planned.size());
  std::vector<absl::Status> ended(planned.size());
  std::atomic<int> next{0};
  pool_.Run(pool_.threads(), 1, [&](int worker, int) {
    training::UseOneTorchThread();
    const auto make = [&](int i, GradedMap& one) -> absl::Status {
      if (interrupted()) return absl::CancelledError("egrl: cancelled");
      Rng rng(seed, kBirthStream + static_cast<uint64_t>(i));
      const Learner* const critics =
          Learning() && rng.Uniform() < config_.screened ? critics_.get() : nullptr;
      MG_ASSIGN_OR_RETURN(one.member, planned[i].birth({config_, problem_, graph_, replay_, critics,
                                                        *policies_[worker], rng}));
      one.outcome = problem_.Measured(*problem_.Evaluate(one.member.map), config_.noise, rng);
      one.member.reward = one.outcome.reward;
      return absl::OkStatus();
    };
    for (int i = next++; i < count; i = next++) ended[i] = make(i, graded[i]);
  });
  for (const absl::Status& status : ended) MG_RETURN_IF_ERROR(status);
  return graded;
}

void Evolution::Take(const std::vector<PlannedMap>& planned, std::vector<GradedMap> graded,
                     Progress& progress) {
  std::vector<Member> children, guests;
  Tally rollouts, refined, fresh, penalised;
  for (size_t i = 0; i < graded.size(); ++i) {
    const Source source = planned[i].source;
    const PlacementOutcome& outcome = graded[i].outcome;
    Member& member = graded[i].member;
    if (best_.Offer(member.map, outcome)) ++contributions_.Of(source, member);
    fresh.Add(!replay_.Holds(member.map));
    penalised.Add(outcome.reward < 0);
    const double over =
        static_cast<double>(outcome.latency_ps) / static_cast<double>(problem_.baseline_ps());
    replay_.Add(member.map, config_.penalty ? outcome.reward : -over);
    if (source == Source::kGradient) rollouts.Add(outcome.reward);
    if (source == Source::kRefining) refined.Add(outcome.reward);
    (source == Source::kPopulation ? children : guests).push_back(std::move(member));
  }
  population_.Admit(std::move(children), std::move(guests));
  progress.fresh = fresh.mean();
  progress.penalised = penalised.mean();
  progress.gradient_mean = rollouts.mean();
  progress.gradient_max = rollouts.max();
  progress.refined_mean = refined.mean();
  progress.refined_max = refined.max();
}

void Evolution::Describe(Progress& progress) const {
  const PlacementSearchResult& best = best_.result();
  progress.evaluations = best.evaluations;
  progress.best_ps = best.best_ps.back();
  progress.best_reward = best.outcome.reward;
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
  progress.replay = static_cast<int64_t>(replay_.size());
}

void Evolution::Write(std::string& out) const {
  population_.Write(out);
  replay_.Write(out);
  WriteBytes(best_.result().map, out);
  WriteBytes(best_.result().best_ps, out);
  WriteBytes(best_.measured_ps(), out);
  const Contributions& found = contributions_;
  for (const int64_t count :
       {found.gnn, found.boltzmann, found.gradient, found.refining, generations_})
    WriteBytes(count, out);
}

absl::Status Evolution::Read(absl::string_view& in) {
  MG_RETURN_IF_ERROR(population_.Read(in, graph_, num_weights()));
  MG_RETURN_IF_ERROR(replay_.Read(in, graph_.levels));
  PlacementMap map;
  std::vector<int64_t> best_ps;
  MG_RETURN_IF_ERROR(ReadBytes(in, map));
  int64_t measured_ps = 0;
  MG_RETURN_IF_ERROR(ReadBytes(in, best_ps));
  MG_RETURN_IF_ERROR(ReadBytes(in, measured_ps));
  if (!problem_.Evaluate(map).ok()) return CutShort();
  best_.Restore(std::move(map), std::move(best_ps), measured_ps);
  Contributions& found = contributions_;
  for (int64_t* count :
       {&found.gnn, &found.boltzmann, &found.gradient, &found.refining, &generations_})
    MG_RETURN_IF_ERROR(ReadBytes(in, *count));
  return absl::OkStatus();
}

}  // namespace mallocgame::egrl
