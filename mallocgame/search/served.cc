#include "mallocgame/search/served.h"

#include <tuple>

#include "absl/container/flat_hash_map.h"
#include "mallocgame/game/priority/priority_tables.h"

namespace mallocgame {

ServedAccesses ServedRun(const Game& game, int32_t run, Mode mode, const OwnNumbers& own) {
  const PriorityTables& tables = game.priority_tables();
  const Run& served = tables.runs[run];
  const auto access = [&](int32_t i) {
    return own.access[tables.arrangement.decision(served.buffer, i).access.index()];
  };
  ServedAccesses one;
  one.buffer = own.buffer[tables.arrangement.tables.buffers[served.buffer].id.index()];
  one.first = served.parent < 0 ? -1 : access(served.first);
  one.last = served.parent < 0 ? -1 : access(served.last);
  one.mode = mode;
  return one;
}

Intent IntentOf(const Game& game, absl::Span<const ServedAccesses> served, const OwnNumbers& own) {
  absl::flat_hash_map<std::tuple<int32_t, int32_t, int32_t>, int32_t> runs;
  Intent intent = OpenIntent(game);
  runs.reserve(intent.size());
  for (size_t r = 0; r < intent.size(); ++r) {
    const auto index = static_cast<int32_t>(r);
    intent[r].rank += static_cast<double>(served.size());
    const ServedAccesses one = ServedRun(game, index, Mode::kOpen, own);
    runs.emplace(std::tuple(one.buffer, one.first, one.last), index);
  }
  double rank = 0;
  for (const ServedAccesses& one : served) {
    const auto run = runs.find({one.buffer, one.first, one.last});
    if (run != runs.end()) {
      intent[run->second].mode = one.mode;
      intent[run->second].rank = rank;
    }
    ++rank;
  }
  return intent;
}

}  // namespace mallocgame
