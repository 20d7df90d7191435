// What the tests train on: tiny random programs with dependences, with settings that make a step
// take milliseconds.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "agents/muzero/config.h"
#include "agents/muzero/task.h"
#include "agents/muzero/trainer.h"
#include "mallocgame/base/rng.h"
#include "mallocgame/solvers/registry.h"
#include "tests/agents/training/settings_checks.h"
#include "tests/agents/training/trainer_checks.h"
#include "tests/catch.h"
#include "tests/support/dependences.h"
#include "tests/support/programs.h"

namespace mallocgame::muzero {

// The words of the setting `game`.
inline constexpr const char* kGames[] = {"time", "priority", "schedule"};
// What TinyConfig makes: the strong agent of each game, and the paper's without and with drop
// backup and a penalty for illegal actions.
inline constexpr const char* kKinds[] = {"time", "priority", "schedule", "paper", "constrained"};

inline Config TinyConfig(const std::string& kind = "time") {
  training::NamesAndValues settings = {{"preset", "paper"}};
  if (kind == "constrained") {
    settings.insert(settings.end(), {{"drop_backup", "1"}, {"illegal_penalty", "0.02"}});
  } else if (kind != "paper") {
    settings = {
        {"game", kind.c_str()}, {"varied_decisions", "200"}, {"demonstration_decisions", "200"}};
  }
  const training::NamesAndValues small = {
      {"min_buffer_bytes", "0"}, {"groups", "2"},     {"games", "4"},  {"moves", "4"},
      {"simulations", "8"},      {"reanalysed", "6"}, {"width", "16"}, {"updates", "2"},
      {"batch", "16"},           {"device", "cpu"}};
  settings.insert(settings.end(), small.begin(), small.end());
  return training::ConfigWith<Config>(settings);
}

inline std::shared_ptr<const Program> TinyProgram(uint64_t seed, int instructions = 10) {
  Rng rng(seed);
  return testing::WithDependences(
      *testing::RandomProgram(rng, {.instructions = instructions, .loops = 1, .branches = 0}));
}

inline TrainingProblem TinyProblem(uint64_t seed, int instructions = 10) {
  return {"tiny" + std::to_string(seed), TinyProgram(seed, instructions), testing::TestHardware(12),
          std::nullopt};
}

inline std::shared_ptr<const Game> GameFor(const TrainingProblem& problem, const Config& config) {
  auto game = Game::Create(problem.program, problem.hardware, *config.game_options());
  REQUIRE(game.ok());
  return *game;
}

// The task of a problem, with the game of greedy as its baseline, also where it isn't seen.
inline Task TaskFor(const TrainingProblem& problem, const Config& config) {
  const auto game = GameFor(problem, config);
  const auto greedy = Solve("greedy", {game}, {});
  REQUIRE(greedy.ok());
  auto task = Task::Create(game, config, greedy->play->actions);
  REQUIRE(task.ok());
  return *std::move(task);
}

// The end of a game in which every action is drawn from the legal ones.
inline std::unique_ptr<Position> RandomGame(const Game& game, Rng& rng) {
  std::unique_ptr<Position> position = game.NewInitialPosition();
  while (!position->IsTerminal()) {
    std::vector<int> legal;
    for (int a = 0; a < game.num_actions(); ++a) {
      if (position->legal_actions().Has(a)) legal.push_back(a);
    }
    REQUIRE(position->Apply(rng.Pick(legal)).ok());
  }
  return position;
}

inline std::unique_ptr<Trainer> Make(std::vector<TrainingProblem> problems, const Config& config,
                                     uint64_t seed = 1, int threads = 1) {
  return training::ValueOf(Trainer::Create(std::move(problems), config, seed, threads));
}

using training::Steps;

}  // namespace mallocgame::muzero
