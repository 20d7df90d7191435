// Simulated annealing over the preferred action of every decision. It starts from rent's game or
// from the game most like XLA's plan. It first plays the game that it was given, then, from the
// best of that, the same game with questions about small buffers too.
#include <algorithm>
#include <memory>
#include <vector>

#include "mallocgame/base/annealing.h"
#include "mallocgame/base/rng.h"
#include "mallocgame/solvers/game_variants.h"
#include "mallocgame/solvers/playing/order_search.h"
#include "mallocgame/solvers/playing/players.h"
#include "mallocgame/solvers/playing/preference_search.h"

namespace mallocgame {
namespace {

// Temperatures, as shares of the starting latency.
constexpr Cooling kCoarse = {1e-2, 1e-5};
constexpr Cooling kFine = {1e-3, 2e-6};

class Annealing {
 public:
  Annealing(const Game& game, Preferences start, Budget& budget, Rng& rng)
      : game_(game), budget_(budget), rng_(rng), search_(game, std::move(start)),
        best_(search_.preferences()), best_latency_(search_.latency_ps()) {}

  // Anneals until the share `until` of the limits is used up; returns the best preferences.
  const Preferences& Run(const Cooling& cooling, double until) {
    budget_.Finished(search_.GoTo(search_.decisions()));
    const double begin = budget_.Progress(), scale = static_cast<double>(search_.latency_ps());
    if (search_.decisions() == 0) return best_;
    double temperature = cooling.first * scale;
    for (int64_t move = 0;; ++move) {
      if (move % 64 == 0) {
        const double progress = budget_.Progress();
        if (budget_.Exhausted() || progress >= until) return best_;
        temperature = cooling.At(scale, (progress - begin) / (until - begin));
      } else if (budget_.OutOfEvaluations()) {
        return best_;
      }
      Propose();
      const State& end = search_.Play();
      budget_.Finished(end);
      const auto worse = static_cast<double>(end.latency_ps() - search_.latency_ps());
      if (worse <= 0 || AcceptWorse(worse, temperature, rng_)) {
        search_.Accept();
        if (search_.latency_ps() < best_latency_) {
          best_latency_ = search_.latency_ps();
          best_ = search_.preferences();
        }
      } else {
        search_.Reject();
      }
    }
  }

 private:
  Action AnyAction() { return static_cast<Action>(rng_.Below(game_.num_actions())); }

  void Propose() {
    const auto at = static_cast<int32_t>(rng_.Below(search_.decisions()));
    const ActionSet legal = search_.GoTo(at).legal_actions();
    const AccessId access = search_.decision(at);
    const uint32_t kind = rng_.Below(8);
    if (kind < 5) {  // this decision
      ActionSet others = legal;
      others.Remove(static_cast<int>(search_.choice(access)));
      if (others.empty()) others = legal;
      search_.Prefer(access, static_cast<Action>(others[rng_.Below(others.size())]));
    } else if (kind < 7) {  // this buffer from here on
      const Action action = AnyAction();
      for (AccessId id : game_.program().accesses_of(game_.program().access(access).buffer)) {
        if (id >= access && rng_.Below(4) != 0) search_.Prefer(id, action);
      }
    } else {  // a few decisions in a row
      const int32_t end =
          std::min(search_.decisions(), at + 2 + static_cast<int32_t>(rng_.Below(6)));
      for (int32_t i = at; i < end; ++i) {
        if (rng_.Below(2) == 0) search_.Prefer(search_.decision(i), AnyAction());
      }
    }
  }

  const Game& game_;
  Budget& budget_;
  Rng& rng_;
  PreferenceSearch search_;
  Preferences best_;
  int64_t best_latency_;
};

}  // namespace

bool PlayAnneal(const Game& game, Budget& budget) {
  if (game.options().kind == GameKind::kOrder) return AnnealOrderGame(game, budget);
  Rng rng(budget.seed(), 1);
  const Preferences start = GoodStart(game, budget.deadline());
  const std::shared_ptr<const Game> fine = budget.limited() ? GameOfSmallBuffers(game) : nullptr;
  const Preferences best =
      Annealing(game, start, budget, rng).Run(kCoarse, fine != nullptr ? kCoarseShare : 1.0);
  if (fine != nullptr && !budget.Exhausted()) Annealing(*fine, best, budget, rng).Run(kFine, 1.0);
  return false;
}

}  // namespace mallocgame
