#include "agents/muzero/progress.h"

#include <algorithm>
#include <cmath>

namespace mallocgame::muzero {

void Progress::Add(const Losses& losses) {
  ++updates;
  policy_loss += losses.policy;
  value_loss += losses.value;
  reward_loss += losses.reward;
  policy_entropy += losses.policy_entropy;
  gradient_norm += losses.gradient_norm;
  learning_rate = losses.learning_rate;
  double error = 0;
  for (const float one : losses.value_errors) error += std::abs(one);
  value_error += error / static_cast<double>(losses.value_errors.size());
}

void Progress::Add(const Harvest& harvest) {
  searches += harvest.searches;
  evaluations += harvest.evaluations;
  varied += harvest.varied;
  depth += harvest.depth_sum;
  entropy += harvest.entropy_sum;
  play_seconds += harvest.seconds;
}

void Progress::AddGame(const PlayedGame& game, double game_return, int64_t age) {
  mean_return[game.task] += game_return;
  ++finished[game.task];
  staleness += static_cast<double>(age);
  ++games;
}

void Progress::Average() {
  const auto divide = [](double& sum, int64_t count) {
    sum /= static_cast<double>(std::max<int64_t>(1, count));
  };
  for (double* sum :
       {&policy_loss, &value_loss, &reward_loss, &policy_entropy, &gradient_norm, &value_error})
    divide(*sum, updates);
  divide(depth, searches);
  divide(entropy, searches);
  divide(staleness, games);
  for (size_t i = 0; i < finished.size(); ++i)
    mean_return[i] = finished[i] > 0 ? mean_return[i] / static_cast<double>(finished[i]) : NAN;
}

}  // namespace mallocgame::muzero
