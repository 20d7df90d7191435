// What an agent is trained on.
#ifndef AGENTS_MUZERO_PROBLEM_H_
#define AGENTS_MUZERO_PROBLEM_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "agents/muzero/config.h"
#include "mallocgame/game/game.h"
#include "mallocgame/hardware/hardware.h"
#include "mallocgame/plan/plan.h"
#include "mallocgame/program/program.h"

namespace mallocgame::muzero {

struct TrainingProblem {
  std::string name;  // as the caller knows it
  std::shared_ptr<const Program> program;
  Hardware hardware;
  std::optional<Plan> xla_plan;
  // A game that is played as it is, but for the number of candidates; else it is that of the
  // config, and a priority game has the weights of importance that promise most.
  std::shared_ptr<const GameOptions> own_game = nullptr;
};

// The game to begin with. InvalidArgument: options out of range, or an own game of another name, or
// with other actions, than the config's.
absl::StatusOr<std::shared_ptr<const Game>> GameOf(const TrainingProblem& problem,
                                                   const Config& config);

}  // namespace mallocgame::muzero

#endif  // AGENTS_MUZERO_PROBLEM_H_
