#include "agents/muzero/problem.h"

#include "absl/strings/str_cat.h"
#include "mallocgame/base/error.h"

namespace mallocgame::muzero {

absl::StatusOr<std::shared_ptr<const Game>> GameOf(const TrainingProblem& problem,
                                                   const Config& config) {
  std::unique_ptr<GameOptions> options = config.game_options();
  if (problem.own_game != nullptr) {
    const std::unique_ptr<GameOptions> own = problem.own_game->Clone();
    // For which the networks are made.
    for (const auto& [name, value] : options->List())
      if (name == "candidates" && own->Has(name)) MG_RETURN_IF_ERROR(own->Set(name, value));
    if (own->game() != absl::string_view(options->game()) ||
        own->num_actions() != options->num_actions()) {
      return absl::InvalidArgumentError(
          absl::StrCat("muzero: '", problem.name, "' is a ", own->game(), " game with ",
                       problem.own_game->num_actions(), " actions, allowed: ", options->game(),
                       " games with ", options->num_actions(), ", by the settings"));
    }
    return Game::Create(problem.program, problem.hardware, *own);
  }
  return Game::Create(problem.program, problem.hardware, *options);
}

}  // namespace mallocgame::muzero
