// Simulated annealing over the preferences of the order game, from the best of a few games.
#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "mallocgame/base/annealing.h"
#include "mallocgame/base/rng.h"
#include "mallocgame/solvers/game_variants.h"
#include "mallocgame/solvers/playing/order_search.h"
#include "mallocgame/solvers/playing/players.h"

namespace mallocgame {
namespace {

// Temperatures, as shares of the latency.
constexpr Cooling kTry = {1e-4, 1e-5};
constexpr Cooling kFinal = {1e-4, 1e-6};
constexpr int64_t kSmallBytes = 16 << 10;  // smaller buffers seldom matter
constexpr int64_t kTrialsPerLook = 16;     // for each look at the clock
constexpr size_t kTriedStarts = 4;
constexpr double kTrying = 0.3;  // the share of the limits that goes to trying starts

class Annealing {
 public:
  Annealing(const Game& game, OrderPreferences start, Budget& budget, Rng& rng)
      : tables_(game.order_tables()), budget_(budget), rng_(rng), search_(game, std::move(start)),
        best_(search_.preferences()), best_latency_(search_.latency_ps()) {
    Collect();
  }

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
      Propose();
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
        best_ = search_.preferences();
      }
      Collect();
    }
  }

  int64_t best_latency_ps() const { return best_latency_; }
  const OrderPreferences& best() const { return best_; }

 private:
  // The decisions worth a change.
  void Collect() {
    large_.clear();
    const GameTables& tables = tables_.arrangement.tables;
    for (int32_t i = 0; i < search_.decisions(); ++i) {
      if (tables.buffers[tables_.runs[search_.run(i)].buffer].size_bytes >= kSmallBytes)
        large_.push_back(i);
    }
  }

  OrderPreference preference(int32_t run) const { return search_.preferences()[run]; }

  Service AnyService(const Run& run, Service now) {
    for (;;) {
      const auto service = static_cast<Service>(rng_.Below(kServices));
      if (service == now || (service == Service::kSplit && !run.splits) ||
          (service == Service::kPreload && !run.preloadable))
        continue;
      if (service == Service::kEarly && run.planned.earliest_fetch >= run.late_begin &&
          run.planned.end >= run.roomy.end)
        continue;
      return service;
    }
  }

  void Propose() {
    int32_t at = large_.empty() || rng_.Below(8) == 0
                     ? static_cast<int32_t>(rng_.Below(search_.decisions()))
                     : rng_.Pick(large_);
    const int32_t run = search_.run(at);
    const OrderPreference now = preference(run);
    const uint32_t kind = rng_.Below(16);
    const int32_t parent = tables_.runs[run].parent;
    if (kind < 3 && parent >= 0) {  // one residence instead of several
      search_.GoTo(search_.decision_of(parent));
      const Service service = rng_.Below(2) == 0 ? Service::kLate : Service::kEarly;
      search_.Prefer(parent, {static_cast<uint8_t>(service), preference(parent).rank});
      return;
    }
    if (kind < 6) {  // earlier or later, by a few decisions
      const int32_t by = 1 + static_cast<int32_t>(rng_.Below(16));
      const bool earlier = rng_.Below(2) == 0;
      const int32_t other = std::clamp(earlier ? at - by : at + by, 0, search_.decisions() - 1);
      const double rank = preference(search_.run(other)).rank + (earlier ? -0.5 : 0.5);
      search_.GoTo(std::max(0, std::min(at, other) - 4));
      search_.Prefer(run, {now.service, rank});
      return;
    }
    search_.GoTo(at);
    const Service service = AnyService(tables_.runs[run], static_cast<Service>(now.service));
    search_.Prefer(run, {static_cast<uint8_t>(service), now.rank});
    if (kind < 9) {  // and another one after it
      const int32_t later = at + static_cast<int32_t>(rng_.Below(search_.decisions() - at));
      const int32_t second = search_.run(later);
      if (second == run) return;
      const OrderPreference its = preference(second);
      search_.Prefer(second, {static_cast<uint8_t>(AnyService(tables_.runs[second],
                                                              static_cast<Service>(its.service))),
                              its.rank});
    }
  }

  const OrderTables& tables_;
  Budget& budget_;
  Rng& rng_;
  OrderSearch search_;
  OrderPreferences best_;
  int64_t best_latency_;
  std::vector<int32_t> large_;  // decisions about buffers that are not small
};

// Keeps the best few starts. If there are any that do without the largest buffers, the last is of
// these: it takes long before they show what they are worth.
void KeepTheTried(const Game& game, size_t count, std::vector<OrderStart>& starts) {
  const auto without = std::find_if(starts.begin(), starts.end(), [&game](const OrderStart& start) {
    return start.game->options().forbidden.size() > game.options().forbidden.size();
  });
  if (without != starts.end() && count > 1 && without - starts.begin() >= static_cast<int>(count))
    std::swap(*without, starts[count - 1]);
  starts.resize(std::min(starts.size(), count));
}

}  // namespace

bool AnnealOrderGame(const Game& game, Budget& budget) {
  Rng rng(budget.seed(), 5);
  const Plan first = StartingPlan(game, budget.deadline().Share(kTrying / 4));
  std::vector<OrderStart> starts = OrderStarts(game, &first, budget.deadline().Share(kTrying / 2));
  KeepTheTried(game, budget.limited() ? kTriedStarts : 1, starts);
  const double begin = budget.Progress();
  for (size_t i = 0; i < starts.size(); ++i) {
    OrderStart& start = starts[i];
    Annealing annealing(*start.game, std::move(start.preferences), budget, rng);
    annealing.Anneal(kTry, begin + (kTrying - begin) * static_cast<double>(i + 1) /
                                       static_cast<double>(starts.size()));
    start.latency_ps = annealing.best_latency_ps();
    start.preferences = annealing.best();
    if (budget.Exhausted()) return false;
  }
  const OrderStart& best = *std::min_element(
      starts.begin(), starts.end(),
      [](const OrderStart& a, const OrderStart& b) { return a.latency_ps < b.latency_ps; });
  Annealing(*best.game, best.preferences, budget, rng).Anneal(kFinal, 1.0);
  return false;
}

}  // namespace mallocgame
