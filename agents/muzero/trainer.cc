#include "agents/muzero/trainer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "agents/muzero/checkpoint.h"
#include "agents/muzero/demonstrations.h"
#include "agents/muzero/learner.h"
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
#include "mallocgame/plan/validate.h"
#include "mallocgame/replay/plan_file.h"
#include "mallocgame/simulator/simulate.h"
#include "mallocgame/solvers/planning/polish_plan.h"

namespace mallocgame::muzero {
namespace {

using training::ReadBytes;
using training::Stopwatch;
using training::WriteBytes;

// Streams of random numbers that are drawn from the trainer's seed.
enum Stream : uint64_t {
  kNetworkStream = 1,
  kDemonstrationStream,
  kPolishStream,
  kIterationStream
};

constexpr absl::string_view kPolished = ", polished";

// The best plan known for a problem. No play of the problem's game need have this plan, so the best
// play (in the replay) is kept apart.
struct BestPlan {
  Plan plan;
  int64_t latency_ps = std::numeric_limits<int64_t>::max();
  std::string found_by;
  std::string play_found_by;  // who found the best play
};

Checkpoint::Program Describe(const TrainingProblem& problem) {
  return {problem.name, problem.program->fingerprint(), HardwareToJson(problem.hardware)};
}

class MuZeroTrainer final : public Trainer {
 public:
  MuZeroTrainer(std::vector<TrainingProblem> problems, const Config& config, uint64_t seed,
                int threads)
      : problems_(std::move(problems)), config_(config), seed_(seed),
        pool_(training::ThreadsOrCores(threads)), replay_(config, problems_.size()),
        best_plans_(problems_.size()) {}

  absl::Status Initialise() {
    for (const TrainingProblem& problem : problems_) {
      MG_ASSIGN_OR_RETURN(auto game,
                          Game::Create(problem.program, problem.hardware, config_.game_options()));
      const std::unique_ptr<Position> position = game->Start();
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
    if (checkpoint.game_kind() != config_.kind()) {
      return absl::InvalidArgumentError(
          absl::StrCat("muzero: the networks to begin with play the game '",
                       GameKindName(checkpoint.game_kind()), "', allowed: '",
                       GameKindName(config_.kind()), "'"));
    }
    return learner_->Load(checkpoint.networks);
  }

  absl::StatusOr<Progress> Step(const std::atomic<bool>* cancel) override {
    if (broken_)
      return absl::FailedPreconditionError(
          "muzero: the last step was cancelled; go on from a checkpoint");
    broken_ = true;
    MG_ASSIGN_OR_RETURN(Progress progress,
                        iterations_ == 0 ? CollectDemonstrations(cancel) : Iterate(cancel));
    broken_ = false;
    progress.iteration = iterations_++;
    for (const BestPlan& best_plan : best_plans_) progress.best_ps.push_back(best_plan.latency_ps);
    progress.updates = learner_->updates();
    progress.replay_steps = replay_.recent_steps();
    return progress;
  }

  absl::StatusOr<std::string> Save() const override {
    if (broken_)
      return absl::FailedPreconditionError(
          "muzero: the last step was cancelled, there is nothing to save");
    Checkpoint checkpoint;
    checkpoint.config = config_;
    checkpoint.seed = seed_;
    checkpoint.iterations = iterations_;
    for (const TrainingProblem& problem : problems_)
      checkpoint.programs.push_back(Describe(problem));
    MG_ASSIGN_OR_RETURN(checkpoint.networks, learner_->Save());
    if (iterations_ > 0) {
      for (size_t i = 0; i < problems_.size(); ++i) {
        WriteGame(i, checkpoint.training);
        WriteBytes(tasks_[i].baseline(), checkpoint.training);
        WriteBytes(PlanToJson(*problems_[i].program, best_plans_[i].plan), checkpoint.training);
        WriteBytes(best_plans_[i].found_by, checkpoint.training);
        WriteBytes(best_plans_[i].play_found_by, checkpoint.training);
      }
      replay_.Write(tasks_, checkpoint.training);
      for (const auto& group : groups_) group->Write(checkpoint.training);
    }
    return training::PackCheckpoint(checkpoint);
  }

  absl::Status Restore(const Checkpoint& checkpoint) {
    MG_RETURN_IF_ERROR(learner_->Load(checkpoint.networks));
    iterations_ = checkpoint.iterations;
    if (iterations_ == 0) return absl::OkStatus();
    absl::string_view in = checkpoint.training;
    for (size_t i = 0; i < problems_.size(); ++i) {
      std::vector<uint8_t> baseline;
      absl::string_view plan, found_by, play_found_by;
      MG_RETURN_IF_ERROR(ReadGame(in, i));
      MG_RETURN_IF_ERROR(ReadBytes(in, baseline));
      MG_RETURN_IF_ERROR(ReadBytes(in, plan));
      MG_RETURN_IF_ERROR(ReadBytes(in, found_by));
      MG_RETURN_IF_ERROR(ReadBytes(in, play_found_by));
      MG_ASSIGN_OR_RETURN(
          Task task, Task::Create(games_[i], config_.observation_options(), std::move(baseline)));
      tasks_.push_back(std::move(task));
      BestPlan& best_plan = best_plans_[i];
      MG_ASSIGN_OR_RETURN(best_plan.plan, PlanFromJson(*problems_[i].program, plan));
      if (!Validate(*problems_[i].program, problems_[i].hardware, best_plan.plan).ok())
        return training::CutShort();
      MG_ASSIGN_OR_RETURN(const Report report, Judge(i, best_plan.plan));
      best_plan.latency_ps = report.latency_ps;
      best_plan.found_by = std::string(found_by);
      best_plan.play_found_by = std::string(play_found_by);
    }
    MG_RETURN_IF_ERROR(replay_.Read(in, tasks_));
    // One after the other, so that bytes that end too early make one group at most.
    for (int i = 0; i < config_.groups; ++i) {
      MG_ASSIGN_OR_RETURN(auto group, SelfPlay::Create(config_, tasks_));
      MG_RETURN_IF_ERROR(group->Read(in));
      groups_.push_back(std::move(group));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<SolveResult> Best(size_t i) const override {
    MG_RETURN_IF_ERROR(CheckStarted());
    if (replay_.best(i).front().latency_ps <= best_plans_[i].latency_ps) return BestGame(i);
    SolveResult result;
    result.plan = best_plans_[i].plan;
    MG_ASSIGN_OR_RETURN(result.report, Judge(i, result.plan));
    result.found_by = best_plans_[i].found_by;
    result.status = SolveStatus::kStopped;
    return result;
  }

  absl::StatusOr<SolveResult> BestGame(size_t i) const override {
    MG_RETURN_IF_ERROR(CheckStarted());
    SolveResult result;
    result.actions = replay_.best(i).front().actions;
    MG_ASSIGN_OR_RETURN(const std::unique_ptr<Position> end,
                        PlayActions(*games_[i], result.actions));
    result.plan = end->ToPlan();
    MG_ASSIGN_OR_RETURN(result.report, Judge(i, result.plan));
    result.game = games_[i];
    result.found_by = best_plans_[i].play_found_by;
    result.status = SolveStatus::kStopped;
    return result;
  }

  absl::StatusOr<SolveResult> Polish(size_t i, double seconds,
                                     const std::atomic<bool>* cancel) override {
    MG_ASSIGN_OR_RETURN(SolveResult result, Best(i));
    Polished polished = PolishPlan(*games_[i], result.plan, MixSeeds(seed_, kPolishStream),
                                   Deadline(seconds, cancel));
    if (polished.latency_ps >= result.report.latency_ps) return result;
    best_plans_[i].plan = std::move(polished.plan);
    best_plans_[i].latency_ps = polished.latency_ps;
    if (!absl::EndsWith(result.found_by, kPolished)) absl::StrAppend(&result.found_by, kPolished);
    best_plans_[i].found_by = result.found_by;
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

  absl::StatusOr<Report> Judge(size_t i, const Plan& plan) const {
    return Simulate(games_[i]->cost_model(), plan);
  }

  absl::Status MakeGroups() {
    for (int i = 0; i < config_.groups; ++i) {
      MG_ASSIGN_OR_RETURN(auto group, SelfPlay::Create(config_, tasks_));
      groups_.push_back(std::move(group));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Progress> CollectDemonstrations(const std::atomic<bool>* cancel) {
    const auto count = static_cast<int>(problems_.size());
    std::vector<absl::StatusOr<std::vector<Demonstration>>> found(problems_.size());
    pool_.Run(count, 1, [&](int begin, int) { found[begin] = DemonstrationsOf(begin, cancel); });
    for (size_t i = 0; i < problems_.size(); ++i) {
      MG_RETURN_IF_ERROR(found[i].status());
      if (cancel != nullptr && cancel->load()) return absl::CancelledError("muzero: cancelled");
      std::vector<Demonstration>& demonstrations = *found[i];
      const auto best = std::min_element(
          demonstrations.begin(), demonstrations.end(),
          [](const auto& a, const auto& b) { return a.latency_ps < b.latency_ps; });
      MG_ASSIGN_OR_RETURN(Task task,
                          Task::Create(games_[i], config_.observation_options(), best->actions));
      tasks_.push_back(std::move(task));
      for (Demonstration& demonstration : demonstrations) {
        const auto end = *PlayActions(*games_[i], demonstration.actions);
        PlayedGame game = GameOf(tasks_[i], static_cast<int32_t>(i), *end, 0, true);
        Offer(game, demonstration.result.found_by);
        replay_.AddDemonstration(std::move(game));
        BestPlan& best_plan = best_plans_[i];
        if (demonstration.result.report.latency_ps >= best_plan.latency_ps) continue;
        best_plan.plan = std::move(demonstration.result.plan);
        best_plan.latency_ps = demonstration.result.report.latency_ps;
        best_plan.found_by = demonstration.result.found_by;
      }
    }
    MG_RETURN_IF_ERROR(MakeGroups());
    Progress progress;
    progress.mean_return.assign(problems_.size(), std::numeric_limits<double>::quiet_NaN());
    return progress;
  }

  // Also chooses the game that is played.
  absl::StatusOr<std::vector<Demonstration>> DemonstrationsOf(size_t i,
                                                              const std::atomic<bool>* cancel) {
    const Plan* xla_plan = problems_[i].xla_plan ? &*problems_[i].xla_plan : nullptr;
    MG_ASSIGN_OR_RETURN(std::vector<SolveResult> results,
                        AskDemonstrators({games_[i], xla_plan}, config_.demonstration_decisions,
                                         MixSeeds(seed_, kDemonstrationStream), cancel));
    MG_RETURN_IF_ERROR(AddOrderStarts(*games_[i], Deadline(0, cancel), results));
    games_[i] = MostPromising(games_[i], results);
    return Demonstrate(*games_[i], std::move(results));
  }

  // What a game has of its own, beside the options of the config.
  void WriteGame(size_t i, std::string& out) const {
    if (config_.kind() == GameKind::kTime) return;
    const GameOptions& options = games_[i]->options();
    std::vector<int64_t> forbidden;
    for (const AccessId access : options.forbidden)
      forbidden.push_back(static_cast<int64_t>(access.index()));
    WriteBytes(options.min_buffer_bytes, out);
    WriteBytes(options.bytes_weight, out);
    WriteBytes(options.time_weight, out);
    WriteBytes(forbidden, out);
  }

  absl::Status ReadGame(absl::string_view& in, size_t i) {
    if (config_.kind() == GameKind::kTime) return absl::OkStatus();
    GameOptions options = config_.game_options();
    std::vector<int64_t> forbidden;
    MG_RETURN_IF_ERROR(ReadBytes(in, options.min_buffer_bytes));
    MG_RETURN_IF_ERROR(ReadBytes(in, options.bytes_weight));
    MG_RETURN_IF_ERROR(ReadBytes(in, options.time_weight));
    MG_RETURN_IF_ERROR(ReadBytes(in, forbidden));
    for (const int64_t access : forbidden) options.forbidden.emplace_back(access);
    MG_ASSIGN_OR_RETURN(games_[i],
                        Game::Create(problems_[i].program, problems_[i].hardware, options));
    return absl::OkStatus();
  }

  // Takes a game into the best plays if it is one of them, and its plan as the best plan if it is
  // better than that.
  void Offer(const PlayedGame& game, const std::string& found_by) {
    if (!replay_.Offer(game)) return;
    const size_t i = game.task;
    BestPlan& best_plan = best_plans_[i];
    best_plan.play_found_by = found_by;
    if (game.latency_ps >= best_plan.latency_ps) return;
    best_plan.plan = (*PlayActions(*games_[i], game.actions))->ToPlan();
    best_plan.latency_ps = game.latency_ps;
    best_plan.found_by = found_by;
  }

  struct Lesson {
    std::vector<Losses> losses;
    std::vector<std::pair<ReplayPosition, float>> priorities;
    double seconds = 0;
  };

  absl::StatusOr<Lesson> Learn(uint64_t seed, const std::atomic<bool>* cancel) {
    const Stopwatch watch;
    Lesson lesson;
    Rng rng(seed);
    for (int update = 0; update < config_.updates; ++update) {
      if (cancel != nullptr && cancel->load()) return absl::CancelledError("muzero: cancelled");
      const Replay::Sample sample = replay_.Draw(config_.batch, rng);
      MG_ASSIGN_OR_RETURN(Losses losses,
                          learner_->Update(MakeBatch(config_, tasks_, replay_, sample)));
      for (size_t row = 0; row < sample.positions.size(); ++row) {
        lesson.priorities.emplace_back(sample.positions[row],
                                       PriorityOf(config_, losses.value_errors[row]));
      }
      lesson.losses.push_back(std::move(losses));
    }
    lesson.seconds = watch.seconds();
    return lesson;
  }

  // Learning and the groups of self-play are independent of each other, so they run in any order.
  absl::StatusOr<Progress> Iterate(const std::atomic<bool>* cancel) {
    const uint64_t seed =
        MixSeeds(MixSeeds(seed_, kIterationStream), static_cast<uint64_t>(iterations_));
    std::vector<std::unique_ptr<Network>> networks;
    for (size_t i = 0; i < groups_.size(); ++i) {
      MG_ASSIGN_OR_RETURN(auto network, learner_->Snapshot());
      networks.push_back(std::move(network));
    }
    absl::StatusOr<Lesson> lesson = absl::InternalError("not learned");
    std::vector<absl::StatusOr<SelfPlayResult>> results(groups_.size());
    std::vector<double> seconds(groups_.size());
    const auto interrupted = [cancel] {
      return cancel != nullptr && cancel->load(std::memory_order_relaxed);
    };
    pool_.Run(config_.groups + 1, 1, [&](int begin, int) {
      training::UseOneTorchThread();
      if (begin == 0) {
        lesson = Learn(MixSeeds(seed, 0), cancel);
        return;
      }
      const size_t group = begin - 1;
      const Stopwatch watch;
      results[group] = groups_[group]->Run(
          *networks[group], replay_, MixSeeds(seed, static_cast<uint64_t>(begin)), interrupted);
      seconds[group] = watch.seconds();
    });
    MG_RETURN_IF_ERROR(lesson.status());
    for (const auto& result : results) MG_RETURN_IF_ERROR(result.status());

    Progress progress;
    Summarise(*lesson, progress);
    // The positions are those of the replay before new games are added, so they come first.
    for (const auto& [position, priority] : lesson->priorities)
      StepAt(position).priority = priority;
    for (const auto& result : results) {
      Teach(*result);
      Reanalyse(*result);
    }
    progress.play_seconds = 0;
    for (double s : seconds) progress.play_seconds += s;
    TakeGames(results, progress);
    return progress;
  }

  muzero::Step& StepAt(const ReplayPosition& position) {
    return replay_.game(position).steps[position.step];
  }

  void Reanalyse(const SelfPlayResult& result) {
    for (const SelfPlayResult::Reanalysed& one : result.reanalysed) {
      muzero::Step& step = StepAt(one.position);
      step.value = one.value;
      step.searched = 1;
      if (step.taught != 0) continue;  // by the rules themselves, which no search knows better
      step.policy = one.policy;
      if (one.position.source == Source::kRecent) continue;
      for (float& p : step.policy) p *= static_cast<float>(1 - config_.imitation);
      const uint8_t played = replay_.game(one.position).actions[step.decision];
      step.policy[played] += static_cast<float>(config_.imitation);
    }
  }

  void Teach(const SelfPlayResult& result) {
    for (const SelfPlayResult::Taught& one : result.taught) {
      muzero::Step& step = StepAt(one.position);
      step.policy = one.policy;
      step.taught = 1;
    }
  }

  static void Summarise(const Lesson& lesson, Progress& progress) {
    const auto updates = static_cast<double>(lesson.losses.size());
    for (const Losses& losses : lesson.losses) {
      progress.policy_loss += losses.policy / updates;
      progress.value_loss += losses.value / updates;
      progress.reward_loss += losses.reward / updates;
      progress.consistency_loss += losses.consistency / updates;
      progress.policy_entropy += losses.policy_entropy / updates;
      progress.gradient_norm += losses.gradient_norm / updates;
      progress.learning_rate = losses.learning_rate;
      for (float error : losses.value_errors) {
        progress.value_error +=
            std::abs(error) / (updates * static_cast<double>(losses.value_errors.size()));
      }
    }
    progress.learn_seconds = lesson.seconds;
  }

  void TakeGames(std::vector<absl::StatusOr<SelfPlayResult>>& results, Progress& progress) {
    std::vector<double> returns(problems_.size()), counts(problems_.size());
    double depth = 0, entropy = 0;
    for (absl::StatusOr<SelfPlayResult>& result : results) {
      progress.searches += result->searches;
      progress.evaluations += result->evaluations;
      progress.varied += result->varied;
      progress.games += static_cast<int64_t>(result->games.size());
      depth += result->depth_sum;
      entropy += result->entropy_sum;
      for (const PlayedGame& game : result->variations) Offer(game, "muzero, varied");
      for (PlayedGame& game : result->games) {
        const size_t i = game.task;
        const auto all_main = static_cast<double>(std::max<int64_t>(1, games_[i]->all_main_ps()));
        returns[i] += 1 - static_cast<double>(game.latency_ps) / all_main;
        counts[i] += 1;
        if (game.latency_ps < replay_.best(i).back().latency_ps) Offer(WholeGame(game), "muzero");
        replay_.Add(std::move(game));
      }
    }
    const auto searches = static_cast<double>(std::max<int64_t>(1, progress.searches));
    progress.depth = depth / searches;
    progress.entropy = entropy / searches;
    for (size_t i = 0; i < problems_.size(); ++i) {
      progress.mean_return.push_back(counts[i] > 0 ? returns[i] / counts[i]
                                                   : std::numeric_limits<double>::quiet_NaN());
    }
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
  std::vector<std::unique_ptr<SelfPlay>> groups_;
  std::vector<BestPlan> best_plans_;
  int64_t iterations_ = 0;
  bool broken_ = false;  // a step was cancelled halfway
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
  MG_ASSIGN_OR_RETURN(const Checkpoint checkpoint,
                      training::UnpackCheckpoint<Checkpoint>(tuned_from));
  MG_RETURN_IF_ERROR(trainer->TakeNetworks(checkpoint));
  return trainer;
}

absl::StatusOr<std::unique_ptr<Trainer>> Trainer::Load(std::vector<TrainingProblem> problems,
                                                       absl::string_view bytes, int threads) {
  MG_ASSIGN_OR_RETURN(const Checkpoint checkpoint, training::UnpackCheckpoint<Checkpoint>(bytes));
  const auto list = [](const std::vector<Checkpoint::Program>& programs) {
    std::string text;
    for (const auto& p : programs)
      absl::StrAppend(&text, text.empty() ? "" : ", ", p.name, " (", p.fingerprint, ")");
    return text;
  };
  std::vector<Checkpoint::Program> given;
  for (const TrainingProblem& problem : problems) given.push_back(Describe(problem));
  const auto same = [](const Checkpoint::Program& a, const Checkpoint::Program& b) {
    return a.fingerprint == b.fingerprint && a.hardware == b.hardware;
  };
  if (!std::equal(given.begin(), given.end(), checkpoint.programs.begin(),
                  checkpoint.programs.end(), same)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the checkpoint is of other programs or hardware: found ",
                     list(checkpoint.programs), ", expected ", list(given)));
  }
  MG_RETURN_IF_ERROR(Learner::CheckSize(checkpoint.config, checkpoint.networks));
  MG_ASSIGN_OR_RETURN(auto trainer,
                      Make(std::move(problems), checkpoint.config, checkpoint.seed, threads));
  MG_RETURN_IF_ERROR(trainer->Restore(checkpoint));
  return trainer;
}

}  // namespace mallocgame::muzero
