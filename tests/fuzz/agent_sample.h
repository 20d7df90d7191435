// What the checkpoints among the seeds were trained on, with settings that make them small. When
// any of it changes, those seeds must be made again.
#pragma once

#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "agents/egrl/config.h"
#include "agents/muzero/actor.h"
#include "agents/muzero/config.h"
#include "agents/muzero/trainer.h"
#include "mallocgame/base/error.h"
#include "mallocgame/game/time/time_game.h"
#include "mallocgame/placement/placement.h"
#include "tests/fuzz/sample.h"

namespace mallocgame::fuzz {

template <class Config>
Config ConfigOf(std::initializer_list<std::pair<const char*, const char*>> settings) {
  Config config;
  for (const auto& [name, value] : settings) MG_CHECK(Set(config, name, value).ok());
  MG_CHECK(Check(config).ok());
  return config;
}

inline muzero::Config SampleMuZero(const std::string& kind) {
  return ConfigOf<muzero::Config>({{"game", kind == "priority" ? "priority" : "time"},
                                   {"candidates", "1"},
                                   {"min_buffer_bytes", "0"},
                                   {"groups", "1"},
                                   {"games", "2"},
                                   {"moves", "2"},
                                   {"simulations", "2"},
                                   {"varied_decisions", "10"},
                                   {"reanalysed", "1"},
                                   {"width", "12"},
                                   {"capacity", "100"},
                                   {"updates", "1"},
                                   {"batch", "2"},
                                   {"demonstration_decisions", "10"},
                                   {"device", "cpu"}});
}

inline muzero::TrainingProblem SampleTraining() {
  return {"fuzz", SampleProgram(), SampleHardware(), std::nullopt};
}

// A trainer behind its first step, and an actor that plays for it.
struct SampleActor {
  explicit SampleActor(const std::string& kind)
      : trainer(*muzero::Trainer::Create({SampleTraining()}, SampleMuZero(kind), 1, 1)) {
    MG_CHECK(trainer->Step(nullptr).ok());
    saved = *trainer->Save();
    weights = *trainer->Weights();
    actor = *muzero::Actor::Create({SampleTraining()}, *trainer->Introduction());
  }
  std::unique_ptr<muzero::Trainer> trainer;
  std::string saved, weights;
  std::unique_ptr<muzero::Actor> actor;
};

inline egrl::Config SampleEgrl() {
  return ConfigOf<egrl::Config>({{"population", "4"},
                                 {"boltzmann_share", "0.5"},
                                 {"elites", "1"},
                                 {"hidden", "4"},
                                 {"depth", "1"},
                                 {"heads", "1"},
                                 {"critic_hidden", "4"},
                                 {"capacity", "8"},
                                 {"batch", "2"},
                                 {"warmup", "2"},
                                 {"migration", "1"}});
}

inline std::shared_ptr<const PlacementProblem> SamplePlacement() {
  static const auto& problem = *new std::shared_ptr<const PlacementProblem>([] {
    TimeGameOptions options;
    options.min_buffer_bytes = 0;
    return *PlacementProblem::Create(*Game::Create(SampleProgram(), SampleHardware(), options),
                                     std::nullopt);
  }());
  return problem;
}

}  // namespace mallocgame::fuzz
