// All settings of the MuZero agent, each with its default, its range and a sentence: the one list
// that the command line, Python, the documentation and checkpoints use.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "agents/training/settings.h"
#include "mallocgame/game/game_options.h"
#include "mallocgame/game/observation.h"
#include "mallocgame/game/priority/priority_game.h"

namespace mallocgame::muzero {

struct Config {
  template <class T>
  using Setting = training::Setting<T>;
  static constexpr double kMany = 1e6;  // where the range has no natural end

  Setting<std::string> preset = {
      "strong", "strong|paper",
      "Which agent learns: the strong one, which searches the true rules from demonstrations on, "
      "or MuZero as published, which searches learned dynamics from nothing on; it sets all "
      "others."};

  // What is searched, and how.
  Setting<int> simulations = {
      16, 1, 4096, "Number of simulations of a search; with 1 the policy decides alone."};
  Setting<std::string> prior = {
      "network", "network|uniform",
      "The policy from which the search begins: the network's, or all legal actions alike."};
  Setting<double> rollout_share = {
      1, 0, 1,
      "Share that a rollout has in the value of a leaf, which plays on as the best game known did; "
      "the network's value has the rest; it counts with the true rules only."};

  // Self-play. In an iteration each of groups * games games, played side by side, makes `moves`
  // searched decisions.
  Setting<int> groups = {2, 1, 64, "Number of groups of games; one thread plays each group."};
  Setting<int> games = {
      24, 1, 1024, "Number of games of a group, which is the batch size of the network in play."};
  Setting<int> moves = {8, 1, 4096, "Number of searched decisions of each game in an iteration."};
  Setting<double> restart_share = {
      0.8, 0, 1, "Share of the games that begin in the middle of one of the best games."};
  Setting<int> varied_decisions = {
      4'000'000, 0, 1e9,
      "Number of decisions that a group plays in an iteration, without search, in games that vary "
      "a best game; one of the priority game counts as 4, one of the schedule game as 40. The time "
      "game is not varied."};

  Setting<std::string> proposals = {
      "network", "network|uniform",
      "Where those games change a best one: where the network's policy suggests it, or anywhere."};

  // The game, and what is observed of it.
  Setting<std::string> game = {
      "priority", "time|priority|schedule",
      "The game that is played: time decides accesses in the order of time, priority places the "
      "most important residences first, schedule decides the order of instructions before that."};
  Setting<int> candidates = {
      kMaxCandidates, 1, kMaxCandidates,
      "Number of the most important segments that the priority game shows; the schedule game "
      "shows at most 47. With fewer the games of annealing, which sees as many as it can, can't "
      "always be followed."};
  Setting<int> min_buffer_bytes = {
      16 << 10, 0, 1 << 30,
      "Size in bytes below which a buffer stays in main memory without a decision."};
  // Of the time game, and of MuZero as published only; mallocgame/game/time/time_game.h has them.
  Setting<bool> drop_backup = {
      false,
      "Whether the accesses that a write's NoCopy binds are decided one by one, and a dead end "
      "goes back to the write, which is then dropped; with 0 they follow at once; with "
      "preset=paper."};
  Setting<double> illegal_penalty = {
      0, 0, 1,
      "What an illegal action costs, as a share of the latency with everything in main memory; "
      "with 0 illegal actions are masked at the root; with preset=paper."};
  Setting<std::string> baseline = {
      "best", "best|greedy",
      "The game that is seen beside a position, and that returns are counted over: the best of "
      "greedy, rent, styles and xla-heuristic, which play dozens, or greedy's, which is one."};

  // The network.
  Setting<int> width = {
      192, 12, 8192, "Number of features of a hidden state; a token or a use has a third of them."};

  // What is kept and replayed.
  Setting<int> capacity = {200000, 100, 1e8,
                           "Number of decisions of recent games that the replay buffer keeps."};
  Setting<double> demonstration_share = {
      0.25, 0, 1,
      "Share of a batch that is drawn from demonstrations; the best games have a third of the "
      "rest."};
  Setting<double> imitation = {
      0.5, 0, 1,
      "Share of the action played in the policy target of best games and demonstrations, if they "
      "are no slower than the baseline; the search's policy has the rest."};
  Setting<double> demonstration_decisions = {
      5e7, 0, 1e12,
      "Number of decisions in the games that annealing may play for its demonstration; one of the "
      "priority game counts as 4 (the schedule game's are played in that); with 0 only greedy, "
      "rent, styles and xla-heuristic demonstrate."};
  Setting<int> reanalysed = {
      24, 0, kMany, "Number of old decisions that a group searches again in an iteration."};

  // Learning.
  Setting<int> updates = {
      8, 0, kMany, "Number of updates of the network in an iteration; with 0 nothing is learned."};
  Setting<int> batch = {128, 1, 65536, "Number of decisions of an update."};
  Setting<double> learning_rate = {1e-3, 0, 10, "Learning rate after warming up."};
  Setting<int> decay_updates = {
      20000, 1, 1e9, "Number of updates in which the learning rate falls to its final value."};
  Setting<std::string> device = {"auto", "auto|cpu|cuda",
                                 "Device of the network; auto takes cuda where there is one."};

  // The rest are no settings, because no measurement has shown a gain of other numbers.
  static constexpr int kHeads = 4;            // of attention
  static constexpr int kBlocks = 2;           // residual ones of a representation
  static constexpr int kWindow = 96;          // most searched decisions of a game begun midway
  static constexpr int kMostConsidered = 64;  // actions that Gumbel search considers at a root
  static constexpr int kBestGames = 16;       // kept of a program
  static constexpr int kSteps = 32;           // after which value targets continue with a search
  static constexpr int kUnroll = 5;           // steps of the learned dynamics
  static constexpr int kWarmupUpdates = 50;   // in which the learning rate rises
  static constexpr double kFinalShare = 0.1;  // of the learning rate, after its decay
  int embedding() const { return width / 3; }
  // Share of a batch that is drawn from the best games.
  double best_share() const { return paper() ? 0 : (1 - demonstration_share) / 3; }

  // Whether the agent is MuZero as published, whose search plays learned dynamics.
  bool paper() const { return preset == "paper"; }
  // Whether rollouts by the rules alone say what actions are worth, which is exact.
  bool exact() const { return !paper() && rollout_share == 1; }
  // Of the game that is played, without a program.
  std::unique_ptr<GameOptions> game_options() const;
  ObservationOptions observation_options() const;
  friend bool operator==(const Config&, const Config&) = default;
};

// All settings with the values of `config`.
std::vector<training::SettingText> Settings(const Config& config);

// Sets one setting by name from its text; the preset, which sets all others, has to come first.
// InvalidArgument names what was found and what is allowed.
absl::Status Set(Config& config, absl::string_view name, absl::string_view value);

// InvalidArgument for settings that do not go together.
absl::Status Check(const Config& config);

}  // namespace mallocgame::muzero
