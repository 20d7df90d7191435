#include "mallocgame/search/anneal_plan.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "mallocgame/base/error.h"
#include "mallocgame/base/rng.h"
#include "mallocgame/plan/validate.h"
#include "mallocgame/search/anneal.h"
#include "mallocgame/search/game_variants.h"
#include "mallocgame/search/residence_search.h"
#include "mallocgame/simulator/simulate.h"

namespace mallocgame {
namespace {

// Temperatures of chains, one after the other. Where a few large buffers fill fast memory, several
// must change places before a plan is better, and no step on the way is small.
constexpr std::array<Cooling, 4> kCoolings = {
    {{1e-5, 1e-7}, {1e-4, 1e-7}, {1e-3, 1e-7}, {3e-3, 1e-7}}};
constexpr double kTrialsOfAChain = 64;  // for each access; a chain that is longer finds little more
constexpr double kMostChains = 64;
// This one goes without the buffers that fill most of fast memory: much has to change before a plan
// shows what it is worth to do without them, which no small change finds out.
constexpr int kWithoutLargest = 1;
constexpr int64_t kTrialsToCount = 256;  // after so many it is known how many there will be
// What stands for repeated layers gets this share of the limits, or so many trials for each of its
// accesses.
constexpr double kDecidedOnce = 0.2, kTrialsOfARepresentative = 32;

}  // namespace

absl::StatusOr<FoundPlan> AnnealPlan(const Game& game, const Plan& plan, uint64_t seed,
                                     const std::function<double(int64_t)>& used) {
  std::optional<ResidenceSearch> search(std::in_place, game, plan);
  Rng rng(seed, 4);
  int64_t evaluations = 1;
  double chains = 0;  // how many there are; 0: nobody knows yet
  int chain = 0;
  AnnealOptions options;
  options.used = [&](int64_t) {
    const double share = used(evaluations);
    if (chains == 0 && evaluations > kTrialsToCount) {
      const double trials = static_cast<double>(evaluations) / std::max(share, 1e-9),
                   of_each = trials / static_cast<double>(search->accesses());
      chains = std::clamp(std::floor(of_each / kTrialsOfAChain), 1.0, kMostChains);
      // With few trials nothing that is lost by heat would be found again.
      options.cooling.first *= std::clamp(of_each / kTrialsOfAChain, 0.03, 1.0);
    }
    return share >= 1 ? 1 : share * std::max(1.0, chains) - chain;
  };
  options.tried = [&](bool) {
    ++evaluations;
    return true;
  };
  const auto anneal = [&](ResidenceSearch& residences) {
    options.cooling = kCoolings[chain % kCoolings.size()];
    options.better = [&residences] { residences.Remember(); };
    Anneal(residences, options, rng);
    ++chain;
  };
  const auto decide_once = [&] {
    const auto accesses = static_cast<double>(search->accesses());
    search->StartAtRepresentatives(true);
    const auto representatives = static_cast<double>(search->accesses());
    if (representatives < accesses / 2) {
      AnnealOptions once = options;
      once.cooling = kCoolings[0];
      once.used = [&](int64_t trials) {
        return std::max(used(evaluations) / kDecidedOnce,
                        static_cast<double>(trials) / (kTrialsOfARepresentative * representatives));
      };
      Anneal(*search, once, rng);
      evaluations += search->TakeOver();
      search->Remember();
    }
    search->StartAtRepresentatives(false);
  };
  if (search->has_repeats()) decide_once();
  while (!search->empty() && used(evaluations) < 1) {
    if (chain == kWithoutLargest) {
      if (const auto without = GameWithoutLargest(game)) {
        ResidenceSearch others(*without, search->Remembered());
        if (!others.empty()) anneal(others);
        if (others.remembered_ps() < search->remembered_ps())
          search.emplace(game, others.Remembered());
      }
    }
    if (chain > 0) search->Return();
    anneal(*search);
  }
  Plan found = search->Remembered();

  const auto latency_of = [&game](const Plan& judged) {
    const auto report = Simulate(game.cost_model(), judged);
    MG_CHECK(report.ok());
    return report->latency_ps;
  };
  FoundPlan improved = {plan, latency_of(plan), evaluations};
  if (const Verdict verdict = Validate(game.program(), game.hardware(), found); !verdict.ok()) {
    return absl::InternalError(absl::StrCat(
        "a plan that annealing found broke a rule; please report this: ", verdict.message));
  }
  const int64_t latency_ps = latency_of(found);
  if (latency_ps >= improved.latency_ps && Validate(game.program(), game.hardware(), plan).ok())
    return improved;
  improved.plan = std::move(found);
  improved.latency_ps = latency_ps;
  return improved;
}

}  // namespace mallocgame
