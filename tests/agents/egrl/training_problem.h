// What the tests train on: tiny random programs on three levels of memory, with settings that make
// a generation take milliseconds.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "agents/egrl/config.h"
#include "agents/egrl/trainer.h"
#include "mallocgame/placement/placement.h"
#include "tests/agents/training/settings_checks.h"
#include "tests/agents/training/trainer_checks.h"
#include "tests/catch.h"
#include "tests/support/play.h"
#include "tests/support/programs.h"

namespace mallocgame::egrl {

// EGRL as published, with tiny networks.
inline Config TinyPaperConfig() {
  return training::ConfigWith<Config>({{"preset", "paper"},
                                       {"population", "8"},
                                       {"elites", "2"},
                                       {"hidden", "8"},
                                       {"heads", "2"},
                                       {"critic_hidden", "8"},
                                       {"slow_bias", "0"}});
}

inline Config TinyConfig() {
  return training::ConfigWith<Config>({{"population", "8"},
                                       {"boltzmann_share", "0.25"},
                                       {"elites", "2"},
                                       {"hidden", "8"},
                                       {"depth", "2"},
                                       {"heads", "2"},
                                       {"critic_hidden", "8"},
                                       {"candidates", "8"},
                                       {"climbs", "3"},
                                       {"warmup", "10"},
                                       {"updates", "1"},
                                       {"batch", "8"},
                                       {"migration", "2"},
                                       {"slow_bias", "1"}});
}

inline std::shared_ptr<const Program> TinyProgram(uint64_t seed, int instructions) {
  Rng rng(seed);
  testing::RandomProgramOptions options;
  options.roofline = true;
  options.instructions = instructions;
  return testing::RandomProgram(rng, options);
}

// The first program from `seed` on with at least three nodes, and no more tensors than `most`. Its
// two faster levels have `room` bytes.
inline std::shared_ptr<const PlacementProblem> TinyProblem(uint64_t seed, int instructions = 8,
                                                           size_t most = 1000, int64_t room = 12) {
  using testing::kBytePerPs;
  const Hierarchy hierarchy = {
      "three",
      {{"A", room, 4 * kBytePerPs}, {"B", room, 2 * kBytePerPs}, {"C", 1 << 20, kBytePerPs}},
      100 * kBytePerPs};
  while (true) {
    auto problem = PlacementProblem::Create(TinyProgram(seed++, instructions), hierarchy);
    if (problem.ok() && (*problem)->graph().nodes.size() >= 3 && (*problem)->map_size() <= most)
      return *std::move(problem);
  }
}

// A random game of twelve instructions, one loop among them.
inline std::shared_ptr<const Game> TinyGame(uint64_t seed, const std::string& kind = "time") {
  Rng rng(seed);
  const auto program = testing::RandomProgram(rng, {.instructions = 12, .loops = 1, .branches = 0});
  return *Game::Create(program, testing::TestHardware(12), *testing::OptionsOf(kind));
}

// The least latency of all maps that fit.
inline int64_t Optimum(const PlacementProblem& problem) {
  PlacementMap map(problem.map_size(), 0);
  int64_t best = INT64_MAX;
  while (true) {
    const PlacementOutcome outcome = *problem.Evaluate(map);
    if (outcome.moved == 0) best = std::min(best, outcome.latency_ps);
    size_t i = 0;
    while (i < map.size() && ++map[i] == problem.levels()) map[i++] = 0;
    if (i == map.size()) return best;
  }
}

inline std::unique_ptr<Trainer> Make(std::shared_ptr<const PlacementProblem> problem,
                                     const Config& config, uint64_t seed = 1, int threads = 1) {
  return training::ValueOf(Trainer::Create({std::move(problem)}, config, seed, threads));
}

using training::Steps;

}  // namespace mallocgame::egrl
