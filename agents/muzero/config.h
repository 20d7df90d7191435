// All settings of the MuZero agent, each with its range and a sentence: the one list that the
// command line, Python, the documentation and checkpoints use.
#ifndef AGENTS_MUZERO_CONFIG_H_
#define AGENTS_MUZERO_CONFIG_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "agents/training/settings.h"
#include "mallocgame/game/game.h"
#include "mallocgame/game/observation.h"

namespace mallocgame::muzero {

struct Config {
  // What is searched, and how.
  std::string search_model = "true";
  std::string selection = "gumbel";
  int simulations = 16;
  int considered = 4;

  // Self-play. An iteration is `moves` searched decisions in each of groups * games games played
  // side by side.
  int groups = 2;
  int games = 24;
  int moves = 32;
  double restart_share = 0.8;
  double perturbed_share = 0;
  int window = 96;
  int varied_decisions = 4'000'000;

  // The game and what is seen of it.
  bool paper_actions = false;
  int min_buffer_bytes = 16 << 10;
  int neighbours = 8;
  int ticks_back = 8;
  int ticks_ahead = 24;
  int ticks_per_column = 4;
  int address_cells = 16;

  // The network.
  int embedding = 64;
  int heads = 4;
  int width = 192;
  int blocks = 2;

  // What is kept and replayed.
  int capacity = 200000;
  int best_games = 16;
  double best_share = 0.25;
  double demonstration_share = 0.25;
  double demonstration_decisions = 5e7;
  double priority_exponent = 0.6;
  double importance_exponent = 0.4;
  int reanalysed = 96;
  double imitation = 0.5;

  // Learning.
  int updates = 16;
  int batch = 128;
  int n_step = 32;
  int unroll = 5;
  double learning_rate = 1e-3;
  double final_learning_rate = 1e-4;
  int warmup_updates = 100;
  int decay_updates = 20000;
  double weight_decay = 1e-4;
  double gradient_clip = 5;
  double value_weight = 0.5;
  double reward_weight = 1;
  double consistency_weight = 1;
  std::string precision = "fp32";
  std::string device = "auto";

  bool learned() const { return search_model == "learned"; }
  GameOptions game_options() const;
  ObservationOptions observation_options() const;
  friend bool operator==(const Config&, const Config&) = default;
};

using training::Setting;
std::vector<Setting> Settings(const Config& config);

// Sets one by name from its text. InvalidArgument names what was found and what is allowed.
absl::Status Set(Config& config, absl::string_view name, absl::string_view value);

// What no single setting can tell: settings that don't go together. InvalidArgument.
absl::Status Check(const Config& config);

}  // namespace mallocgame::muzero

#endif  // AGENTS_MUZERO_CONFIG_H_
