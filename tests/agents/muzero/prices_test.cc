// Where the program has two sets of prices, the trainer keeps the plan that costs least by both.
#include <limits>

#include "mallocgame/search/plan_cost.h"
#include "tests/agents/muzero/training_problem.h"
#include "tests/catch.h"

namespace mallocgame::muzero {
namespace {

using training::ValueOf;

// What a plan costs by both sets of prices.
int64_t CostByBoth(const TrainingProblem& problem, const Config& config, const Plan& plan) {
  return mallocgame::ValueOf(*problem.program, *CostOf(*GameFor(problem, config), plan));
}

TEST_CASE("by two sets of prices the best plan is the one that costs least by both") {
  Rng rng(3);
  int other_plans = 0;
  for (const char* kind : {"time", "priority", "paper"}) {
    for (uint64_t seed = 1; seed <= 10; ++seed) {
      const Config config = TinyConfig(kind);
      const TrainingProblem by_one = TinyProblem(seed, 14);
      TrainingProblem by_both = by_one;
      by_both.program = testing::WithOtherPrices(*by_one.program, rng);
      const auto one = Make({by_one}, config), both = Make({by_both}, config);
      int64_t least = std::numeric_limits<int64_t>::max();
      for (int i = 0; i < 6; ++i) {
        const Progress progress = Steps(*both, 1);
        const SolveResult best = ValueOf(both->Best(0));
        INFO(kind << " game, program " << seed << ", step " << i);
        REQUIRE(CostByBoth(by_both, config, best.plan) == progress.best_ps[0]);
        REQUIRE(progress.best_ps[0] <= least);
        REQUIRE(progress.best_ps[0] <=
                CostByBoth(by_both, config, ValueOf(both->BestGame(0)).plan));
        least = progress.best_ps[0];
      }
      Steps(*one, 6);
      other_plans += CostByBoth(by_both, config, ValueOf(one->Best(0)).plan) > least;
      const auto loaded = ValueOf(Trainer::Load({by_both}, ValueOf(both->Save()), 1));
      REQUIRE(ValueOf(loaded->Best(0)).plan == ValueOf(both->Best(0)).plan);
      const SolveResult polished = ValueOf(both->Polish(0, 0, nullptr));
      REQUIRE(CostByBoth(by_both, config, polished.plan) <= least);
      REQUIRE(ValueOf(both->Best(0)).plan == polished.plan);
    }
  }
  CHECK(other_plans > 3);
}

TEST_CASE("a schedule game has one set of prices") {
  Rng rng(3);
  TrainingProblem problem = TinyProblem(5, 14);
  problem.program = testing::WithOtherPrices(*problem.program, rng);
  const auto refused = Trainer::Create({problem}, TinyConfig("schedule"), 1, 1);
  REQUIRE(refused.status().message() ==
          "muzero: 'tiny5': found two sets of prices, allowed in the schedule game: one");
}

}  // namespace
}  // namespace mallocgame::muzero
