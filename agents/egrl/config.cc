#include "agents/egrl/config.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "mallocgame/base/error.h"

namespace mallocgame::egrl {
namespace {

const training::SettingsTable<Config>& Table() {
  static const auto* const table = new training::SettingsTable<Config>(
      "egrl", {
                  {"preset", &Config::preset},
                  {"population", &Config::population},
                  {"boltzmann_share", &Config::boltzmann_share},
                  {"elites", &Config::elites},
                  {"tournament", &Config::tournament},
                  {"crossover", &Config::crossover},
                  {"mutated_share", &Config::mutated_share},
                  {"mutation_noise", &Config::mutation_noise},
                  {"redrawn", &Config::redrawn},
                  {"attempts", &Config::attempts},
                  {"screened", &Config::screened},
                  {"candidates", &Config::candidates},
                  {"climbs", &Config::climbs},
                  {"refined", &Config::refined},
                  {"penalty", &Config::penalty},
                  {"noise", &Config::noise},
                  {"gradient", &Config::gradient},
                  {"rollouts", &Config::rollouts},
                  {"exploration", &Config::exploration},
                  {"migration", &Config::migration},
                  {"hidden", &Config::hidden},
                  {"depth", &Config::depth},
                  {"heads", &Config::heads},
                  {"pooled", &Config::pooled},
                  {"slow_bias", &Config::slow_bias},
                  {"critic_hidden", &Config::critic_hidden},
                  {"capacity", &Config::capacity},
                  {"batch", &Config::batch},
                  {"warmup", &Config::warmup},
                  {"updates", &Config::updates},
                  {"learning_rate", &Config::learning_rate},
                  {"critic_learning_rate", &Config::critic_learning_rate},
                  {"reward_scale", &Config::reward_scale},
                  {"entropy", &Config::entropy},
                  {"price_rate", &Config::price_rate},
                  {"action_noise", &Config::action_noise},
                  {"noise_clip", &Config::noise_clip},
                  {"gradient_clip", &Config::gradient_clip},
              });
  return *table;
}

// Names of settings are those of the library; the numbers are recalled of the paper, or what is
// left where a mechanism of the library's own is off.
Config PaperConfig() {
  Config config;
  config.preset = "paper";
  config.boltzmann_share = 0.2;
  config.redrawn = 0;
  config.attempts = config.candidates = 1;
  config.screened = 0;
  config.refined = 0;
  config.penalty = true;
  config.exploration = 0;
  config.hidden = config.critic_hidden = 128;
  config.depth = 4;
  config.batch = config.warmup = 24;
  config.updates = 1;
  config.entropy = 0.05;
  config.price_rate = 0;
  return config;
}

}  // namespace

std::vector<training::SettingText> Settings(const Config& config) {
  return Table().Settings(config);
}

absl::Status Set(Config& config, absl::string_view name, absl::string_view value) {
  Config changed = config;
  MG_RETURN_IF_ERROR(Table().Set(changed, name, value));
  config = name != "preset" ? changed : changed.preset == "paper" ? PaperConfig() : Config();
  return absl::OkStatus();
}

absl::Status Check(const Config& config) {
  const auto refuse = [](const auto&... what) {
    return absl::InvalidArgumentError(absl::StrCat("egrl: ", what...));
  };
  const int population = config.population, elites = config.elites, heads = config.heads;
  if (population == 0 && !config.gradient) {
    return refuse(
        "settings population and gradient: found 0 and 0, allowed: a population, or gradient, or "
        "both");
  }
  if (population > 0 && elites >= population) {
    return refuse("settings elites and population: found ", elites, " and ", population,
                  ", allowed: fewer elites than members");
  }
  if (config.redrawn == 0 && config.refined > 0) {
    return refuse("settings redrawn and refined: found 0 and ", config.refined.text(),
                  ", allowed: refined 0, or a map that differs from the best one");
  }
  for (const auto& [name, width] :
       {std::pair<const char*, int>("hidden", config.hidden),
        std::pair<const char*, int>("critic_hidden", config.critic_hidden)}) {
    if (width % heads == 0) continue;
    return refuse("settings ", name, " and heads: found ", width, " and ", heads,
                  ", allowed: a multiple of heads");
  }
  return absl::OkStatus();
}

}  // namespace mallocgame::egrl
