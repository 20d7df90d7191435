#include "agents/muzero/demonstrations.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "agents/muzero/task.h"
#include "agents/training/bytes.h"
#include "mallocgame/base/deadline.h"
#include "mallocgame/base/error.h"
#include "mallocgame/base/rng.h"
#include "mallocgame/game/play_actions.h"
#include "mallocgame/game/priority/priority_state.h"
#include "mallocgame/plan/validate.h"
#include "mallocgame/replay/plan_file.h"
#include "mallocgame/search/game_variants.h"
#include "mallocgame/search/starts.h"
#include "mallocgame/solvers/registry.h"
#include "mallocgame/tree/schedule_policy.h"

namespace mallocgame::muzero {
namespace {

using training::ReadBytes;
using training::WriteBytes;

constexpr uint64_t kDemonstrationStream = 100;  // of a trainer's seed

struct Player {
  const char* solver;
  int64_t evaluations = 0;
  std::shared_ptr<const Game> game = nullptr;  // in place of the problem's
};

bool SeesGreedy(const Config& config) { return config.baseline == "greedy"; }

int DecisionsOfAGame(const Game& game) {
  const std::unique_ptr<Position> position = game.NewInitialPosition();
  position->PlayOn(game.OpenIntent());
  return position->num_decisions();
}

std::vector<Player> PlayersOf(const SolveProblem& problem, const Config& config,
                              double anneal_decisions) {
  if (config.paper()) return {{"all-main"}};
  std::vector<Player> players = {
      {"greedy"}, {"rent", 0, TimeGameOf(*problem.game)}, {"styles"}, {"xla-heuristic"}};
  if (anneal_decisions <= 0) return players;
  const std::shared_ptr<const Game> annealed = PriorityGameOf(*problem.game);
  const double games = anneal_decisions / annealed->options().decision_cost() /
                       std::max(1, DecisionsOfAGame(*annealed));
  players.push_back({"anneal", 1 + static_cast<int64_t>(games), annealed});
  if (problem.xla_plan != nullptr) players.push_back({"xla-assigned"});
  return players;
}

// That of the actions that made the plan; null if none did.
const Game* GameOf(const SolveResult& result) {
  return result.play ? result.play->game.get() : nullptr;
}

// What the demonstrator wanted, which is read from its game if that is of the same kind, or else
// from its plan.
absl::StatusOr<Intent> IntentOf(const Game& game, const SolveResult& result) {
  const absl::string_view name = game.options().game();
  if (result.play && !result.play->decided.empty() && WeighsImportance(game))
    return IntentLike(game, result.play->decided);
  const Game* const played = GameOf(result);
  if (played == nullptr || played->options().game() != name) return game.ReadPlan(result.plan);
  MG_ASSIGN_OR_RETURN(const std::unique_ptr<Position> end,
                      PlayActions(*played, result.play->actions));
  return IntentLike(game, ReadGame(*end));
}

absl::StatusOr<Demonstration> Play(const Game& game, SolveResult result) {
  if (game.options().decides_order()) {
    const std::unique_ptr<Position> position = game.NewInitialPosition();
    mcts::MakePolicy(game, &result.plan)->PlayOn(*position);
    return Demonstration{{position->actions().begin(), position->actions().end()},
                         position->latency_ps(),
                         std::move(result)};
  }
  if (const auto* const played = GameOf(result);
      played != nullptr && played->options() == game.options())
    return Demonstration{result.play->actions, result.report.latency_ps, std::move(result)};
  MG_ASSIGN_OR_RETURN(const Intent intent, IntentOf(game, result));
  const std::unique_ptr<Position> position = game.NewInitialPosition();
  position->PlayOn(intent);
  return Demonstration{{position->actions().begin(), position->actions().end()},
                       position->latency_ps(),
                       std::move(result)};
}

absl::StatusOr<SolveResult> ResultOf(const GameStart& start) {
  PriorityState end(start.game);
  end.PlayOn(start.intent);
  MG_ASSIGN_OR_RETURN(
      SolveResult result,
      JudgePlay({{end.actions().begin(), end.actions().end()}, start.game, {}, {}}));
  result.found_by = start.follows ? "styles" : "greedy";
  return result;
}

bool HasDecisions(const Game& game) {
  const std::unique_ptr<Position> position = game.NewInitialPosition();
  PlayForced(*position);
  return !position->IsTerminal();
}

// The problem that they are asked to solve: of a schedule game, the priority game.
SolveProblem PlacementOf(const SolveProblem& problem) {
  SolveProblem placement = problem;
  if (problem.game->options().decides_order()) placement.game = PriorityGameOf(*problem.game);
  return placement;
}

absl::StatusOr<std::vector<SolveResult>> Ask(const std::vector<Player>& players,
                                             const SolveProblem& placement, uint64_t seed,
                                             const std::atomic<bool>* cancel) {
  std::vector<SolveResult> results;
  for (const Player& player : players) {
    SolveProblem played = placement;
    if (player.game != nullptr) played.game = player.game;
    SolveLimits limits;
    limits.seconds = 0;
    limits.evaluations = player.evaluations;
    limits.seed = seed;
    limits.cancel = cancel;
    MG_ASSIGN_OR_RETURN(SolveResult result, Solve(player.solver, played, limits));
    results.push_back(std::move(result));
  }
  return results;
}

}  // namespace

bool WeighsImportance(const Game& game) {
  return game.options().game() == absl::string_view("priority");
}

absl::StatusOr<std::vector<SolveResult>> AskDemonstrators(const SolveProblem& problem,
                                                          const Config& config,
                                                          double anneal_decisions, uint64_t seed,
                                                          const std::atomic<bool>* cancel) {
  const SolveProblem placement = PlacementOf(problem);
  return Ask(PlayersOf(placement, config, anneal_decisions), placement, seed, cancel);
}

absl::StatusOr<Demonstration> BaselineOf(const std::shared_ptr<const Game>& game,
                                         const Config& config, uint64_t seed,
                                         const std::atomic<bool>* cancel) {
  const SolveProblem placement = PlacementOf({game, nullptr});
  std::vector<Player> players = PlayersOf(placement, config, 0);
  if (SeesGreedy(config)) players.resize(1);
  MG_ASSIGN_OR_RETURN(std::vector<SolveResult> results, Ask(players, placement, seed, cancel));
  if (cancel != nullptr && cancel->load()) return absl::CancelledError("muzero: cancelled");
  MG_ASSIGN_OR_RETURN(const std::vector<Demonstration> found,
                      Demonstrate(*game, std::move(results)));
  return BaselineAmong(found, config);
}

absl::Status AddPriorityStarts(const Game& game, const Deadline& deadline,
                               std::vector<SolveResult>& results) {
  if (!WeighsImportance(game)) return absl::OkStatus();
  const auto styled = std::find_if(results.begin(), results.end(), [](const SolveResult& result) {
    return result.play && !result.play->decided.empty();
  });
  std::optional<FoundPlan> followed;
  if (styled != results.end()) followed = {.plan = styled->plan, .decided = styled->play->decided};
  bool had = false;
  for (const GameStart& start : PriorityStarts(static_cast<const PriorityGame&>(game),
                                               followed ? &*followed : nullptr, deadline)) {
    // Greedy's game in `game` itself is among the results. The first that follows is the best.
    if (start.follows ? had : start.game->options() == game.options()) continue;
    had |= start.follows;
    MG_ASSIGN_OR_RETURN(SolveResult result, ResultOf(start));
    results.push_back(std::move(result));
  }
  return absl::OkStatus();
}

std::shared_ptr<const Game> MostPromising(const std::shared_ptr<const Game>& game,
                                          absl::Span<const SolveResult> results) {
  std::shared_ptr<const Game> best = game;
  int64_t least_ps = std::numeric_limits<int64_t>::max();
  for (const SolveResult& result : results) {
    const Game* const played = GameOf(result);
    if (played == nullptr || result.report.latency_ps >= least_ps ||
        played->options().game() != absl::string_view(game->options().game()))
      continue;
    const std::unique_ptr<GameOptions> options = played->options().Clone();
    for (const auto& [name, value] : game->options().List()) {
      if (name == "candidates") MG_CHECK(options->Set(name, value).ok());  // as networks are made
    }
    const std::shared_ptr<const Game> other =
        *options == game->options() ? game : GameWith(*game, *options);
    if (!HasDecisions(*other)) continue;
    least_ps = result.report.latency_ps;
    best = other;
  }
  return best;
}

absl::StatusOr<std::vector<Demonstration>> Demonstrate(const Game& game,
                                                       std::vector<SolveResult> results) {
  std::vector<Demonstration> demonstrations;
  for (SolveResult& result : results) {
    MG_ASSIGN_OR_RETURN(Demonstration demonstration, Play(game, std::move(result)));
    demonstrations.push_back(std::move(demonstration));
  }
  return demonstrations;
}

const Demonstration& BaselineAmong(absl::Span<const Demonstration> demonstrations,
                                   const Config& config) {
  if (SeesGreedy(config)) return demonstrations.front();
  return *std::min_element(
      demonstrations.begin(), demonstrations.end(),
      [](const auto& a, const auto& b) { return a.latency_ps < b.latency_ps; });
}

absl::StatusOr<Demonstrations> DemonstrationsFor(const TrainingProblem& problem,
                                                 std::shared_ptr<const Game> game,
                                                 const Config& config, uint64_t seed,
                                                 const std::atomic<bool>* cancel) {
  const Plan* xla_plan = problem.xla_plan ? &*problem.xla_plan : nullptr;
  MG_ASSIGN_OR_RETURN(std::vector<SolveResult> results,
                      AskDemonstrators({game, xla_plan}, config, config.demonstration_decisions,
                                       MixSeeds(seed, kDemonstrationStream), cancel));
  if (problem.own_game == nullptr) {
    MG_RETURN_IF_ERROR(AddPriorityStarts(*game, Deadline(0, cancel), results));
    game = MostPromising(game, results);
  }
  Demonstrations demonstrations = {std::move(game), {}};
  MG_ASSIGN_OR_RETURN(demonstrations.all, Demonstrate(*demonstrations.game, std::move(results)));
  return demonstrations;
}

void WriteFound(const Game& game, const SolveResult& found, std::string& out) {
  const Program& program = game.program();
  const std::vector<Tick>& order = found.order;
  WriteBytes(order.empty()
                 ? PlanToJson(program, found.plan)
                 : OrderedPlanToJson(program, order, game.PlannedAt(order)->program(), found.plan),
             out);
  WriteBytes(found.found_by, out);
}

absl::StatusOr<SolveResult> ReadFound(absl::string_view& in, const Game& game) {
  absl::string_view plan;
  std::string found_by;
  MG_RETURN_IF_ERROR(ReadBytes(in, plan));
  MG_RETURN_IF_ERROR(ReadBytes(in, found_by));
  MG_ASSIGN_OR_RETURN(OrderedPlan read, OrderedPlanFromJson(game.shared_program(), plan));
  if (!Validate(*read.program, game.hardware(), read.plan).ok() ||
      (!read.order.empty() && !game.options().decides_order()))
    return training::CutShort();
  MG_ASSIGN_OR_RETURN(SolveResult found,
                      JudgePlan(*game.PlannedAt(read.order), std::move(read.plan)));
  found.order = std::move(read.order);
  found.found_by = std::move(found_by);
  return found;
}

void Write(const Demonstrations& demonstrations, std::string& out) {
  WriteOwnGame(*demonstrations.game, out);
  WriteBytes(static_cast<uint64_t>(demonstrations.all.size()), out);
  for (const Demonstration& one : demonstrations.all) {
    WriteBytes(one.actions, out);
    WriteFound(*demonstrations.game, one.result, out);
  }
}

absl::StatusOr<Demonstrations> ReadDemonstrations(absl::string_view in, const Game& game,
                                                  const Config& config) {
  Demonstrations demonstrations;
  MG_ASSIGN_OR_RETURN(demonstrations.game,
                      ReadOwnGame(in, game.shared_program(), game.hardware(), config));
  uint64_t count = 0;
  MG_RETURN_IF_ERROR(ReadBytes(in, count));
  for (uint64_t i = 0; i < count; ++i) {
    Demonstration one;
    MG_RETURN_IF_ERROR(ReadBytes(in, one.actions));
    MG_ASSIGN_OR_RETURN(one.result, ReadFound(in, *demonstrations.game));
    const auto end = PlayActions(*demonstrations.game, one.actions);
    if (!end.ok() || !(*end)->IsTerminal()) return training::CutShort();
    one.latency_ps = (*end)->latency_ps();
    demonstrations.all.push_back(std::move(one));
  }
  if (demonstrations.all.empty() || !in.empty()) return training::CutShort();
  return demonstrations;
}

}  // namespace mallocgame::muzero
