#include "agents/egrl/agent.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "agents/egrl/checkpoint.h"
#include "agents/egrl/learner.h"
#include "agents/egrl/policy.h"
#include "agents/egrl/population.h"
#include "agents/egrl/replay.h"
#include "agents/egrl/trainer.h"
#include "agents/training/torch_runtime.h"
#include "mallocgame/base/error.h"
#include "mallocgame/game/play_actions.h"
#include "mallocgame/game/priority/priority_state.h"
#include "mallocgame/game/time/state.h"
#include "mallocgame/placement/best_map.h"
#include "mallocgame/search/game_variants.h"
#include "mallocgame/search/starts.h"
#include "mallocgame/simulator/simulate.h"
#include "mallocgame/solvers/budget.h"
#include "mallocgame/solvers/playing/players.h"

namespace mallocgame::egrl {
namespace {

constexpr int kPlacingClimbs = 100;          // the most for each map that an agent places
constexpr int64_t kPaperEvaluations = 4000;  // the limit where none is given
// The share of a time limit in which the plan is made from which a priority game is refined.
constexpr double kStarting = 0.05;

// Plays everything into main memory, as far as the rules leave a choice.
absl::Status PlayAllMain(const Game& game, Budget& budget) {
  const std::unique_ptr<Position> position = game.NewInitialPosition();
  static_assert(static_cast<int>(Mode::kSkip) == static_cast<int>(Action::kDrop));
  constexpr int kInMain = static_cast<int>(Action::kDrop);  // of the first candidate
  while (!position->IsTerminal()) {
    const ActionSet legal = position->legal_actions();
    MG_RETURN_IF_ERROR(position->Apply(legal.Has(kInMain) ? kInMain : *legal.begin()).status());
  }
  budget.Finished(*position);
  return absl::OkStatus();
}

absl::StatusOr<SolveResult> Judge(const Budget& budget) {
  MG_ASSIGN_OR_RETURN(SolveResult result, JudgeBestGame(budget));
  result.status = SolveStatus::kStopped;
  result.found_by = "egrl";
  for (Improvement& better : result.curve) better.solver = "egrl";
  return result;
}

absl::Status CheckLevels(int found, int trained) {
  if (found == trained) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("egrl: the agent was trained with ", trained,
                                                 " levels of memory, found a problem with ",
                                                 found));
}

// Trains one generation after another, as long as the next one is within the limits.
absl::Status TrainWithin(const SolveLimits& limits, Trainer& trainer, Budget& budget) {
  const auto interrupted = [&budget] { return budget.deadline().Passed(); };
  // `generation` is the number of maps of the largest generation so far, which is the first.
  int64_t best_ps = 0, counted = 0, generation = 0;
  while (!budget.Exhausted()) {
    if (limits.evaluations > 0 && budget.evaluations() + generation > limits.evaluations) break;
    const absl::StatusOr<Progress> progress = trainer.StepUnless(interrupted, nullptr);
    if (absl::IsCancelled(progress.status())) break;
    MG_RETURN_IF_ERROR(progress.status());
    generation = std::max(generation, trainer.evaluations() - counted);
    for (; counted < trainer.evaluations(); ++counted) budget.Looked();
    if (progress->best_ps == best_ps) continue;
    best_ps = progress->best_ps;
    const PlacementProblem& problem = *trainer.problems()[0];
    MG_ASSIGN_OR_RETURN(const std::vector<uint8_t> actions, problem.Play(trainer.best(0).map));
    MG_ASSIGN_OR_RETURN(const std::unique_ptr<Position> end, PlayActions(*problem.game(), actions));
    budget.Finished(*end);
  }
  return absl::OkStatus();
}

absl::StatusOr<SolveResult> TrainOn(const SolveProblem& problem, SolveLimits limits,
                                    const Config& config,
                                    const std::vector<std::vector<float>>& ancestors,
                                    std::optional<int> levels = std::nullopt) {
  if (limits.seconds <= 0 && limits.evaluations <= 0) limits.evaluations = kPaperEvaluations;
  const Game& game = *problem.game;
  Budget budget(limits);
  MG_RETURN_IF_ERROR(PlayAllMain(game, budget));
  std::optional<int64_t> baseline_ps;
  if (problem.xla_plan != nullptr) {
    MG_ASSIGN_OR_RETURN(const Report xla, Simulate(game.cost_model(), *problem.xla_plan));
    baseline_ps = xla.latency_ps;
  }
  std::optional<Plan> start;
  std::shared_ptr<const Game> played = problem.game;
  if (const PriorityGame* const priority = PriorityGame::From(game); priority != nullptr) {
    // With fewer candidates a run has its turn later than its map says.
    const GameStart best =
        StartsWithin(*GameToSearch(*priority), budget, kStarting, 2 * kStarting)[0];
    played = best.game;
    PriorityState state(best.game);
    state.PlayOn(best.intent);
    budget.Keep(state);
    start = state.ToPlan();
  }
  // A program without anything to place has been played already.
  const auto placement = PlacementProblem::Create(played, baseline_ps, start ? &*start : nullptr);
  if (absl::IsInvalidArgument(placement.status())) return Judge(budget);
  MG_RETURN_IF_ERROR(placement.status());
  if (levels) MG_RETURN_IF_ERROR(CheckLevels((*placement)->levels(), *levels));
  MG_ASSIGN_OR_RETURN(const auto trainer,
                      Trainer::Create({*placement}, config, limits.seed, 1, ancestors));
  MG_RETURN_IF_ERROR(TrainWithin(limits, *trainer, budget));
  return Judge(budget);
}

class EgrlAgent final : public Agent {
 public:
  explicit EgrlAgent(Checkpoint checkpoint) : checkpoint_(std::move(checkpoint)) {
    checkpoint_.training.clear();
    for (const std::vector<float>* weights : {&checkpoint_.actor, &checkpoint_.best_network}) {
      if (!weights->empty()) networks_.push_back(*weights);
    }
  }

  absl::StatusOr<PlacementSearchResult> Place(const PlacementProblem& problem, int samples,
                                              uint64_t seed) const override {
    MG_RETURN_IF_ERROR(CheckLevels(problem.levels(), levels()));
    if (samples < 0)
      return absl::InvalidArgumentError(
          absl::StrCat("egrl: samples: found ", samples, ", allowed: 0 or more"));
    training::UseOneTorchThread();
    const ProblemGraph graph = MakeProblemGraph(problem);
    MG_ASSIGN_OR_RETURN(const auto critics, CriticsOf(graph));
    const Replay nothing(problem.map_size(), 1);
    std::vector<std::unique_ptr<Policy>> policies;
    std::vector<Member> members;
    Rng rng(seed);
    Config placing = checkpoint_.config;
    placing.penalty = false;  // maps are made to fit
    const auto context = [&](Rng& stream) {
      return BreedingContext{placing,       problem,          graph, nothing,
                             critics.get(), *policies.back(), stream};
    };
    for (const std::vector<float>& weights : networks_) {
      MG_RETURN_IF_ERROR(CheckWeights("a network", weights, Policy::NumWeights(config(), graph)));
      MG_ASSIGN_OR_RETURN(auto policy, Policy::Create(checkpoint_.config, graph));
      policies.push_back(std::move(policy));
      MG_ASSIGN_OR_RETURN(Member member, NetworkMember(weights, context(rng)));
      members.push_back(std::move(member));
    }
    BestMap best(problem);
    const auto offer = [&](const PlacementMap& map) -> absl::Status {
      MG_ASSIGN_OR_RETURN(const PlacementOutcome outcome, problem.Evaluate(map));
      best.Offer(map, outcome);
      return absl::OkStatus();
    };
    for (const Member& member : members) MG_RETURN_IF_ERROR(offer(member.map));
    for (size_t i = 0; i < members.size(); ++i) {
      Rng stream(seed, i);
      for (int sample = 0; sample < samples; ++sample) {
        PlacementMap map =
            Settled(DrawMap(members[i].probabilities, graph, stream), context(stream));
        if (critics != nullptr && placing.redrawn > 0) {
          MG_ASSIGN_OR_RETURN(map, Climbed(map, kPlacingClimbs, context(stream)));
        }
        MG_RETURN_IF_ERROR(offer(map));
      }
    }
    return best.result();
  }

  absl::StatusOr<SolveResult> Solve(const SolveProblem& problem,
                                    const SolveLimits& limits) const override {
    return TrainOn(problem, limits, checkpoint_.config, networks_, levels());
  }

  const Config& config() const override { return checkpoint_.config; }
  const std::string& name() const override { return checkpoint_.name; }
  int levels() const override { return checkpoint_.levels; }
  std::string game() const override { return levels() == kActionModes ? "priority" : "time"; }
  int64_t generations() const override { return checkpoint_.generations; }
  int64_t evaluations() const override { return checkpoint_.evaluations; }

 private:
  static absl::Status CheckWeights(absl::string_view whose, const std::vector<float>& found,
                                   size_t expected) {
    if (found.size() == expected) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("egrl: the checkpoint has ", whose, " of ",
                                                   found.size(), " weights, expected ", expected));
  }

  // Null if the agent has none.
  absl::StatusOr<std::unique_ptr<Learner>> CriticsOf(const ProblemGraph& graph) const {
    const std::vector<float>& weights = checkpoint_.critics;
    if (weights.empty()) return nullptr;
    // A learner has an actor, too, which must not be larger than what the checkpoint holds.
    MG_RETURN_IF_ERROR(CheckWeights("critics", weights, Learner::NumCritics(config(), graph)));
    MG_RETURN_IF_ERROR(
        CheckWeights("an actor", checkpoint_.actor, Policy::NumWeights(config(), graph)));
    MG_ASSIGN_OR_RETURN(auto critics, Learner::Create(checkpoint_.config, {graph}, 0));
    critics->SetCritics(weights);
    MG_RETURN_IF_ERROR(critics->Prepare(0));
    return critics;
  }

  Checkpoint checkpoint_;
  std::vector<std::vector<float>> networks_;  // weights; those of the actor come first
};

}  // namespace

absl::StatusOr<std::shared_ptr<const Agent>> Agent::Load(absl::string_view checkpoint) {
  MG_ASSIGN_OR_RETURN(Checkpoint unpacked, training::UnpackCheckpoint<Checkpoint>(checkpoint));
  return std::make_shared<EgrlAgent>(std::move(unpacked));
}

NamedSolver EgrlSolver() {
  return {"egrl",
          [](const SolveProblem& problem, const SolveLimits& limits) {
            return TrainOn(problem, limits, {}, {});
          },
          /*portfolio_share=*/0,
          {"priority", "time"}};
}

}  // namespace mallocgame::egrl
