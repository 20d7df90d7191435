// All settings of the EGRL agent, each with its default, its range and a sentence: the one list
// that the command line, Python, the documentation and checkpoints use. docs/related-work.md says
// where each mechanism comes from.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "agents/training/settings.h"
#include "mallocgame/placement/placement.h"

namespace mallocgame::egrl {

struct Config {
  template <class T>
  using Setting = training::Setting<T>;
  static constexpr double kMany = 1e6;  // where the range has no natural end

  Setting<std::string> preset = {
      "strong", "strong|paper",
      "Which agent learns: the strong one, or EGRL as published, as far as that is known; it sets "
      "all others."};

  // The population. A generation grades its children, then the rollouts of the policy gradient,
  // then the refinements of the best map.
  Setting<int> population = {
      20, 0, 4096, "Number of members of the population; with 0 the policy gradient works alone."};
  Setting<double> boltzmann_share = {
      0.6, 0, 1, "Share of the members, roughly, that are Boltzmann chromosomes."};
  Setting<int> elites = {4, 1, 4096,
                         "Number of members that survive a generation unchanged; the best of each "
                         "kind always survives."};
  Setting<int> tournament = {
      3, 1, 4096, "Number of members drawn for a tournament, whose best becomes a parent."};
  Setting<double> crossover = {0.3, 0, 1, "Share of the children that have two parents."};
  Setting<double> mutated_share = {
      0.1, 0, 1, "Greatest share of a parameter's weights that one mutation changes."};
  Setting<double> mutation_noise = {
      0.1, 0, 100, "Standard deviation of the change of a mutated weight, relative to the weight."};
  Setting<double> redrawn = {
      2, 0, kMany,
      "Number of tensors, roughly, in which the map of a Boltzmann child differs from that of its "
      "parent, and a refined map from the best map; with 0 its priors and temperatures alone say "
      "what it draws."};
  Setting<int> attempts = {
      4, 1, 1000,
      "Greatest number of mutants of a network that are made until one has a map that is not yet "
      "graded."};
  Setting<double> screened = {
      0.5, 0, 1,
      "Share of the children, rollouts and refinements for which the critics choose among several "
      "maps."};
  Setting<int> candidates = {
      32, 1, 4096,
      "Number of maps that the critics choose from for a chromosome, rollout or refinement; for a "
      "network the setting attempts counts."};
  Setting<int> climbs = {12, 1, kMany,
                         "Greatest number of such choices for a refinement, each of which goes on "
                         "from the one before."};

  // Beside the population: maps near the best one.
  Setting<double> refined = {
      0.25, 0, 0.9,
      "Share of the population's maps that are refinements of the best one, of which the "
      "compilers' are the first; with 0 nothing is known of the compilers' maps."};

  // What a map earns.
  Setting<bool> penalty = {
      false,
      "Whether a map that doesn't fit earns minus the share of the bytes that have to move, and "
      "critics learn rewards; with 0 it is made to fit, and they learn latencies."};

  Setting<double> noise = {
      0, 0, PlacementProblem::kMostNoise,
      "Relative standard deviation of a measured latency, as on a chip; with 0 none spreads."};

  // The policy gradient.
  Setting<bool> gradient = {true,
                            "Whether a policy gradient learns from the maps; with 0 evolution "
                            "works alone."};
  Setting<int> rollouts = {1, 1, 4096,
                           "Number of rollouts of the policy gradient in a generation."};
  Setting<double> exploration = {
      3, 0, kMany, "Number of tensors of a rollout, roughly, that get a random level."};
  Setting<int> migration = {5, 1, kMany,
                            "Number of generations from one migration of the actor to the next."};

  // The graph network: of the policy, and of the critics in front of what reads the map.
  Setting<int> hidden = {
      64, 4, 4096, "Number of features of a node in the policy network; a multiple of heads."};
  Setting<int> depth = {2, 0, 16, "Number of poolings of the graph U-Net."};
  Setting<int> heads = {4, 1, 64, "Number of attention heads."};
  Setting<double> pooled = {0.8, 0.1, 1, "Share of the nodes that a pooling keeps."};
  Setting<double> slow_bias = {2, 0, 100,
                               "Number added to the network's logit of the slowest level."};
  Setting<int> critic_hidden = {64, 4, 4096,
                                "Number of features of a node in a critic; a multiple of heads."};

  // Learning.
  Setting<int> capacity = {100000, 1, 1e8, "Number of maps that the replay buffer keeps."};
  Setting<int> batch = {48, 1, 65536, "Number of maps of an update."};
  Setting<int> warmup = {48, 1, kMany, "Number of maps that are graded before the first update."};
  Setting<double> updates = {0.15, 0, 1000,
                             "Number of updates of the networks for each graded map."};
  Setting<double> learning_rate = {1e-3, 0, 10, "Learning rate of the actor."};
  Setting<double> critic_learning_rate = {1e-3, 0, 10, "Learning rate of the critics."};
  Setting<double> reward_scale = {
      5, 1e-6, kMany, "Factor by which rewards are multiplied before the critics learn them."};
  Setting<double> entropy = {0.5, 0, 1000, "Weight of the actor's mean entropy in its loss."};
  Setting<double> price_rate = {
      0.05, 0, 1000, "Learning rate of the prices that the actor pays for what it overfills."};
  Setting<double> action_noise = {
      0.03, 0, 10, "Standard deviation of the noise on the maps that the critics learn from."};
  Setting<double> noise_clip = {0.5, 0, 10, "Greatest absolute value of that noise."};
  Setting<double> gradient_clip = {5, 1e-3, 1e9, "Norm to which a longer gradient is clipped."};

  friend bool operator==(const Config&, const Config&) = default;
};

// All settings with the values of `config`.
std::vector<training::SettingText> Settings(const Config& config);

// Sets one setting by name from its text; the preset, which sets all others, has to come first.
// InvalidArgument names what was found and what is allowed.
absl::Status Set(Config& config, absl::string_view name, absl::string_view value);

// InvalidArgument for settings that do not go together.
absl::Status Check(const Config& config);

}  // namespace mallocgame::egrl
