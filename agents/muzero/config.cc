#include "agents/muzero/config.h"

#include "absl/strings/str_cat.h"
#include "mallocgame/base/error.h"
#include "mallocgame/game/games.h"

namespace mallocgame::muzero {
namespace {

const training::SettingsTable<Config>& Table() {
  static const auto* const table = new training::SettingsTable<Config>(
      "muzero", {
                    {"preset", &Config::preset},
                    {"simulations", &Config::simulations},
                    {"prior", &Config::prior},
                    {"rollout_share", &Config::rollout_share},
                    {"groups", &Config::groups},
                    {"games", &Config::games},
                    {"moves", &Config::moves},
                    {"restart_share", &Config::restart_share},
                    {"varied_decisions", &Config::varied_decisions},
                    {"proposals", &Config::proposals},
                    {"game", &Config::game},
                    {"candidates", &Config::candidates},
                    {"min_buffer_bytes", &Config::min_buffer_bytes},
                    {"drop_backup", &Config::drop_backup},
                    {"illegal_penalty", &Config::illegal_penalty},
                    {"baseline", &Config::baseline},
                    {"width", &Config::width},
                    {"capacity", &Config::capacity},
                    {"demonstration_decisions", &Config::demonstration_decisions},
                    {"demonstration_share", &Config::demonstration_share},
                    {"imitation", &Config::imitation},
                    {"reanalysed", &Config::reanalysed},
                    {"updates", &Config::updates},
                    {"batch", &Config::batch},
                    {"learning_rate", &Config::learning_rate},
                    {"decay_updates", &Config::decay_updates},
                    {"device", &Config::device},
                });
  return *table;
}

// MuZero as published, as far as that is known, with networks and batches for some minutes on a
// core.
Config PaperConfig() {
  Config config;
  config.preset = "paper";
  config.simulations = 32;
  config.groups = 1;  // one large batch takes less time than two
  config.games = 32;
  config.moves = 16;
  config.restart_share = 0;
  config.varied_decisions = 0;
  config.game = "time";
  config.width = 128;
  config.demonstration_share = 0;
  config.demonstration_decisions = 0;
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
  if (name == "time") {
    MG_CHECK(options->Set("paper_actions", paper()).ok());
    MG_CHECK(options->Set("drop_backup", bool{drop_backup}).ok());
    MG_CHECK(options->Set("illegal_penalty", double{illegal_penalty}).ok());
  }
  // As many as the game can show.
  int64_t shown = candidates;
  while (options->Has("candidates") && !options->Set("candidates", shown).ok()) --shown;
  return options;
}

ObservationOptions Config::observation_options() const {
  return {.neighbours = 8, .ticks_back = 8, .ticks_ahead = 24, .address_cells = 16};
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
  if (const std::string game = config.game; config.paper() && game != "time") {
    return absl::InvalidArgumentError(
        absl::StrCat("muzero: setting game: found '", game, "', allowed with preset=paper: time"));
  }
  if (!config.paper() && (config.drop_backup || config.illegal_penalty > 0)) {
    return absl::InvalidArgumentError(
        "muzero: settings drop_backup and illegal_penalty: found one of them with preset=strong, "
        "allowed: with preset=paper");
  }
  return absl::OkStatus();
}

}  // namespace mallocgame::muzero
