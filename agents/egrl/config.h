// All settings of the EGRL agent, each with its range and a sentence: the one list that the command
// line, Python, the documentation and checkpoints use. What the paper is remembered to say is the
// default, but for the entropy's weight (0.05); docs/egrl.md says what is ours.
#ifndef AGENTS_EGRL_CONFIG_H_
#define AGENTS_EGRL_CONFIG_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "agents/training/settings.h"

namespace mallocgame::egrl {

struct Config {
  // The population. A generation grades its children, then the rollouts of the policy gradient,
  // then what refines the best map.
  int population = 20;
  double boltzmann_share = 0.2;
  int elites = 4;
  int tournament = 3;
  double crossover = 0.3;
  double mutated_share = 0.1;
  double mutation_noise = 0.1;
  double redrawn = 2;
  int attempts = 4;
  double screened = 0.5;
  int candidates = 16;

  // Beside the population: maps near the best one.
  double refined = 0.25;

  // The policy gradient.
  bool gradient = true;
  int rollouts = 1;
  double exploration = 3;
  int migration = 5;

  // The graph network: of the policy, and of the critics in front of what reads the map.
  int hidden = 128;
  int depth = 4;
  int heads = 4;
  double pooled = 0.8;
  double slow_bias = 2;
  int critic_hidden = 64;

  // Learning.
  int capacity = 100000;
  int batch = 24;
  int warmup = 48;
  double updates = 1;
  double learning_rate = 1e-3;
  double critic_learning_rate = 1e-3;
  double reward_scale = 5;
  double entropy = 0.5;
  double action_noise = 0.03;
  double noise_clip = 0.5;
  double gradient_clip = 5;

  friend bool operator==(const Config&, const Config&) = default;
};

using training::Setting;
std::vector<Setting> Settings(const Config& config);

// Sets one by name from its text. InvalidArgument names what was found and what is allowed.
absl::Status Set(Config& config, absl::string_view name, absl::string_view value);

// What no single setting can tell: settings that don't go together. InvalidArgument.
absl::Status Check(const Config& config);

}  // namespace mallocgame::egrl

#endif  // AGENTS_EGRL_CONFIG_H_
