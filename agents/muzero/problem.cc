#include "agents/muzero/problem.h"

#include "absl/strings/str_cat.h"

namespace mallocgame::muzero {

absl::StatusOr<std::shared_ptr<const Game>> GameOf(const TrainingProblem& problem,
                                                   const Config& config) {
  GameOptions options = config.game_options();
  if (problem.own_game) {
    const int candidates = options.candidates;
    if (problem.own_game->kind != options.kind ||
        problem.own_game->paper_actions != options.paper_actions) {
      return absl::InvalidArgumentError(absl::StrCat(
          "muzero: '", problem.name, "' is a ", GameKindName(problem.own_game->kind), " game with ",
          NumActions(*problem.own_game), " actions, allowed: ", GameKindName(options.kind),
          " games with ", NumActions(options), ", by the settings"));
    }
    options = *problem.own_game;
    options.candidates = candidates;
  }
  return Game::Create(problem.program, problem.hardware, options);
}

}  // namespace mallocgame::muzero
