#include "mallocgame/search/intent.h"

#include <utility>

#include "absl/container/flat_hash_map.h"

namespace mallocgame {
namespace {

// `named` says what each segment of the dense intent is called in `decided`.
Intent Like(Intent intent, absl::Span<const Segment> named, absl::Span<const Segment> decided) {
  absl::flat_hash_map<std::pair<int32_t, int32_t>, size_t> segments;
  segments.reserve(intent.size());
  for (size_t i = 0; i < intent.size(); ++i) {
    segments.emplace(std::pair(named[i].first.value, named[i].last.value), i);
    intent[i].rank += static_cast<double>(decided.size());
  }
  double rank = 0;
  for (const Segment& segment : decided) {
    const auto found = segments.find({segment.first.value, segment.last.value});
    if (found == segments.end()) continue;
    intent[found->second].mode = segment.mode;
    intent[found->second].rank = rank++;
  }
  return intent;
}

}  // namespace

Intent ReadGame(const Position& position) {
  const Intent open = position.game().OpenIntent();
  Intent decided;
  for (int i = 0; i < position.num_decisions(); ++i) {
    const Segment& about = open[position.DecidedSegment(i)];
    decided.push_back({about.first, about.last, position.DecidedMode(i), static_cast<double>(i)});
  }
  return decided;
}

Intent IntentLike(const Game& game, absl::Span<const Segment> decided) {
  const Intent open = game.OpenIntent();
  return Like(open, open, decided);
}

Intent IntentLike(const PriorityGame& game, absl::Span<const Segment> decided,
                  absl::Span<const int32_t> own_access) {
  Intent open = game.OpenIntent(), named;
  named.reserve(open.size());
  for (size_t i = 0; i < open.size(); ++i)
    named.push_back(game.OwnSegment(static_cast<int32_t>(i), Mode::kOpen, own_access));
  return Like(std::move(open), named, decided);
}

}  // namespace mallocgame
