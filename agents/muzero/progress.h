// What a step of the training tells of itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "agents/muzero/harvest.h"
#include "agents/muzero/learner.h"

namespace mallocgame::muzero {

// What a step did. While it goes on, Add and AddGame sum up; Average makes means of what is one.
struct Progress {
  explicit Progress(size_t problems = 0) : mean_return(problems), finished(problems) {}

  int64_t iteration = 0;  // 0 for the demonstrations
  // For each problem, the latency of the best plan known, or its value where two sets of prices
  // count (program/both_prices.h), and the mean return, which is
  // 1 - latency / all-main latency, of the games that self-play finished; NaN without such games.
  std::vector<int64_t> best_ps;
  std::vector<double> mean_return;
  std::vector<int64_t> finished;  // number of those games
  int64_t games = 0;              // of all problems
  int64_t varied = 0;             // number of variations played
  int64_t searches = 0;
  int64_t evaluations = 0;   // number of positions that the networks evaluated in searches
  double depth = 0;          // depth of the leaves, mean over the searches
  double entropy = 0;        // entropy of the improved policy in nats, mean over the searches
  int64_t updates = 0;       // number of updates: in the step, and once it is over since the start
  int64_t replay_steps = 0;  // number of decisions of recent games in the replay buffer
  // Means over the updates of the step.
  double policy_loss = 0, value_loss = 0, reward_loss = 0;
  double value_error = 0;  // |predicted - target| in thousandths of the baseline's latency
  // Of the games taken, the mean number of updates since the oldest networks that searched them;
  // and the number of games that were dropped because that was too many.
  double staleness = 0;
  int64_t stale = 0;
  double policy_entropy = 0, gradient_norm = 0, learning_rate = 0;
  double play_seconds = 0;   // time spent on self-play, summed over threads
  double learn_seconds = 0;  // time spent on updates

  void Add(const Losses& losses);
  // What a harvest says of its searches; its games come one by one.
  void Add(const Harvest& harvest);
  // `age` is the number of updates since the oldest networks that searched the game.
  void AddGame(const PlayedGame& game, double game_return, int64_t age);
  void Average();
};

}  // namespace mallocgame::muzero
