#include "agents/muzero/actor.h"

#include <utility>

#include "agents/muzero/checkpoint.h"
#include "agents/muzero/demonstrations.h"
#include "agents/muzero/harvest.h"
#include "agents/muzero/learner.h"
#include "agents/muzero/self_play.h"
#include "agents/muzero/task.h"
#include "agents/training/bytes.h"
#include "agents/training/torch_runtime.h"
#include "mallocgame/base/error.h"

namespace mallocgame::muzero {
namespace {

class MuZeroActor final : public Actor {
 public:
  MuZeroActor(const Config& config, std::vector<Task> tasks)
      : config_(config), tasks_(std::move(tasks)) {}

  absl::StatusOr<std::string> Play(absl::string_view weights, absl::string_view assignment,
                                   const std::atomic<bool>* cancel) const override {
    training::UseOneTorchThread();
    MG_ASSIGN_OR_RETURN(const auto network, Learner::NetworkOf(config_, weights));
    MG_ASSIGN_OR_RETURN(const auto group, SelfPlay::Create(config_, tasks_));
    MG_RETURN_IF_ERROR(group->Read(assignment));
    MG_ASSIGN_OR_RETURN(const Assignment assigned, ReadAssignment(assignment, tasks_));
    if (!assignment.empty()) return training::CutShort();
    MG_ASSIGN_OR_RETURN(const Harvest harvest, group->Run(*network, assigned, [cancel] {
      return cancel != nullptr && cancel->load(std::memory_order_relaxed);
    }));
    std::string out;
    group->Write(out);
    Write(harvest, out);
    return out;
  }

 private:
  Config config_;
  std::vector<Task> tasks_;
};

}  // namespace

absl::StatusOr<std::string> PlayDemonstrations(const TrainingProblem& problem, const Config& config,
                                               uint64_t seed, const std::atomic<bool>* cancel) {
  MG_ASSIGN_OR_RETURN(auto game, GameOf(problem, config));
  MG_ASSIGN_OR_RETURN(const Demonstrations demonstrations,
                      DemonstrationsFor(problem, std::move(game), config, seed, cancel));
  // What was ended early would be other demonstrations.
  if (cancel != nullptr && cancel->load()) return absl::CancelledError("muzero: cancelled");
  std::string out;
  Write(demonstrations, out);
  return out;
}

absl::StatusOr<std::unique_ptr<Actor>> Actor::Create(const std::vector<TrainingProblem>& problems,
                                                     absl::string_view introduction) {
  MG_ASSIGN_OR_RETURN(const Checkpoint opened, ReadCheckpoint(introduction));
  MG_RETURN_IF_ERROR(CheckProblems(opened, problems));
  absl::string_view in = opened.training;
  std::vector<Task> tasks;
  for (const TrainingProblem& problem : problems) {
    MG_ASSIGN_OR_RETURN(Task task, ReadTask(in, problem.program, problem.hardware, opened.config));
    tasks.push_back(std::move(task));
  }
  if (tasks.empty() || !in.empty()) return training::CutShort();
  return std::make_unique<MuZeroActor>(opened.config, std::move(tasks));
}

}  // namespace mallocgame::muzero
