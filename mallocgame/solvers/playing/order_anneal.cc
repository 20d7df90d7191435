// Simulated annealing over the preferences of the order game, from the best of a few games.
#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "mallocgame/base/annealing.h"
#include "mallocgame/base/rng.h"
#include "mallocgame/solvers/game_variants.h"
#include "mallocgame/solvers/playing/order_changes.h"
#include "mallocgame/solvers/playing/order_search.h"
#include "mallocgame/solvers/playing/players.h"

namespace mallocgame {
namespace {

// Temperatures, as shares of the latency.
constexpr Cooling kTry = {1e-4, 1e-5};
constexpr Cooling kFinal = {1e-4, 1e-6};
// Where a few large buffers fill fast memory, several must change places before a game is better,
// and no step on the way is small. So when kFinal has had its trials, hotter chains follow, each
// from the best game so far.
constexpr Cooling kHot = {3e-3, 1e-6};
constexpr double kFinalTrials = 3000;   // for each decision; more find little at these temperatures
constexpr double kHotTrials = 12'000;   // of a hot chain for each decision, if there are as many
constexpr int64_t kTrialsPerLook = 16;  // for each look at the clock
constexpr size_t kTriedStarts = 4;
constexpr double kTrying = 0.3;  // the share of the limits that goes to trying starts

class OrderAnnealing {
 public:
  OrderAnnealing(const Game& game, OrderPreferences start, Budget& budget, Rng& rng)
      : budget_(budget), rng_(rng), search_(game, std::move(start)), changes_(search_),
        best_(search_.Replayable()), best_latency_(search_.latency_ps()) {}

  // Anneals until the share `until` of the limits is used up.
  void Anneal(const Cooling& cooling, double until) {
    budget_.Finished(search_.state());
    if (search_.decisions() == 0) return;
    const double begin = budget_.Progress(), scale = static_cast<double>(search_.latency_ps());
    double temperature = 0;
    for (int64_t trial = 0;; ++trial) {
      if (trial % kTrialsPerLook == 0) {
        const double progress = budget_.Progress();
        if (budget_.Exhausted() || progress >= until) return;
        temperature = cooling.At(scale, (progress - begin) / (until - begin));
      } else if (budget_.OutOfEvaluations()) {
        return;
      }
      changes_.Propose(rng_);
      // What annealing accepts, drawn before: a trial beyond it need not be played to its end.
      const double worse = -temperature * std::log(1 - rng_.Uniform());
      if (!search_.Play(search_.latency_ps() + static_cast<int64_t>(worse))) {
        budget_.Looked();
        search_.Reject();
        continue;
      }
      budget_.Finished(search_.state());
      search_.Accept();
      if (search_.latency_ps() < best_latency_) {
        best_latency_ = search_.latency_ps();
        best_ = search_.Replayable();
      }
      changes_.Accepted();
    }
  }

  int64_t best_latency_ps() const { return best_latency_; }
  const OrderPreferences& best() const { return best_; }

 private:
  Budget& budget_;
  Rng& rng_;
  OrderSearch search_;
  OrderChanges changes_;
  OrderPreferences best_;
  int64_t best_latency_;
};

// Replaces `start` by the best game of annealing from it until the share `until` of the limits is
// used up.
void Anneal(OrderStart& start, const Cooling& cooling, double until, Budget& budget, Rng& rng) {
  OrderAnnealing annealing(*start.game, std::move(start.preferences), budget, rng);
  annealing.Anneal(cooling, until);
  start.latency_ps = annealing.best_latency_ps();
  start.preferences = annealing.best();
}

// Keeps the best few starts, of those with the same latency one. If there are any that do without
// the largest buffers, the last is of these: it takes long before they show what they are worth.
void KeepTheTried(const Game& game, size_t count, std::vector<OrderStart>& starts) {
  starts.erase(std::unique(starts.begin(), starts.end(),
                           [](const OrderStart& a, const OrderStart& b) {
                             return a.latency_ps == b.latency_ps;
                           }),
               starts.end());
  const auto without = std::find_if(starts.begin(), starts.end(), [&game](const OrderStart& start) {
    return start.game->options().forbidden.size() > game.options().forbidden.size();
  });
  if (without != starts.end() && count > 1 && without - starts.begin() >= static_cast<int>(count))
    std::swap(*without, starts[count - 1]);
  starts.resize(std::min(starts.size(), count));
}

// Anneals from the best game that was tried until the limits are used up.
void AnnealOn(OrderStart& best, Budget& budget, Rng& rng) {
  const auto decisions = static_cast<double>(budget.best_actions().size());
  if (decisions == 0) return;
  const double tried = budget.Progress();
  const double trials = static_cast<double>(budget.evaluations()) * (1 - tried) / tried;  // to come
  const double cold = kFinalTrials * decisions, more = trials - cold;
  const double chains =
      more < cold ? 0 : std::floor(std::clamp(more / (kHotTrials * decisions), 1.0, 1e6));
  const double cooled = chains == 0 ? 1 : tried + (1 - tried) * cold / trials;
  Anneal(best, kFinal, cooled, budget, rng);
  for (int i = 1; i <= chains && !budget.Exhausted(); ++i)
    Anneal(best, kHot, cooled + (1 - cooled) * i / chains, budget, rng);
}

}  // namespace

bool AnnealOrderGame(const Game& own_game, Budget& budget) {
  Rng rng(budget.seed(), 5);
  // The more candidates a game shows, the more orders can be played.
  const std::shared_ptr<const Game> shown = GameShowing(own_game, kMaxCandidates);
  const Game& game = *shown;
  const FollowedPlan first = StartingPlan(game, budget.deadline().Share(kTrying / 4));
  std::vector<OrderStart> starts = OrderStarts(game, &first, budget.deadline().Share(kTrying / 2));
  KeepTheTried(game, budget.limited() ? kTriedStarts : 1, starts);
  const double begin = budget.Progress();
  for (size_t i = 0; i < starts.size(); ++i) {
    const double share = static_cast<double>(i + 1) / static_cast<double>(starts.size());
    Anneal(starts[i], kTry, begin + (kTrying - begin) * share, budget, rng);
    if (budget.Exhausted()) return false;
  }
  OrderStart& best = *std::min_element(
      starts.begin(), starts.end(),
      [](const OrderStart& a, const OrderStart& b) { return a.latency_ps < b.latency_ps; });
  AnnealOn(best, budget, rng);
  return false;
}

}  // namespace mallocgame
