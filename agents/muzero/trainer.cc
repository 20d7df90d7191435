#include "agents/muzero/trainer.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agents/muzero/checkpoint.h"
#include "agents/muzero/demonstrations.h"
#include "agents/muzero/harvest.h"
#include "agents/muzero/learner.h"
#include "agents/muzero/progress.h"
#include "agents/muzero/replay.h"
#include "agents/muzero/self_play.h"
#include "agents/muzero/task.h"
#include "agents/training/bytes.h"
#include "agents/training/stopwatch.h"
#include "agents/training/threads.h"
#include "agents/training/torch_runtime.h"
#include "mallocgame/base/deadline.h"
#include "mallocgame/base/error.h"
#include "mallocgame/base/worker_pool.h"
#include "mallocgame/game/play_actions.h"
#include "mallocgame/game/schedule/schedule_state.h"
#include "mallocgame/search/anneal_plan.h"
#include "mallocgame/solvers/anneal_result.h"

namespace mallocgame::muzero {
namespace {

using training::Stopwatch;

// Streams of random numbers that are drawn from the trainer's seed.
enum Stream : uint64_t { kNetworkStream = 1, kPolishStream, kIterationStream };
constexpr double kPolishTrials = 4000;  // without a limit of time

class MuZeroTrainer final : public Trainer {
 public:
  MuZeroTrainer(std::vector<TrainingProblem> problems, const Config& config, uint64_t seed,
                int threads)
      : problems_(std::move(problems)), config_(config), seed_(seed),
        pool_(training::ThreadsOrCores(threads)), replay_(config, problems_.size()),
        best_(problems_.size()), game_found_by_(problems_.size()), step_(problems_.size()) {}

  absl::Status Initialise() {
    for (const TrainingProblem& problem : problems_) {
      MG_ASSIGN_OR_RETURN(auto game, GameOf(problem, config_));
      const std::unique_ptr<Position> position = game->NewInitialPosition();
      PlayForced(*position);
      if (position->IsTerminal()) {
        return absl::InvalidArgumentError(
            absl::StrCat("muzero: in the game of '", problem.name,
                         "' nothing is to be decided; smaller buffers are asked about with a "
                         "smaller min_buffer_bytes"));
      }
      games_.push_back(std::move(game));
    }
    MG_ASSIGN_OR_RETURN(learner_, Learner::Create(config_, MixSeeds(seed_, kNetworkStream)));
    return absl::OkStatus();
  }

  absl::Status TakeNetworks(const Checkpoint& checkpoint) {
    if (const std::string own = config_.game; checkpoint.game() != own) {
      return absl::InvalidArgumentError(
          absl::StrCat("muzero: the networks to begin with play the game '", checkpoint.game(),
                       "', allowed: '", own, "'"));
    }
    return learner_->LoadNetworks(checkpoint.networks);
  }

  absl::StatusOr<Progress> Step(const std::atomic<bool>* cancel) override {
    if (broken_)
      return absl::FailedPreconditionError(
          "muzero: the last step was cancelled; go on from a checkpoint");
    broken_ = true;
    MG_RETURN_IF_ERROR(iterations_ == 0 ? CollectDemonstrations(cancel) : Iterate(cancel));
    return EndStep();
  }

  absl::StatusOr<Progress> TakeDemonstrations(
      absl::Span<const std::string> demonstrations) override {
    if (iterations_ > 0)
      return absl::FailedPreconditionError("muzero: there are demonstrations already");
    if (demonstrations.size() != problems_.size()) {
      return absl::InvalidArgumentError(absl::StrCat("muzero: found demonstrations of ",
                                                     demonstrations.size(),
                                                     " problems, allowed: ", problems_.size()));
    }
    std::vector<Demonstrations> read;
    for (size_t i = 0; i < problems_.size(); ++i) {
      MG_ASSIGN_OR_RETURN(Demonstrations one,
                          ReadDemonstrations(demonstrations[i], *games_[i], config_));
      read.push_back(std::move(one));
    }
    MG_RETURN_IF_ERROR(Begin(std::move(read)));
    return EndStep();
  }

  absl::StatusOr<std::string> Introduction() const override {
    MG_RETURN_IF_ERROR(CheckStarted());
    Checkpoint introduction = Head();
    for (const Task& task : tasks_) WriteTask(task, introduction.training);
    return training::PackCheckpoint(introduction);
  }

  absl::StatusOr<std::string> Weights() const override { return learner_->Weights(); }

  absl::StatusOr<std::string> Assign(int group) override {
    MG_RETURN_IF_ERROR(CheckGroup(group));
    groups_[group].out = true;
    groups_[group].updates = learner_->updates();
    std::string assignment;
    groups_[group].games->Write(assignment);
    Write(AssignmentOf(group), assignment);
    return assignment;
  }

  absl::Status Take(int group, absl::string_view harvest,
                    std::optional<int64_t> most_stale) override {
    MG_RETURN_IF_ERROR(CheckGroup(group));
    if (!groups_[group].out) {
      return absl::FailedPreconditionError(
          absl::StrCat("muzero: group ", group, " is not out, so nothing of it can be taken"));
    }
    MG_ASSIGN_OR_RETURN(auto games, SelfPlay::Create(config_, tasks_));
    MG_RETURN_IF_ERROR(games->Read(harvest));
    MG_ASSIGN_OR_RETURN(Harvest read, ReadHarvest(harvest, tasks_));
    if (!harvest.empty()) return training::CutShort();
    broken_ = true;
    groups_[group].games = std::move(games);
    TakeHarvest(group, std::move(read), most_stale);
    return absl::OkStatus();
  }

  absl::Status Learn(int updates, const std::atomic<bool>* cancel) override {
    MG_RETURN_IF_ERROR(CheckStarted());
    broken_ = true;
    training::UseOneTorchThread();
    return LearnFromReplay(updates, cancel);
  }

  absl::StatusOr<Progress> EndStep() override {
    MG_RETURN_IF_ERROR(CheckStarted());
    Progress progress = std::exchange(step_, Progress(problems_.size()));
    progress.Average();
    broken_ = false;
    progress.iteration = iterations_++;
    for (size_t i = 0; i < best_.size(); ++i) progress.best_ps.push_back(CostOf(i, best_[i]));
    progress.updates = learner_->updates();
    progress.replay_steps = replay_.recent_steps();
    return progress;
  }

  absl::StatusOr<std::string> Save() const override {
    if (broken_) {
      return absl::FailedPreconditionError(
          "muzero: the last step was cancelled or has not ended, there is nothing to save");
    }
    Checkpoint checkpoint = Head();
    MG_ASSIGN_OR_RETURN(checkpoint.networks, learner_->Save());
    if (iterations_ > 0) {
      for (size_t i = 0; i < problems_.size(); ++i) {
        WriteTask(tasks_[i], checkpoint.training);
        WriteFound(*games_[i], best_[i], checkpoint.training);
        training::WriteBytes(game_found_by_[i], checkpoint.training);
      }
      replay_.Write(checkpoint.training);
      for (const Group& group : groups_) group.games->Write(checkpoint.training);
    }
    return training::PackCheckpoint(checkpoint);
  }

  absl::Status Restore(const Checkpoint& checkpoint) {
    MG_RETURN_IF_ERROR(learner_->Load(checkpoint.networks));
    if (checkpoint.iterations < 0) return training::CutShort();
    iterations_ = checkpoint.iterations;
    if (iterations_ == 0) return absl::OkStatus();
    absl::string_view in = checkpoint.training;
    for (size_t i = 0; i < problems_.size(); ++i) {
      MG_ASSIGN_OR_RETURN(Task task,
                          ReadTask(in, problems_[i].program, problems_[i].hardware, config_));
      games_[i] = task.shared_game();
      tasks_.push_back(std::move(task));
      MG_ASSIGN_OR_RETURN(SolveResult best, ReadFound(in, *games_[i]));
      Keep(i, std::move(best));
      MG_RETURN_IF_ERROR(training::ReadBytes(in, game_found_by_[i]));
    }
    MG_RETURN_IF_ERROR(replay_.Read(in, tasks_));
    // One after the other, so that bytes that end too early make one group at most.
    for (int i = 0; i < config_.groups; ++i) {
      MG_RETURN_IF_ERROR(AddGroup());
      MG_RETURN_IF_ERROR(groups_.back().games->Read(in));
    }
    return in.empty() ? absl::OkStatus() : training::CutShort();
  }

  absl::StatusOr<SolveResult> Best(size_t i) const override {
    MG_ASSIGN_OR_RETURN(SolveResult game, BestGame(i));
    if (CostOf(i, game) > CostOf(i, best_[i])) return best_[i];
    return game;
  }

  absl::StatusOr<SolveResult> BestGame(size_t i) const override {
    MG_RETURN_IF_ERROR(CheckStarted());
    MG_ASSIGN_OR_RETURN(SolveResult result, ResultOf(games_[i], replay_.best(i).front().actions));
    result.found_by = game_found_by_[i];
    return result;
  }

  absl::StatusOr<SolveResult> Polish(size_t i, double seconds,
                                     const std::atomic<bool>* cancel) override {
    MG_ASSIGN_OR_RETURN(SolveResult result, Best(i));
    // Best is of the best game, if that is no worse than the best plan.
    const std::shared_ptr<const Game> game = GameAt(i, result.order);
    const Deadline deadline(seconds, cancel);
    const auto used = [&](int64_t trials) {
      if (deadline.Passed()) return 1.0;
      return seconds > 0 ? deadline.seconds() / seconds
                         : static_cast<double>(trials) / kPolishTrials;
    };
    MG_ASSIGN_OR_RETURN(FoundPlan polished,
                        AnnealPlan(*game, {&result.plan, 1}, MixSeeds(seed_, kPolishStream), used));
    result.evaluations += polished.evaluations;
    MG_ASSIGN_OR_RETURN(const bool better,
                        KeepBetter(*game, std::move(polished), "polished", result));
    if (!better) return result;
    Keep(i, std::move(result));
    return Best(i);
  }

  const Config& config() const override { return config_; }
  uint64_t seed() const override { return seed_; }
  int64_t iterations() const override { return iterations_; }
  const std::vector<TrainingProblem>& problems() const override { return problems_; }
  int64_t parameters() const override { return learner_->parameters(); }

 private:
  absl::Status CheckStarted() const {
    if (!tasks_.empty()) return absl::OkStatus();
    return absl::FailedPreconditionError("muzero: nothing was played yet; do a step first");
  }

  // The game of problem i in which plans lie of this legal order of instructions.
  std::shared_ptr<const Game> GameAt(size_t i, const std::vector<Tick>& order) const {
    return games_[i]->PlannedAt(order);
  }

  absl::Status CheckGroup(int group) const {
    MG_RETURN_IF_ERROR(CheckStarted());
    if (group >= 0 && static_cast<size_t>(group) < groups_.size()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("muzero: found group ", group, ", allowed: 0 to ", groups_.size() - 1));
  }

  // What a checkpoint says of the training beside what was learned.
  Checkpoint Head() const {
    Checkpoint head;
    head.config = config_;
    head.seed = seed_;
    head.iterations = iterations_;
    head.programs = Describe(problems_);
    return head;
  }

  absl::Status AddGroup() {
    MG_ASSIGN_OR_RETURN(auto games, SelfPlay::Create(config_, tasks_));
    groups_.push_back({std::move(games), iterations_});
    return absl::OkStatus();
  }

  absl::Status CollectDemonstrations(const std::atomic<bool>* cancel) {
    const auto count = static_cast<int>(problems_.size());
    std::vector<absl::StatusOr<Demonstrations>> found(problems_.size());
    pool_.Run(count, 1, [&](int i, int) {
      found[i] = DemonstrationsFor(problems_[i], games_[i], config_, seed_, cancel);
    });
    std::vector<Demonstrations> all;
    for (auto& demonstrations : found) {
      MG_RETURN_IF_ERROR(demonstrations.status());
      all.push_back(*std::move(demonstrations));
    }
    if (cancel != nullptr && cancel->load()) return absl::CancelledError("muzero: cancelled");
    return Begin(std::move(all));
  }

  absl::Status Begin(std::vector<Demonstrations> demonstrations) {
    for (size_t i = 0; i < problems_.size(); ++i) {
      games_[i] = demonstrations[i].game;
      std::vector<Demonstration>& all = demonstrations[i].all;
      MG_ASSIGN_OR_RETURN(Task task,
                          Task::Create(games_[i], config_, BaselineAmong(all, config_).actions));
      tasks_.push_back(std::move(task));
      for (Demonstration& demonstration : all) {
        const auto end = *PlayActions(*games_[i], demonstration.actions);
        PlayedGame game = GameOf(tasks_[i], static_cast<int32_t>(i), *end, 0, true);
        Offer(game, demonstration.result.found_by);
        if (!config_.paper()) replay_.AddDemonstration(std::move(game));
        if (CostOf(i, demonstration.result) < LeastPs(i)) Keep(i, std::move(demonstration.result));
      }
    }
    for (int i = 0; i < config_.groups; ++i) MG_RETURN_IF_ERROR(AddGroup());
    for (Group& group : groups_) group.turn = 1;
    return absl::OkStatus();
  }

  // Takes a game into the best games if it is one of them, and its plan as the best plan if that
  // costs less. Games count one set of prices, so by two sets another one than the fastest may.
  void Offer(const PlayedGame& game, const std::string& found_by) {
    const size_t i = game.task;
    const std::optional<size_t> place = replay_.Offer(game);
    if (!place) return;
    if (*place == 0) game_found_by_[i] = found_by;
    if (*place > 0 && games_[i]->program().both() == nullptr) return;
    SolveResult result = *ResultOf(games_[i], game.actions);
    if (CostOf(i, result) >= LeastPs(i)) return;
    result.found_by = found_by;
    Keep(i, std::move(result));
  }

  // What plans of problem i are compared by: the latency, or its value by both sets of prices.
  int64_t CostOf(size_t i, const SolveResult& result) const {
    return ValueOf(games_[i]->program(), mallocgame::CostOf(result));
  }
  int64_t LeastPs(size_t i) const {
    const bool found = !best_[i].found_by.empty();
    return found ? CostOf(i, best_[i]) : std::numeric_limits<int64_t>::max();
  }
  // Makes it the best plan, without the game that it was found in.
  void Keep(size_t i, SolveResult result) {
    best_[i] = {};
    best_[i].plan = std::move(result.plan);
    best_[i].order = std::move(result.order);
    best_[i].report = result.report;
    best_[i].others = result.others;
    best_[i].found_by = std::move(result.found_by);
    best_[i].status = SolveStatus::kStopped;
  }

  // Depends on how often the group was assigned something.
  Assignment AssignmentOf(size_t group) const {
    const uint64_t seed = MixSeeds(IterationSeed(groups_[group].turn), group + 1);
    return muzero::Assign(config_, replay_, seed, learner_->updates());
  }

  uint64_t IterationSeed(int64_t iteration) const {
    return MixSeeds(MixSeeds(seed_, kIterationStream), static_cast<uint64_t>(iteration));
  }

  absl::Status LearnFromReplay(int updates, const std::atomic<bool>* cancel) {
    const Stopwatch watch;
    Rng rng(MixSeeds(IterationSeed(iterations_), 0), static_cast<uint64_t>(step_.updates));
    std::vector<std::pair<StepId, float>> priorities;
    // All updates of a call draw by the same priorities.
    for (const Replay::Sample& sample : replay_.Draw(updates, config_.batch, rng)) {
      if (cancel != nullptr && cancel->load()) return absl::CancelledError("muzero: cancelled");
      if (sample.steps.empty()) break;  // no game of its own has ended yet
      MG_ASSIGN_OR_RETURN(const Losses losses,
                          learner_->Update(MakeBatch(config_, tasks_, replay_, sample)));
      const std::vector<float>& errors = config_.exact() ? losses.surprises : losses.value_errors;
      for (size_t row = 0; row < sample.steps.size(); ++row) {
        priorities.emplace_back(sample.steps[row], PriorityOf(errors[row]));
      }
      step_.Add(losses);
    }
    for (const auto& [id, priority] : priorities)
      replay_.Find(id)->steps[id.step].priority = priority;
    step_.learn_seconds += watch.seconds();
    return absl::OkStatus();
  }

  // Learning and the groups of self-play are independent of each other, so they run in any order.
  absl::Status Iterate(const std::atomic<bool>* cancel) {
    std::vector<std::unique_ptr<Network>> networks;
    std::vector<Assignment> assignments;
    for (size_t i = 0; i < groups_.size(); ++i) {
      MG_ASSIGN_OR_RETURN(auto network, learner_->Snapshot());
      networks.push_back(std::move(network));
      assignments.push_back(AssignmentOf(i));
    }
    absl::Status learned;
    std::vector<absl::StatusOr<Harvest>> harvests(groups_.size());
    const auto interrupted = [cancel] {
      return cancel != nullptr && cancel->load(std::memory_order_relaxed);
    };
    pool_.Run(config_.groups + 1, 1, [&](int begin, int) {
      training::UseOneTorchThread();
      if (begin == 0) {
        learned = LearnFromReplay(config_.updates, cancel);
        return;
      }
      const size_t i = begin - 1;
      harvests[i] = groups_[i].games->Run(*networks[i], assignments[i], interrupted);
    });
    MG_RETURN_IF_ERROR(learned);
    for (const auto& harvest : harvests) MG_RETURN_IF_ERROR(harvest.status());
    for (size_t i = 0; i < groups_.size(); ++i)
      TakeHarvest(i, *std::move(harvests[i]), std::nullopt);
    return absl::OkStatus();
  }

  void TakeHarvest(size_t group, Harvest harvest, std::optional<int64_t> most_stale) {
    const auto is_stale = [&](int64_t updates) {
      return most_stale && learner_->updates() - updates > *most_stale;
    };
    const bool stale = groups_[group].out && is_stale(groups_[group].updates);
    for (const Revision& one : harvest.revisions) {
      if (!one.value || !stale) replay_.Revise(one);
    }
    step_.Add(harvest);
    for (const PlayedGame& game : harvest.rollouts) Offer(game, "muzero");
    for (const PlayedGame& game : harvest.variations) Offer(game, "muzero, varied");
    for (PlayedGame& game : harvest.games) {
      const size_t i = game.task;
      // What it reached it has reached, however old the networks were.
      if (game.latency_ps < replay_.best(i).back().latency_ps) Offer(WholeGame(game), "muzero");
      if (is_stale(game.searched_by)) {
        ++step_.stale;
        continue;
      }
      const auto all_main = static_cast<double>(std::max<int64_t>(1, games_[i]->all_main_ps()));
      step_.AddGame(game, 1 - static_cast<double>(game.latency_ps) / all_main,
                    learner_->updates() - game.searched_by);
      replay_.Add(std::move(game));
    }
    groups_[group].out = false;
    ++groups_[group].turn;
  }

  // A game that self-play may have begun in the middle, with all its steps, to be learned from as
  // one of the best.
  PlayedGame WholeGame(const PlayedGame& game) const {
    const size_t i = game.task;
    return GameOf(tasks_[i], game.task, **PlayActions(*games_[i], game.actions), 0, true);
  }

  std::vector<TrainingProblem> problems_;
  Config config_;
  uint64_t seed_;
  WorkerPool pool_;
  std::vector<std::shared_ptr<const Game>> games_;
  std::vector<Task> tasks_;  // one for each problem; empty before the first step
  std::unique_ptr<Learner> learner_;
  Replay replay_;
  struct Group {
    std::unique_ptr<SelfPlay> games;
    int64_t turn = 0;  // number of times that something was assigned to it, the demonstrations too
    bool out = false;  // an actor plays it
    int64_t updates = 0;  // number of updates that its networks had behind them when it went out
  };
  std::vector<Group> groups_;
  // The best plan of each problem; nothing has been found before the first step. And who found the
  // best game.
  std::vector<SolveResult> best_;
  std::vector<std::string> game_found_by_;
  int64_t iterations_ = 0;
  Progress step_;        // what the step has done so far
  bool broken_ = false;  // a step has not ended; if it was cancelled, it never will
};

absl::StatusOr<std::unique_ptr<MuZeroTrainer>> Make(std::vector<TrainingProblem> problems,
                                                    const Config& config, uint64_t seed,
                                                    int threads) {
  if (problems.empty())
    return absl::InvalidArgumentError("muzero: found no program to train on, allowed: one or more");
  MG_RETURN_IF_ERROR(training::CheckThreads("muzero", threads));
  MG_RETURN_IF_ERROR(Check(config));
  auto trainer = std::make_unique<MuZeroTrainer>(std::move(problems), config, seed, threads);
  MG_RETURN_IF_ERROR(trainer->Initialise());
  return trainer;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Trainer>> Trainer::Create(std::vector<TrainingProblem> problems,
                                                         const Config& config, uint64_t seed,
                                                         int threads,
                                                         absl::string_view tuned_from) {
  MG_ASSIGN_OR_RETURN(auto trainer, Make(std::move(problems), config, seed, threads));
  if (tuned_from.empty()) return trainer;
  MG_ASSIGN_OR_RETURN(const Checkpoint checkpoint, ReadCheckpoint(tuned_from));
  MG_RETURN_IF_ERROR(trainer->TakeNetworks(checkpoint));
  return trainer;
}

absl::StatusOr<std::unique_ptr<Trainer>> Trainer::Load(std::vector<TrainingProblem> problems,
                                                       absl::string_view bytes, int threads) {
  MG_ASSIGN_OR_RETURN(const Checkpoint checkpoint, ReadCheckpoint(bytes));
  MG_RETURN_IF_ERROR(CheckProblems(checkpoint, problems));
  MG_RETURN_IF_ERROR(Learner::CheckSize(checkpoint.config, checkpoint.networks));
  MG_ASSIGN_OR_RETURN(auto trainer,
                      Make(std::move(problems), checkpoint.config, checkpoint.seed, threads));
  MG_RETURN_IF_ERROR(trainer->Restore(checkpoint));
  return trainer;
}

}  // namespace mallocgame::muzero
