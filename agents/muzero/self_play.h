// A group of games that one thread plays side by side: it makes searched decisions, varies the best
// games, and searches old decisions again. What it does depends only on its networks, what it is
// assigned, and its own past.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "agents/muzero/config.h"
#include "agents/muzero/harvest.h"
#include "agents/muzero/network.h"
#include "agents/muzero/replay.h"
#include "agents/muzero/search_models.h"
#include "agents/muzero/task.h"
#include "mallocgame/game/position.h"
#include "mallocgame/tree/search.h"

namespace mallocgame::muzero {

class SelfPlay {
 public:
  ~SelfPlay();
  // `tasks` must outlive the group, and each must have a decision with several legal actions.
  static absl::StatusOr<std::unique_ptr<SelfPlay>> Create(const Config& config,
                                                          absl::Span<const Task> tasks);

  // Plays config.moves searched decisions of each game, and what else is assigned. Cancelled:
  // `interrupted`, which may be empty and is asked between decisions, said so. The group must then
  // be given up.
  absl::StatusOr<Harvest> Run(Network& network, const Assignment& assignment,
                              const std::function<bool()>& interrupted);

  // The unfinished games as bytes and back. InvalidArgument: the bytes are damaged.
  void Write(std::string& out) const;
  absl::Status Read(absl::string_view& in);

 private:
  // An unfinished game.
  struct Episode;
  // One run: what is assigned, what has come of it, and what it draws from.
  struct Turn;

  SelfPlay(const Config& config, absl::Span<const Task> tasks);

  std::unique_ptr<Episode> Begin(Turn& turn) const;
  absl::StatusOr<std::unique_ptr<Episode>> ReadEpisode(absl::string_view& in, int32_t index) const;
  PlayedGame Finish(const Episode& episode) const;
  absl::Status Search(absl::Span<const Root> roots, uint64_t seed, Turn& turn);
  absl::Status Move(uint64_t seed, Turn& turn);
  absl::Status Reanalyse(Turn& turn);
  absl::Status Vary(Network& network, Turn& turn);
  const Task& task(int32_t index) const { return tasks_[index]; }

  Config config_;
  absl::Span<const Task> tasks_;
  std::unique_ptr<mcts::Search> search_;
  std::vector<std::unique_ptr<Episode>> episodes_;  // null: not started
};

// A search as `config` asks for, over `roots` roots. `explore` says whether the roots get noise.
// With a uniform prior Gumbel search always has it, which draws the actions that it considers.
absl::StatusOr<std::unique_ptr<mcts::Search>> MakeSearch(const Config& config, int roots,
                                                         int num_actions, bool explore);

}  // namespace mallocgame::muzero
