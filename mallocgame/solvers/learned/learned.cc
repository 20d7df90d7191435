#include "mallocgame/solvers/learned/learned.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "mallocgame/solvers/learned/advised_game.h"

namespace mallocgame {
namespace {

// The weights of bytes and of the time held in the orders in which games are packed anew, and how
// many games are.
constexpr std::pair<double, double> kPackings[] = {{1, 0}, {1, 1}, {0, 1}, {1, 0.5}};
constexpr size_t kPacked = 3;

struct StyledEnd {
  AdvisedEnd end;
  Style style;
};

}  // namespace

AdvisedPlan PlayLearned(const Game& game, absl::Span<const float> weights, const Deadline& deadline,
                        const std::function<void(int64_t latency_ps)>& better) {
  const AdvisedGame advised(game);
  const auto advice = Advise(advised.graph(), weights.subspan(0, RunNetwork::kNumWeights));
  AdvisedPlan best;
  int64_t told_ps = best.latency_ps;
  const auto tell = [&] {
    if (best.latency_ps < told_ps && better) better(best.latency_ps);
    told_ps = best.latency_ps;
  };
  std::vector<StyledEnd> ends;
  for (auto rest = weights.subspan(RunNetwork::kNumWeights); !rest.empty();
       rest.remove_prefix(Style::kNumbers)) {
    const Style style = Style::Of(rest);
    ends.push_back({advised.Play(advice, style, &best), style});
    tell();
    if (deadline.Passed()) return best;
  }
  std::stable_sort(ends.begin(), ends.end(), [](const StyledEnd& a, const StyledEnd& b) {
    return a.end.latency_ps < b.end.latency_ps;
  });
  for (size_t i = 0; i < std::min(kPacked, ends.size()); ++i) {
    for (const auto& [bytes, held] : kPackings) {
      if (deadline.Passed()) return best;
      advised.Repack(ends[i].end, bytes, held, advice, ends[i].style, &best);
      tell();
    }
  }
  return best;
}

}  // namespace mallocgame
