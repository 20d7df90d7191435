// A group of games that one thread plays side by side: it makes searched decisions, varies the best
// games, and searches old decisions again. What it does depends only on its networks, the replay,
// the seed and its own past.
#ifndef AGENTS_MUZERO_SELF_PLAY_H_
#define AGENTS_MUZERO_SELF_PLAY_H_

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
#include "mallocgame/game/position.h"

namespace mallocgame::muzero {

// What an iteration of a group has made.
struct SelfPlayResult {
  // What a new search says of an old decision.
  struct Reanalysed {
    ReplayPosition position;
    std::vector<float> policy;
    float value;
  };
  std::vector<PlayedGame> games;       // those that finished
  std::vector<PlayedGame> variations;  // those that are better than the game they vary
  // What variations of a best game teach about one of its decisions.
  struct Taught {
    ReplayPosition position;
    std::vector<float> policy;
  };
  // The positions of both are those of the replay before it changes.
  std::vector<Reanalysed> reanalysed;
  std::vector<Taught> taught;
  int64_t searches = 0;
  int64_t evaluations = 0;  // number of positions that the network evaluated
  int64_t varied = 0;       // number of games that VaryGame played
  // Sums over the searches: of the mean depth of the leaves, and of the improved policy's entropy
  // in nats.
  double depth_sum = 0, entropy_sum = 0;
};

class SelfPlay {
 public:
  // `tasks` must outlive the group, and each must have a decision with several legal actions.
  static absl::StatusOr<std::unique_ptr<SelfPlay>> Create(const Config& config,
                                                          absl::Span<const Task> tasks);

  // Plays config.moves searched decisions of each game. `replay` must have a best game of each
  // task, and must not change meanwhile. Cancelled: `interrupted`, which may be empty and is asked
  // between decisions, said so. The group must then be given up.
  absl::StatusOr<SelfPlayResult> Run(Network& network, const Replay& replay, uint64_t seed,
                                     const std::function<bool()>& interrupted);

  // The unfinished games as bytes and back. InvalidArgument: the bytes are damaged.
  void Write(std::string& out) const;
  absl::Status Read(absl::string_view& in);

 private:
  struct Episode {
    int32_t task;
    // The number of decisions to go. Then there is one more search, and it follows `follow`.
    int32_t left;
    std::unique_ptr<Position> position;
    std::vector<Step> steps;
    std::vector<uint8_t> follow;  // actions of a whole game; empty if it is searched to the end
  };

  SelfPlay(const Config& config, absl::Span<const Task> tasks) : config_(config), tasks_(tasks) {}

  Episode Begin(const Replay& replay, Rng& rng) const;
  absl::StatusOr<Episode> ReadEpisode(absl::string_view& in, int32_t index) const;
  PlayedGame Finish(const Episode& episode) const;
  absl::Status Search(absl::Span<const Root> roots, SearchModel& model, uint64_t seed,
                      SelfPlayResult& result);
  absl::Status Move(const Replay& replay, SearchModel& model, uint64_t seed, Rng& rng,
                    SelfPlayResult& result);
  absl::Status Reanalyse(const Replay& replay, SearchModel& model, uint64_t seed, Rng& rng,
                         SelfPlayResult& result);
  const Task& task(int32_t index) const { return tasks_[index]; }

  Config config_;
  absl::Span<const Task> tasks_;
  std::unique_ptr<mcts::Search> search_;
  std::vector<std::optional<Episode>> episodes_;  // nothing: not started
};

// A search as `config` asks for, over `roots` roots. `explore` says whether the roots get noise.
absl::StatusOr<std::unique_ptr<mcts::Search>> MakeSearch(const Config& config, int roots,
                                                         int num_actions, bool explore);

}  // namespace mallocgame::muzero

#endif  // AGENTS_MUZERO_SELF_PLAY_H_
