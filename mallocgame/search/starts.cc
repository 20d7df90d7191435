#include "mallocgame/search/starts.h"

#include <algorithm>
#include <utility>

#include "mallocgame/game/priority/priority_state.h"
#include "mallocgame/search/game_variants.h"

namespace mallocgame {

std::vector<GameStart> PriorityStarts(const PriorityGame& game, const FoundPlan* followed,
                                      const Deadline& deadline) {
  std::vector<std::pair<double, double>> weights = {{1, 1},     {0, 0},   {0, 1},
                                                    {0.5, 0.5}, {0.5, 1}, {1, 0}};
  const std::pair own(game.options().bytes_weight, game.options().time_weight);
  std::erase(weights, own);
  weights.insert(weights.begin(), own);
  std::vector<GameStart> starts;
  const auto play = [&starts, &deadline](const std::shared_ptr<const PriorityGame>& in,
                                         Intent intent, bool follows) {
    PriorityState state(in);
    state.PlayOn(intent);
    for (int i = 0; i < state.num_decisions(); ++i)
      intent[state.DecidedSegment(i)].mode = state.DecidedMode(i);
    starts.push_back({in, std::move(intent), follows, state.latency_ps()});
    deadline.Played();
  };
  const auto add = [&](const PriorityGameOptions& options) {
    const auto in = PriorityGameWith(game, options);
    play(in, in->OpenIntent(), false);
    if (followed == nullptr || deadline.Passed()) return;
    play(in, in->ReadPlan(followed->plan), true);
    if (!followed->decided.empty() && !deadline.Passed())
      play(in, IntentLike(*in, followed->decided), true);
  };
  PriorityGameOptions options = game.options();
  const bool small = options.min_buffer_bytes > kSmallBufferBytes;
  const auto without = GameWithoutLargest(game);
  for (const auto& [bytes, time] : weights) {
    if (!starts.empty() && deadline.Passed()) break;
    options.bytes_weight = bytes;
    options.time_weight = time;
    options.min_buffer_bytes = game.options().min_buffer_bytes;
    add(options);
    if (small && !deadline.Passed()) {
      options.min_buffer_bytes = kSmallBufferBytes;
      add(options);
    }
    if (without == nullptr || deadline.Passed()) continue;
    options.forbidden = without->options().forbidden;
    add(options);
    options.forbidden = game.options().forbidden;
  }
  std::stable_sort(starts.begin(), starts.end(), [](const GameStart& a, const GameStart& b) {
    return a.latency_ps < b.latency_ps;
  });
  return starts;
}

void KeepBest(const Game& game, size_t count, std::vector<GameStart>& starts) {
  starts.erase(std::unique(starts.begin(), starts.end(),
                           [](const GameStart& a, const GameStart& b) {
                             return a.latency_ps == b.latency_ps;
                           }),
               starts.end());
  const auto without = std::find_if(starts.begin(), starts.end(), [&game](const GameStart& start) {
    return start.game->options().forbidden.size() > game.options().forbidden.size();
  });
  if (without != starts.end() && count > 1 && without - starts.begin() >= static_cast<int>(count))
    std::swap(*without, starts[count - 1]);
  starts.resize(std::min(starts.size(), count));
}

}  // namespace mallocgame
