#include "mallocgame/search/pack_plan.h"

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "mallocgame/base/error.h"
#include "mallocgame/base/rng.h"
#include "mallocgame/plan/validate.h"
#include "mallocgame/search/anneal.h"
#include "mallocgame/search/packing_search.h"
#include "mallocgame/simulator/simulate.h"

namespace mallocgame {
namespace {

constexpr Cooling kPackCooling = {3e-4, 1e-6};

}  // namespace

absl::StatusOr<FoundPlan> PackPlan(const Game& game, const Plan& plan, uint64_t seed,
                                   const std::function<double(int64_t)>& used) {
  PackingSearch search(game, plan);
  Rng rng(seed, 4);
  Intent best = search.intent();
  int64_t evaluations = 1;
  AnnealOptions options;
  options.cooling = kPackCooling;
  options.used = [&](int64_t trials) { return used(1 + trials); };
  options.tried = [&](bool) {
    ++evaluations;
    return true;
  };
  options.better = [&] { best = search.intent(); };
  Anneal(search, options, rng);
  Plan found = search.PlanOf(best);

  const auto latency_of = [&game](const Plan& judged) {
    const auto report = Simulate(game.cost_model(), judged);
    MG_CHECK(report.ok());
    return report->latency_ps;
  };
  FoundPlan improved = {plan, latency_of(plan), evaluations};
  if (const Verdict verdict = Validate(game.program(), game.hardware(), found); !verdict.ok()) {
    return absl::InternalError(
        absl::StrCat("a packing broke a rule; please report this: ", verdict.message));
  }
  const int64_t latency_ps = latency_of(found);
  if (latency_ps >= improved.latency_ps && Validate(game.program(), game.hardware(), plan).ok())
    return improved;
  improved.plan = std::move(found);
  improved.latency_ps = latency_ps;
  return improved;
}

}  // namespace mallocgame
