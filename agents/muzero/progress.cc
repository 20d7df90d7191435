#include "agents/muzero/progress.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace mallocgame::muzero {

void Tally::Add(const Losses& losses) {
  ++updates_;
  sums_.policy_loss += losses.policy;
  sums_.value_loss += losses.value;
  sums_.reward_loss += losses.reward;
  sums_.policy_entropy += losses.policy_entropy;
  sums_.gradient_norm += losses.gradient_norm;
  sums_.learning_rate = losses.learning_rate;
  double error = 0;
  for (const float one : losses.value_errors) error += std::abs(one);
  sums_.value_error += error / static_cast<double>(losses.value_errors.size());
}

void Tally::Add(const Harvest& harvest) {
  sums_.searches += harvest.searches;
  sums_.evaluations += harvest.evaluations;
  sums_.varied += harvest.varied;
  sums_.depth += harvest.depth_sum;
  sums_.entropy += harvest.entropy_sum;
  sums_.play_seconds += harvest.seconds;
}

void Tally::AddGame(const PlayedGame& game, double game_return, int64_t staleness) {
  returns_[game.task] += game_return;
  finished_[game.task] += 1;
  sums_.staleness += static_cast<double>(staleness);
  ++sums_.games;
}

Progress Tally::Take() const {
  Progress progress = sums_;
  const auto updates = static_cast<double>(std::max<int64_t>(1, updates_));
  for (double* sum : {&progress.policy_loss, &progress.value_loss, &progress.reward_loss,
                      &progress.policy_entropy, &progress.gradient_norm, &progress.value_error})
    *sum /= updates;
  const auto searches = static_cast<double>(std::max<int64_t>(1, progress.searches));
  progress.depth /= searches;
  progress.entropy /= searches;
  progress.staleness /= static_cast<double>(std::max<int64_t>(1, progress.games));
  for (size_t i = 0; i < returns_.size(); ++i) {
    progress.mean_return.push_back(finished_[i] > 0 ? returns_[i] / finished_[i]
                                                    : std::numeric_limits<double>::quiet_NaN());
  }
  return progress;
}

}  // namespace mallocgame::muzero
