#include "agents/muzero/agent.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agents/muzero/checkpoint.h"
#include "agents/muzero/demonstrations.h"
#include "agents/muzero/harvest.h"
#include "agents/muzero/learner.h"
#include "agents/muzero/replay.h"
#include "agents/muzero/search_models.h"
#include "agents/muzero/self_play.h"
#include "agents/muzero/task.h"
#include "agents/training/torch_runtime.h"
#include "mallocgame/base/deadline.h"
#include "mallocgame/base/error.h"
#include "mallocgame/game/play_actions.h"
#include "mallocgame/search/game_variants.h"
#include "mallocgame/solvers/recorder.h"

namespace mallocgame::muzero {
namespace {

// How much self-play a solver does between two looks at the clock.
constexpr int kMovesBetweenLooks = 4;
constexpr int kVariedBetweenLooks = 400'000;  // varied decisions
// The share of a solver's time that choosing a priority game may take.
constexpr double kChoosingShare = 0.1;

// One call of Solve.
struct Solving {
  explicit Solving(const SolveLimits& limits) : recorder(limits) {}

  // The number of games that are left; 0 for no limit.
  int64_t games_left() const {
    const int64_t limit = recorder.limits().evaluations;
    return limit <= 0 ? 0 : std::max<int64_t>(1, limit - recorder.evaluations());
  }
  void Offer(SolveResult result) {
    if (recorder.Found(result.report.latency_ps, "muzero")) best = std::move(result);
  }

  Recorder recorder;
  SolveResult best = {};
};

class MuZeroAgent final : public Agent {
 public:
  explicit MuZeroAgent(const Checkpoint& checkpoint)
      : config_(checkpoint.config), iterations_(checkpoint.iterations), seed_(checkpoint.seed) {
    for (const auto& program : checkpoint.programs) programs_.push_back(program.name);
    play_config_ = config_;
    play_config_.moves = kMovesBetweenLooks;
    play_config_.varied_decisions = std::min<int>(config_.varied_decisions, kVariedBetweenLooks);
    play_config_.reanalysed = 0;
    // It starts from games that it has, and the policy would mostly follow them.
    if (config_.exact() && config_.simulations > 1) play_config_.prior = "uniform";
  }

  absl::Status Initialise(const std::string& networks) {
    num_actions_ = config_.game_options()->num_actions();
    MG_RETURN_IF_ERROR(Learner::CheckSize(config_, networks));
    MG_ASSIGN_OR_RETURN(learner_, Learner::Create(config_, seed_));
    return learner_->Load(networks);
  }

  absl::StatusOr<SolveResult> Solve(const SolveProblem& problem,
                                    const SolveLimits& limits) const override {
    Solving solving(limits);
    MG_ASSIGN_OR_RETURN(const auto own, OwnGame(problem.game));
    training::UseOneTorchThread();
    MG_ASSIGN_OR_RETURN(
        std::vector<SolveResult> results,
        AskInAllGames(own, limits.seed, solving.recorder.deadline().Share(kChoosingShare),
                      limits.cancel));
    const std::shared_ptr<const Game> game = MostPromising(own, results);
    MG_ASSIGN_OR_RETURN(std::vector<Demonstration> demonstrations,
                        Demonstrate(*game, std::move(results)));
    const auto by_play = [](const Demonstration& a, const Demonstration& b) {
      return a.latency_ps < b.latency_ps;
    };
    const auto by_plan = [](const Demonstration& a, const Demonstration& b) {
      return a.result.report.latency_ps < b.result.report.latency_ps;
    };
    const Demonstration& player =
        *std::min_element(demonstrations.begin(), demonstrations.end(), by_play);
    Demonstration& planner =
        *std::min_element(demonstrations.begin(), demonstrations.end(), by_plan);
    // A demonstrator's own plan is of the program's own order.
    if (player.latency_ps < planner.result.report.latency_ps) {
      MG_ASSIGN_OR_RETURN(planner.result, ResultOf(game, player.actions));
    }
    MG_ASSIGN_OR_RETURN(
        Task task, Task::Create(game, config_, BaselineAmong(demonstrations, config_).actions));
    solving.recorder.Count(planner.result.evaluations);
    solving.Offer(std::move(planner.result));
    MG_RETURN_IF_ERROR(PlayOn(task, demonstrations, limits.seed, solving));
    SolveResult& best = solving.best;
    best.status = SolveStatus::kStopped;
    best.found_by = "muzero";
    solving.recorder.Finish(best);
    return std::move(best);
  }

  absl::StatusOr<std::shared_ptr<const Game>> GameToPlay(
      const std::shared_ptr<const Game>& asked, const std::atomic<bool>* cancel) const override {
    MG_ASSIGN_OR_RETURN(auto own, OwnGame(asked));
    if (!WeighsImportance(*own)) return own;
    MG_ASSIGN_OR_RETURN(const std::vector<SolveResult> results,
                        AskInAllGames(own, seed_, Deadline(0, cancel), cancel));
    if (cancel != nullptr && cancel->load()) return absl::CancelledError("muzero: cancelled");
    return MostPromising(own, results);
  }

  absl::StatusOr<SolveResult> Baseline(const std::shared_ptr<const Game>& asked,
                                       const std::atomic<bool>* cancel) const override {
    MG_ASSIGN_OR_RETURN(const auto game, OwnGame(asked));
    MG_ASSIGN_OR_RETURN(const Demonstration baseline, BaselineOf(game, config_, seed_, cancel));
    MG_ASSIGN_OR_RETURN(SolveResult result, ResultOf(game, baseline.actions));
    result.found_by = baseline.result.found_by;
    result.evaluations = 1;
    return result;
  }

  absl::StatusOr<SolveResult> Play(const std::shared_ptr<const Game>& asked, const Config& search,
                                   const std::atomic<bool>* cancel) const override {
    MG_ASSIGN_OR_RETURN(const auto game, OwnGame(asked));
    if (search.paper() != config_.paper()) {
      return absl::InvalidArgumentError(
          absl::StrCat("muzero: found preset=", std::string(search.preset),
                       ", allowed: that of the training, ", std::string(config_.preset)));
    }
    training::UseOneTorchThread();
    MG_ASSIGN_OR_RETURN(const std::shared_ptr<const Task> task, TaskOf(game, cancel));
    MG_ASSIGN_OR_RETURN(const auto network, learner_->Snapshot());
    const std::unique_ptr<Position> position = game->NewInitialPosition();
    std::vector<uint8_t> follow = task->baseline();
    SearchStatistics statistics;
    PlayForced(*position);
    while (!position->IsTerminal()) {
      if (cancel != nullptr && cancel->load()) return absl::CancelledError("muzero: cancelled");
      MG_ASSIGN_OR_RETURN(const Advice advice, Search(search, *task, *position, *network, follow));
      // Forced decisions have no search.
      statistics.visits.resize(position->num_decisions() * num_actions_);
      statistics.values.resize(statistics.visits.size());
      statistics.visits.insert(statistics.visits.end(), advice.search.visits.begin(),
                               advice.search.visits.end());
      statistics.values.insert(statistics.values.end(), advice.search.values.begin(),
                               advice.search.values.end());
      MG_RETURN_IF_ERROR(position->Apply(advice.action).status());
      PlayForced(*position);
    }
    MG_ASSIGN_OR_RETURN(SolveResult result, ResultOf(game, position->actions()));
    statistics.visits.resize(result.play->actions.size() * num_actions_);
    statistics.values.resize(statistics.visits.size());
    result.play->search = std::move(statistics);
    result.found_by = "muzero";
    result.evaluations = 1;
    return result;
  }

  absl::StatusOr<Advice> Act(const Position& position,
                             const std::atomic<bool>* cancel) const override {
    if (position.IsTerminal())
      return absl::FailedPreconditionError("muzero: the game is over, nothing is to be decided");
    MG_RETURN_IF_ERROR(CheckGame(position.game()));
    training::UseOneTorchThread();
    MG_ASSIGN_OR_RETURN(const std::shared_ptr<const Task> task,
                        TaskOf(position.shared_game(), cancel));
    MG_ASSIGN_OR_RETURN(const auto network, learner_->Snapshot());
    std::vector<uint8_t> follow = task->baseline();
    return Search(config_, *task, position, *network, follow);
  }

  const Config& config() const override { return config_; }
  int64_t iterations() const override { return iterations_; }
  const std::vector<std::string>& programs() const override { return programs_; }

 private:
  absl::Status CheckGame(const Game& game) const {
    const std::string found = game.options().game(), own = config_.game;
    if (found != own) {
      return absl::InvalidArgumentError(absl::StrCat("muzero: the agent was trained in the game '",
                                                     own, "', found the game '", found, "'"));
    }
    if (game.num_actions() == num_actions_) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("muzero: the agent was trained with ", num_actions_,
                     " actions, found a game with ", game.num_actions(), "; set ",
                     game.options().Has("candidates") ? "candidates" : "paper_actions", " alike"));
  }

  // The same game with as many candidates as the networks were trained with. InvalidArgument: it is
  // another game than they were trained in.
  absl::StatusOr<std::shared_ptr<const Game>> OwnGame(
      const std::shared_ptr<const Game>& game) const {
    std::shared_ptr<const Game> own = game;
    for (const auto& [name, value] : config_.game_options()->List()) {
      if (name == "candidates" && this->game() == game->options().game())
        own = GameShowing(*game, static_cast<int>(std::get<int64_t>(value)));
    }
    MG_RETURN_IF_ERROR(CheckGame(*own));
    return own;
  }

  // What the demonstrators find without annealing in `own`, and until `deadline` in other priority
  // games.
  absl::StatusOr<std::vector<SolveResult>> AskInAllGames(const std::shared_ptr<const Game>& own,
                                                         uint64_t seed, const Deadline& deadline,
                                                         const std::atomic<bool>* cancel) const {
    MG_ASSIGN_OR_RETURN(std::vector<SolveResult> results,
                        AskDemonstrators({own, nullptr}, config_, 0, seed, cancel));
    MG_RETURN_IF_ERROR(AddPriorityStarts(*own, deadline, results));
    return results;
  }

  absl::StatusOr<std::shared_ptr<const Task>> TaskOf(const std::shared_ptr<const Game>& game,
                                                     const std::atomic<bool>* cancel) const {
    {
      const std::lock_guard lock(mutex_);
      if (last_task_ != nullptr && last_task_->shared_game() == game) return last_task_;
    }
    MG_ASSIGN_OR_RETURN(Demonstration baseline, BaselineOf(game, config_, seed_, cancel));
    MG_ASSIGN_OR_RETURN(Task made, Task::Create(game, config_, std::move(baseline.actions)));
    auto task = std::make_shared<const Task>(std::move(made));
    const std::lock_guard lock(mutex_);
    last_task_ = task;
    return task;
  }

  // `follow` becomes the fastest game that rollouts of the search have ended in.
  absl::StatusOr<Advice> Search(const Config& config, const Task& task, const Position& position,
                                Network& network, std::vector<uint8_t>& follow) const {
    MG_ASSIGN_OR_RETURN(const auto search, MakeSearch(config, 1, num_actions_, false));
    const auto model = MakeSearchModel(config, network);
    const Root root = {&task, &position, follow};
    model->SetRoots({&root, 1});
    MG_RETURN_IF_ERROR(search->Run(*model, seed_));
    if (!model->fastest(0).empty())
      follow.assign(model->fastest(0).begin(), model->fastest(0).end());
    Advice advice;
    // It plays on as the fastest game that it knows, if it knows any.
    advice.action =
        model->fastest(0).empty() ? search->action(0) : follow[position.num_decisions()];
    advice.policy.assign(search->policy(0).begin(), search->policy(0).end());
    // A search expects the lead still to be gained, in thousandths of the baseline's latency. That
    // is turned into the latency at the end of the game, and into the return from here on.
    const auto all_main = static_cast<double>(std::max<int64_t>(1, task.game().all_main_ps()));
    const auto latency = [&](double lead) {
      return static_cast<double>(task.baseline_ps()) * (1 - 1e-3 * (task.Lead(position) + lead));
    };
    advice.value = 1 - latency(search->value(0)) / all_main;
    advice.search.visits.assign(search->visits(0).begin(), search->visits(0).end());
    advice.search.values.resize(num_actions_);
    for (size_t a = 0; a < search->visits(0).size(); ++a) {
      if (search->visits(0)[a] == 0) continue;
      advice.search.values[a] = static_cast<float>(
          (static_cast<double>(position.latency_ps()) - latency(search->q(0)[a])) / all_main);
    }
    return advice;
  }

  // With so few varied decisions between two looks as those games have that are left; 0: no limit.
  Config ConfigFor(const Task& task, int64_t games_left) const {
    Config config = play_config_;
    const int64_t of_a_game =
        static_cast<int64_t>(task.baseline().size()) * task.game().options().decision_cost();
    if (games_left > 0 && games_left < config.varied_decisions / std::max<int64_t>(1, of_a_game))
      config.varied_decisions = static_cast<int>(games_left * of_a_game);
    return config;
  }

  // Plays from the best games until the limits end it.
  absl::Status PlayOn(const Task& task, const std::vector<Demonstration>& demonstrations,
                      uint64_t seed, Solving& solving) const {
    Replay replay(play_config_, 1);
    for (const Demonstration& demonstration : demonstrations) {
      MG_ASSIGN_OR_RETURN(const std::unique_ptr<Position> end,
                          PlayActions(task.game(), demonstration.actions));
      replay.Offer(GameOf(task, 0, *end, 0, false));
      solving.recorder.Count(1);
    }
    if (replay.best(0).front().steps.empty()) return absl::OkStatus();  // nothing is to be decided
    MG_ASSIGN_OR_RETURN(const auto network, learner_->Snapshot());
    const Config config = ConfigFor(task, solving.games_left());
    MG_ASSIGN_OR_RETURN(const auto group, SelfPlay::Create(config, {&task, 1}));
    const auto interrupted = [&] { return solving.recorder.deadline().Passed(); };
    const int64_t limit = solving.recorder.limits().evaluations;
    for (uint64_t i = 0; !interrupted(); ++i) {
      if (limit > 0 && solving.recorder.evaluations() >= limit) break;
      absl::StatusOr<Harvest> result =
          group->Run(*network, Assign(config, replay, MixSeeds(seed, i), 0), interrupted);
      if (absl::IsCancelled(result.status())) break;
      MG_RETURN_IF_ERROR(result.status());
      solving.recorder.Count(result->varied + static_cast<int64_t>(result->games.size()));
      for (auto* games : {&result->rollouts, &result->variations, &result->games}) {
        for (const PlayedGame& game : *games)
          MG_RETURN_IF_ERROR(Offer(task, game, replay, solving));
      }
    }
    return absl::OkStatus();
  }

  static absl::Status Offer(const Task& task, const PlayedGame& game, Replay& replay,
                            Solving& solving) {
    if (game.latency_ps >= replay.best(0).back().latency_ps) return absl::OkStatus();
    MG_ASSIGN_OR_RETURN(SolveResult result, ResultOf(task.shared_game(), game.actions));
    MG_ASSIGN_OR_RETURN(const std::unique_ptr<Position> end,
                        PlayActions(task.game(), game.actions));
    replay.Offer(GameOf(task, 0, *end, 0, false));
    solving.Offer(std::move(result));
    return absl::OkStatus();
  }

  Config config_, play_config_;
  int64_t iterations_;
  uint64_t seed_;
  int num_actions_ = 0;
  std::vector<std::string> programs_;
  std::unique_ptr<Learner> learner_;  // holds the networks, which each call copies
  // The last task that was played, so that acting decision by decision makes it once.
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const Task> last_task_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<const Agent>> Agent::Load(absl::string_view bytes) {
  MG_ASSIGN_OR_RETURN(const Checkpoint checkpoint, ReadCheckpoint(bytes));
  auto agent = std::make_shared<MuZeroAgent>(checkpoint);
  MG_RETURN_IF_ERROR(agent->Initialise(checkpoint.networks));
  return agent;
}

}  // namespace mallocgame::muzero
