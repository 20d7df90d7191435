#include "agents/muzero/config.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "mallocgame/base/error.h"
#include "mallocgame/game/games.h"

namespace mallocgame::muzero {
namespace {

const training::SettingsTable<Config>& Table() {
  static const auto* const table = new training::SettingsTable<Config>(
      "muzero", {
                    {"preset", &Config::preset},
                    {"selection", &Config::selection},
                    {"simulations", &Config::simulations},
                    {"prior", &Config::prior},
                    {"rollout_share", &Config::rollout_share},
                    {"considered", &Config::considered},
                    {"groups", &Config::groups},
                    {"games", &Config::games},
                    {"moves", &Config::moves},
                    {"restart_share", &Config::restart_share},
                    {"window", &Config::window},
                    {"varied_decisions", &Config::varied_decisions},
                    {"proposals", &Config::proposals},
                    {"game", &Config::game},
                    {"candidates", &Config::candidates},
                    {"paper_actions", &Config::paper_actions},
                    {"min_buffer_bytes", &Config::min_buffer_bytes},
                    {"baseline", &Config::baseline},
                    {"neighbours", &Config::neighbours},
                    {"ticks_back", &Config::ticks_back},
                    {"ticks_ahead", &Config::ticks_ahead},
                    {"ticks_per_column", &Config::ticks_per_column},
                    {"address_cells", &Config::address_cells},
                    {"embedding", &Config::embedding},
                    {"heads", &Config::heads},
                    {"width", &Config::width},
                    {"blocks", &Config::blocks},
                    {"capacity", &Config::capacity},
                    {"best_games", &Config::best_games},
                    {"best_share", &Config::best_share},
                    {"demonstration_share", &Config::demonstration_share},
                    {"demonstration_decisions", &Config::demonstration_decisions},
                    {"priority_exponent", &Config::priority_exponent},
                    {"reanalysed", &Config::reanalysed},
                    {"imitation", &Config::imitation},
                    {"updates", &Config::updates},
                    {"batch", &Config::batch},
                    {"n_step", &Config::n_step},
                    {"unroll", &Config::unroll},
                    {"learning_rate", &Config::learning_rate},
                    {"final_learning_rate", &Config::final_learning_rate},
                    {"warmup_updates", &Config::warmup_updates},
                    {"decay_updates", &Config::decay_updates},
                    {"precision", &Config::precision},
                    {"device", &Config::device},
                });
  return *table;
}

// MuZero as published, as far as that is known, with networks and batches for some minutes on a
// core.
Config PaperConfig() {
  Config config;
  config.preset = "paper";
  config.selection = "puct";
  config.simulations = 32;
  config.games = 16;
  config.moves = 16;
  config.restart_share = 0;
  config.varied_decisions = 0;
  config.game = "time";
  config.paper_actions = true;
  config.width = 128;
  config.embedding = 32;
  config.best_share = 0;
  config.demonstration_share = 0;
  config.demonstration_decisions = 0;
  config.imitation = 0;
  config.updates = 16;
  config.batch = 64;
  config.decay_updates = 3000;
  return config;
}

}  // namespace

std::unique_ptr<GameOptions> Config::game_options() const {
  const std::string& name = game;
  std::unique_ptr<GameOptions> options = *OptionsOfGame(name);
  options->min_buffer_bytes = min_buffer_bytes;
  if (options->Has("paper_actions"))
    MG_CHECK(options->Set("paper_actions", static_cast<bool>(paper_actions)).ok());
  // As many as the game can show.
  int64_t shown = candidates;
  while (options->Has("candidates") && !options->Set("candidates", shown).ok()) --shown;
  return options;
}

ObservationOptions Config::observation_options() const {
  return {neighbours, ticks_back, ticks_ahead, ticks_per_column, address_cells};
}

std::vector<training::SettingText> Settings(const Config& config) {
  return Table().Settings(config);
}

absl::Status Set(Config& config, absl::string_view name, absl::string_view value) {
  Config changed = config;
  MG_RETURN_IF_ERROR(Table().Set(changed, name, value));
  config = name != "preset" ? changed : changed.paper() ? PaperConfig() : Config();
  return absl::OkStatus();
}

absl::Status Check(const Config& config) {
  const auto refuse = [](auto... what) {
    return absl::InvalidArgumentError(absl::StrCat("muzero: ", what...));
  };
  if (const std::string game = config.game; config.paper() && game != "time") {
    return refuse("setting game: found '", game, "', allowed with preset=paper: time");
  }
  const int back = config.ticks_back, ahead = config.ticks_ahead;
  if ((back + ahead) % 4 != 0) {
    return refuse("settings ticks_back and ticks_ahead: found ", back, " and ", ahead,
                  ", allowed: a multiple of 4 together");
  }
  const double best = config.best_share, demonstrations = config.demonstration_share;
  if (best + demonstrations > 1) {
    return refuse("settings best_share and demonstration_share: found ", best, " and ",
                  demonstrations, ", allowed: at most 1 together");
  }
  return absl::OkStatus();
}

}  // namespace mallocgame::muzero
