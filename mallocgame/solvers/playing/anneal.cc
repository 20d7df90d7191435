// Simulated annealing over the intents of a priority game. It starts from the best of a few games.
#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "mallocgame/base/rng.h"
#include "mallocgame/search/anneal.h"
#include "mallocgame/search/game_search.h"
#include "mallocgame/search/game_variants.h"
#include "mallocgame/search/starts.h"
#include "mallocgame/solvers/playing/players.h"

namespace mallocgame {
namespace {

// Temperatures, as shares of the starting latency.
constexpr Cooling kTry = {1e-4, 1e-5};
constexpr Cooling kFinal = {1e-4, 1e-6};
// Where a few large buffers fill fast memory, several must change places before a game is better,
// and no step on the way is small. So when kFinal has had its trials, hotter chains follow, each
// from the best game so far.
constexpr Cooling kHot = {3e-3, 1e-6};
constexpr double kFinalTrials = 3000;  // for each decision; more find little at these temperatures
constexpr double kHotTrials = 12'000;  // of a hot chain for each decision, if there are as many
constexpr size_t kTriedStarts = 4;
constexpr double kTrying = 0.3;  // the share of the limits that goes to trying starts

// Replaces `start`, whose game is counted, by the best game of annealing from it until the share
// `until` of the limits is used up.
void AnnealFrom(GameStart& start, const Cooling& cooling, double until, Budget& budget, Rng& rng) {
  GameSearch search(*start.game, std::move(start.intent));
  budget.Keep(search.position());
  start.intent = search.Replayable();
  start.latency_ps = search.latency_ps();
  const double begin = budget.Progress();
  AnnealOptions options;
  options.cooling = cooling;
  options.used = [&](int64_t) {
    const double progress = budget.Progress();
    return budget.Exhausted() || progress >= until ? 1 : (progress - begin) / (until - begin);
  };
  options.tried = [&](bool accepted) {
    if (accepted) {
      budget.Finished(search.position());
    } else {
      budget.Looked();
    }
    return !budget.OutOfEvaluations();
  };
  options.better = [&] {
    start.intent = search.Replayable();
    start.latency_ps = search.latency_ps();
  };
  Anneal(search, options, rng);
}

// Anneals from the best priority game that was tried until the limits are used up.
void AnnealOn(GameStart& best, Budget& budget, Rng& rng) {
  const auto decisions = static_cast<double>(budget.best_play().actions.size());
  if (decisions == 0) return;
  const double tried = budget.Progress();
  const double trials = static_cast<double>(budget.evaluations()) * (1 - tried) / tried;  // to come
  const double cold = kFinalTrials * decisions, more = trials - cold;
  const double chains =
      more < cold ? 0 : std::floor(std::clamp(more / (kHotTrials * decisions), 1.0, 1e6));
  const double cooled = chains == 0 ? 1 : tried + (1 - tried) * cold / trials;
  AnnealFrom(best, kFinal, cooled, budget, rng);
  for (int i = 1; i <= chains && !budget.Exhausted(); ++i)
    AnnealFrom(best, kHot, cooled + (1 - cooled) * i / chains, budget, rng);
}

}  // namespace

bool PlayAnneal(const Game& given, Budget& budget) {
  const std::shared_ptr<const PriorityGame> game = PriorityGameOf(given);
  Rng rng(budget.seed(), 5);
  // The more candidates a game shows, the more orders can be played.
  const std::shared_ptr<const PriorityGame> shown = GameToSearch(*game);
  std::vector<GameStart> starts = StartsWithin(*shown, budget, kTrying / 4, kTrying / 2);
  KeepBest(*shown, budget.limited() ? kTriedStarts : 1, starts);
  const double begin = budget.Progress();
  for (size_t i = 0; i < starts.size(); ++i) {
    const double share = static_cast<double>(i + 1) / static_cast<double>(starts.size());
    AnnealFrom(starts[i], kTry, begin + std::max(0.0, kTrying - begin) * share, budget, rng);
    if (budget.Exhausted()) return false;
  }
  GameStart& best = *std::min_element(
      starts.begin(), starts.end(),
      [](const GameStart& a, const GameStart& b) { return a.latency_ps < b.latency_ps; });
  AnnealOn(best, budget, rng);
  return false;
}

}  // namespace mallocgame
