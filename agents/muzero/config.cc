#include "agents/muzero/config.h"

#include "absl/strings/str_cat.h"

namespace mallocgame::muzero {
namespace {

constexpr double kMany = 1e6;

const training::SettingsTable<Config>& Table() {
  static const auto* const kTable = new training::SettingsTable<Config>(
      "muzero",
      {
          {"search_model", &Config::search_model, 0, 0, "true|learned",
           "search plays the true rules, the network says policy and value; or it plays the "
           "learned dynamics"},
          {"selection", &Config::selection, 0, 0, "gumbel|puct",
           "rule by which the search selects"},
          {"simulations", &Config::simulations, 1, 4096, "", "of a search"},
          {"considered", &Config::considered, 1, 64, "",
           "root actions that Gumbel search considers, at most"},
          {"groups", &Config::groups, 1, 64, "", "batches of games; each is played by one thread"},
          {"games", &Config::games, 1, 1024, "",
           "of a group, side by side: the batch of the network"},
          {"moves", &Config::moves, 1, 4096, "", "searched decisions of each game in an iteration"},
          {"restart_share", &Config::restart_share, 0, 1, "",
           "of games that begin in the middle of one of the best games"},
          {"perturbed_share", &Config::perturbed_share, 0, 1, "",
           "of those, that begin with a decision at random"},
          {"window", &Config::window, 1, 100000, "",
           "searched decisions of such a game, at most; then it follows the best game"},
          {"varied_decisions", &Config::varied_decisions, 0, 1e9, "",
           "that a group and iteration plays in games that vary a best game where the policy "
           "would, without search"},
          {"paper_actions", &Config::paper_actions, 0, 1, "", "leave CopyEarly out"},
          {"min_buffer_bytes", &Config::min_buffer_bytes, 0, 1 << 30, "",
           "smaller buffers stay in main memory and are not asked"},
          {"neighbours", &Config::neighbours, 0, 1024, "",
           "of the observation: accesses before and after the one at hand"},
          {"ticks_back", &Config::ticks_back, 0, 4096, "",
           "of the observation: columns before now; a multiple of 4"},
          {"ticks_ahead", &Config::ticks_ahead, 0, 4096, "",
           "of the observation: columns from now on; a multiple of 4"},
          {"ticks_per_column", &Config::ticks_per_column, 1, 65536, "", "of the observation"},
          {"address_cells", &Config::address_cells, 0, 4096, "",
           "of the observation: cells of fast memory"},
          {"embedding", &Config::embedding, 4, 4096, "", "numbers of an attention token"},
          {"heads", &Config::heads, 1, 64, "", "of the attention"},
          {"width", &Config::width, 4, 8192, "", "numbers of a hidden state"},
          {"blocks", &Config::blocks, 0, 64, "", "residual blocks of the representation"},
          {"capacity", &Config::capacity, 100, 1e8, "",
           "decisions of recent games kept for replay"},
          {"best_games", &Config::best_games, 1, 4096, "",
           "of a program, kept for replay and as beginnings"},
          {"best_share", &Config::best_share, 0, 1, "", "of a batch, from the best games"},
          {"demonstration_share", &Config::demonstration_share, 0, 1, "",
           "of a batch, from demonstrations"},
          {"demonstration_decisions", &Config::demonstration_decisions, 0, 1e12, "",
           "in the games that annealing may play for its demonstration; 0: no demonstrations but "
           "those of greedy and xla-heuristic"},
          {"priority_exponent", &Config::priority_exponent, 0, 1, "",
           "of the value error, in the choice of what is replayed"},
          {"importance_exponent", &Config::importance_exponent, 0, 1, "",
           "of the correction for that"},
          {"reanalysed", &Config::reanalysed, 0, kMany, "",
           "old decisions that a group searches again in an iteration"},
          {"imitation", &Config::imitation, 0, 1, "",
           "share of what was played in the policies learned from best games and demonstrations; "
           "the rest is the search's"},
          {"updates", &Config::updates, 1, kMany, "", "of the network, in an iteration"},
          {"batch", &Config::batch, 1, 65536, "", "decisions of an update"},
          {"n_step", &Config::n_step, 1, kMany, "",
           "decisions after which a value target trusts the search's value"},
          {"unroll", &Config::unroll, 1, 64, "", "steps of the learned dynamics that are trained"},
          {"learning_rate", &Config::learning_rate, 0, 10, "", "after warming up"},
          {"final_learning_rate", &Config::final_learning_rate, 0, 10, "",
           "after its cosine decay"},
          {"warmup_updates", &Config::warmup_updates, 0, 1e9, "",
           "until the learning rate is reached"},
          {"decay_updates", &Config::decay_updates, 1, 1e9, "",
           "until the final learning rate is reached"},
          {"weight_decay", &Config::weight_decay, 0, 1, "", "of AdamW"},
          {"gradient_clip", &Config::gradient_clip, 1e-3, 1e9, "", "greatest norm of a gradient"},
          {"value_weight", &Config::value_weight, 0, 1000, "", "of the value loss"},
          {"reward_weight", &Config::reward_weight, 0, 1000, "",
           "of the reward loss, with learned dynamics"},
          {"consistency_weight", &Config::consistency_weight, 0, 1000, "",
           "of the consistency loss, with learned dynamics"},
          {"precision", &Config::precision, 0, 0, "fp32|bf16",
           "of the network's arithmetic; weights are kept in fp32"},
          {"device", &Config::device, 0, 0, "auto|cpu|cuda",
           "of the network; auto: cuda if there is one"},
      });
  return *kTable;
}

}  // namespace

GameOptions Config::game_options() const {
  GameOptions options;
  options.min_buffer_bytes = min_buffer_bytes;
  options.paper_actions = paper_actions;
  return options;
}

ObservationOptions Config::observation_options() const {
  return {neighbours, ticks_back, ticks_ahead, ticks_per_column, address_cells};
}

std::vector<Setting> Settings(const Config& config) { return Table().Settings(config); }

absl::Status Set(Config& config, absl::string_view name, absl::string_view value) {
  return Table().Set(config, name, value);
}

absl::Status Check(const Config& config) {
  const auto refuse = [](auto... what) {
    return absl::InvalidArgumentError(absl::StrCat("muzero: ", what...));
  };
  if ((config.ticks_back + config.ticks_ahead) % 4 != 0) {
    return refuse("settings ticks_back and ticks_ahead: found ", config.ticks_back, " and ",
                  config.ticks_ahead, ", allowed: a multiple of 4 together");
  }
  if (config.best_share + config.demonstration_share > 1) {
    return refuse("settings best_share and demonstration_share: found ", config.best_share, " and ",
                  config.demonstration_share, ", allowed: at most 1 together");
  }
  return absl::OkStatus();
}

}  // namespace mallocgame::muzero
