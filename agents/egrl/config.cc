#include "agents/egrl/config.h"

#include "absl/strings/str_cat.h"

namespace mallocgame::egrl {
namespace {

constexpr double kMany = 1e6;

const training::SettingsTable<Config>& Table() {
  static const auto* const kTable = new training::SettingsTable<Config>(
      "egrl",
      {
          {"population", &Config::population, 0, 4096, "", "members; 0: the policy gradient alone"},
          {"boltzmann_share", &Config::boltzmann_share, 0, 1, "",
           "of the members, about, that are Boltzmann chromosomes"},
          {"elites", &Config::elites, 1, 4096, "",
           "members that stay as they are; the best of each kind always does"},
          {"tournament", &Config::tournament, 1, 4096, "",
           "members drawn, of which the best becomes a parent"},
          {"crossover", &Config::crossover, 0, 1, "", "share of children with two parents"},
          {"mutated_share", &Config::mutated_share, 0, 1, "",
           "of a network's weights, at most, that a mutation touches"},
          {"mutation_noise", &Config::mutation_noise, 0, 100, "",
           "deviation of a mutated weight, relative to it"},
          {"redrawn", &Config::redrawn, 0.01, kMany, "",
           "tensors in which the map of a Boltzmann child differs from its parent's, and a refined "
           "one from the best, about"},
          {"attempts", &Config::attempts, 1, 1000, "",
           "mutants of a network, at most, until there is one with a new map"},
          {"screened", &Config::screened, 0, 1, "",
           "share of children, rollouts and refinements for which the critics choose among several "
           "maps; 0: as in the paper"},
          {"candidates", &Config::candidates, 1, 4096, "",
           "maps drawn for such a chromosome, rollout or refinement; for a network it is attempts"},
          {"refined", &Config::refined, 0, 0.9, "",
           "share of all maps that are near the best one, the compiler's being the first; 0: "
           "nothing is known of the compiler"},
          {"gradient", &Config::gradient, 0, 1, "", "learn from the maps; 0: evolution alone"},
          {"rollouts", &Config::rollouts, 1, 4096, "", "of the policy gradient, in a generation"},
          {"exploration", &Config::exploration, 0, kMany, "",
           "tensors of a rollout that get a level at random, about"},
          {"migration", &Config::migration, 1, kMany, "",
           "generations from one migration of the actor to the next"},
          {"hidden", &Config::hidden, 4, 4096, "",
           "numbers of a node in the policy network; a multiple of heads"},
          {"depth", &Config::depth, 0, 16, "", "poolings of the graph U-Net"},
          {"heads", &Config::heads, 1, 64, "", "of the attention"},
          {"pooled", &Config::pooled, 0.1, 1, "", "share of the nodes that a pooling keeps"},
          {"slow_bias", &Config::slow_bias, 0, 100, "",
           "added to what the network says of the slowest level"},
          {"critic_hidden", &Config::critic_hidden, 4, 4096, "",
           "numbers of a node in a critic; a multiple of heads"},
          {"capacity", &Config::capacity, 1, 1e8, "", "maps kept for replay"},
          {"batch", &Config::batch, 1, 65536, "", "maps of an update"},
          {"warmup", &Config::warmup, 1, kMany, "", "maps graded before the first update"},
          {"updates", &Config::updates, 0, 1000, "", "of the networks, for each map graded"},
          {"learning_rate", &Config::learning_rate, 0, 10, "", "of the actor"},
          {"critic_learning_rate", &Config::critic_learning_rate, 0, 10, "", "of the critics"},
          {"reward_scale", &Config::reward_scale, 1e-6, kMany, "",
           "of the rewards that the critics learn"},
          {"entropy", &Config::entropy, 0, 1000, "", "weight of the actor's mean entropy; alpha"},
          {"action_noise", &Config::action_noise, 0, 10, "",
           "deviation of the noise on maps that critics read"},
          {"noise_clip", &Config::noise_clip, 0, 10, "", "most of that noise"},
          {"gradient_clip", &Config::gradient_clip, 1e-3, 1e9, "", "greatest norm of a gradient"},
      });
  return *kTable;
}

}  // namespace

std::vector<Setting> Settings(const Config& config) { return Table().Settings(config); }

absl::Status Set(Config& config, absl::string_view name, absl::string_view value) {
  return Table().Set(config, name, value);
}

absl::Status Check(const Config& config) {
  const auto refuse = [](auto... what) {
    return absl::InvalidArgumentError(absl::StrCat("egrl: ", what...));
  };
  if (config.population == 0 && !config.gradient) {
    return refuse(
        "settings population and gradient: found 0 and 0, allowed: a population, or gradient, or "
        "both");
  }
  if (config.population > 0 && config.elites >= config.population) {
    return refuse("settings elites and population: found ", config.elites, " and ",
                  config.population, ", allowed: fewer elites than members");
  }
  for (const auto& [name, width] :
       {std::pair("hidden", config.hidden), std::pair("critic_hidden", config.critic_hidden)}) {
    if (width % config.heads == 0) continue;
    return refuse("settings ", name, " and heads: found ", width, " and ", config.heads,
                  ", allowed: a multiple of heads");
  }
  return absl::OkStatus();
}

}  // namespace mallocgame::egrl
