// What a group of games is to play, and what has become of it. Both also exist as bytes, so that a
// group can be played in another process or on another machine (actor.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "agents/muzero/config.h"
#include "agents/muzero/replay.h"
#include "agents/muzero/task.h"

namespace mallocgame::muzero {

// A whole game, and the decisions at which other games may leave it: those with several legal
// actions.
struct Start {
  int64_t id = 0;    // that the replay gave it
  int32_t task = 0;  // index of its task
  std::vector<uint8_t> actions;
  std::vector<int32_t> decisions;  // indices of actions, at least one: those of its steps
  int32_t first_step = 0;          // whose decision is the first of them

  template <class Self>
  static auto Fields(Self& self) {
    return std::tie(self.id, self.task, self.actions, self.decisions, self.first_step);
  }
};

struct Assignment {
  uint64_t seed = 0;
  int64_t updates = 0;        // number of updates that the networks have behind them
  std::vector<Start> starts;  // best games, which new games begin in, one after the other; not none
  std::optional<Start> varied;  // a best game of which variations are played
  std::vector<Start> old;       // games with one decision each, which is searched again

  template <class Self>
  static auto Fields(Self& self) {
    return std::tie(self.seed, self.updates, self.starts, self.varied, self.old);
  }
};

// Draws from `replay`, which must have a best game of each task, what a group is to do next.
Assignment Assign(const Config& config, const Replay& replay, uint64_t seed, int64_t updates);

struct Harvest {
  std::vector<PlayedGame> games;       // those that finished
  std::vector<PlayedGame> rollouts;    // those that are faster than the game they follow
  std::vector<PlayedGame> variations;  // those that are faster than the game they vary
  std::vector<Revision> revisions;
  int64_t searches = 0;
  int64_t evaluations = 0;  // number of positions that the network evaluated
  int64_t varied = 0;       // number of games that VaryGame (variation.h) played
  // Sums over the searches: of the mean depth of the leaves, and of the improved policy's entropy
  // in nats.
  double depth_sum = 0, entropy_sum = 0;
  double seconds = 0;  // time spent on it
};

// InvalidArgument: the bytes are damaged.
void Write(const Assignment& assignment, std::string& out);
absl::StatusOr<Assignment> ReadAssignment(absl::string_view& in, absl::Span<const Task> tasks);
void Write(const Harvest& harvest, std::string& out);
absl::StatusOr<Harvest> ReadHarvest(absl::string_view& in, absl::Span<const Task> tasks);

}  // namespace mallocgame::muzero
