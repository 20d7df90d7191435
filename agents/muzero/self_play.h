// A group of games played side by side by one thread: searched decisions, variations of the best
// games, and old decisions searched again. What it does depends on its networks, the replay, the
// seed and its own past only.
#ifndef AGENTS_MUZERO_SELF_PLAY_H_
#define AGENTS_MUZERO_SELF_PLAY_H_

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "agents/mcts/search.h"
#include "agents/muzero/config.h"
#include "agents/muzero/network.h"
#include "agents/muzero/replay.h"
#include "agents/muzero/search_models.h"
#include "agents/muzero/task.h"

namespace mallocgame::muzero {

// What an iteration of a group gave.
struct Harvest {
  struct Reanalysed {
    Position position;
    std::array<float, kActions> policy;
    float value;
  };
  std::vector<PlayedGame> games;       // finished
  std::vector<PlayedGame> variations;  // better than the game they vary
  std::vector<Reanalysed> reanalysed;  // positions of the replay as it was
  int64_t searches = 0;
  int64_t evaluations = 0;  // positions that the network looked at
  int64_t varied = 0;       // games that Vary played
  // of the searches: mean depth of leaves; entropy of the improved policy, nats
  double depth_sum = 0, entropy_sum = 0;
};

class SelfPlay {
 public:
  // `tasks` must live as long, and each have a decision with several legal actions.
  static absl::StatusOr<std::unique_ptr<SelfPlay>> Create(const Config& config,
                                                          absl::Span<const Task> tasks);

  // Plays config.moves searched decisions of each game. Cancelled if `interrupted` (may be empty)
  // says so between them: the group must then be given up. `replay` has a best game of each task,
  // and doesn't change meanwhile.
  absl::StatusOr<Harvest> Run(Network& network, const Replay& replay, uint64_t seed,
                              const std::function<bool()>& interrupted);

  // The games under way.
  void Write(std::string& out) const;
  absl::Status Read(absl::string_view& in);

 private:
  struct Episode {
    int32_t task = -1;  // -1: not begun
    int32_t left = 0;   // searched decisions to go; then it follows `follow`
    std::optional<State> state;
    std::vector<Step> steps;
    std::vector<uint8_t> follow;  // empty: searched to the end
  };

  SelfPlay(const Config& config, absl::Span<const Task> tasks) : config_(config), tasks_(tasks) {}

  Episode Begin(const Replay& replay, Rng& rng) const;
  PlayedGame Finish(const Episode& episode) const;
  absl::Status Search(absl::Span<const Root> roots, SearchModel& model, uint64_t seed,
                      Harvest& harvest);
  absl::Status Move(const Replay& replay, SearchModel& model, uint64_t seed, Rng& rng,
                    Harvest& harvest);
  absl::Status Reanalyse(const Replay& replay, SearchModel& model, uint64_t seed, Rng& rng,
                         Harvest& harvest);
  const Task& task(int32_t index) const { return tasks_[index]; }

  Config config_;
  absl::Span<const Task> tasks_;
  std::unique_ptr<mcts::Search> search_;
  std::vector<Episode> episodes_;
};

// A search as `config` says, for `roots` roots; with noise at the roots, or without.
absl::StatusOr<std::unique_ptr<mcts::Search>> MakeSearch(const Config& config, int roots,
                                                         int num_actions, bool explore);

// One seed of several numbers.
uint64_t MixSeeds(uint64_t a, uint64_t b);

}  // namespace mallocgame::muzero

#endif  // AGENTS_MUZERO_SELF_PLAY_H_
