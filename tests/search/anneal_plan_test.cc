// AnnealPlan: what it finds, and that it never breaks or slows a plan.
#include "mallocgame/search/anneal_plan.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "mallocgame/base/rng.h"
#include "mallocgame/plan/validate.h"
#include "mallocgame/simulator/simulate.h"
#include "tests/catch.h"
#include "tests/support/plans.h"
#include "tests/support/play.h"
#include "tests/support/programs.h"

namespace mallocgame {
namespace {

using testing::LatencyOf;
using testing::MakeGame;
using testing::PlanBuilder;
using testing::ProgramBuilder;
using testing::TestHardware;

FoundPlan Annealed(const Game& game, const Plan& plan, uint64_t seed) {
  return *AnnealPlan(game, {&plan, 1}, seed,
                     [](int64_t trials) { return static_cast<double>(trials) / 400; });
}

// A read of p, 8 bytes, behind 10 ps, which it saves 15 of if nothing has to be waited for.
struct LateRead {
  LateRead() {
    ProgramBuilder b;
    p = b.Constant("p", 8);
    b.Add({.name = "a", .cycles = {10}});
    b.Add({.name = "use", .reads = {p}, .cycles = {20, 5}});
    program = b.Build();
  }
  BufferId p;
  std::shared_ptr<const Program> program;
};

TEST_CASE("a prefetch that hides nothing begins earlier") {
  const LateRead t;
  const auto game = MakeGame(t.program, TestHardware(8));
  PlanBuilder plan(*t.program, game->hardware());
  const ResidenceId r = plan.Reside(t.p, 0, 1, 2);
  plan.Prefetch(r, 1, 1);  // a stall of 8
  plan.ServeAll(r);
  REQUIRE(LatencyOf(*game, plan.plan) == 10 + 8 + 5);
  const FoundPlan annealed = Annealed(*game, plan.plan, 1);
  CHECK(annealed.latency_ps == 15);
  CHECK(annealed.plan.copies.at(0).begin == 0);
  CHECK(LatencyOf(*game, annealed.plan) == 15);
}

TEST_CASE("a read in main memory gets a prefetch where bytes are free") {
  const LateRead t;
  const auto game = MakeGame(t.program, TestHardware(8));
  const FoundPlan annealed = Annealed(*game, AllMainPlan(*t.program, game->hardware()), 1);
  CHECK(annealed.latency_ps == 15);
  CHECK(annealed.plan.copies.size() == 1);
}

TEST_CASE("a forbidden access stays in main memory") {
  const LateRead t;
  const auto game = MakeGame(t.program, TestHardware(8), std::vector<AccessId>{AccessId(0)});
  const Plan plan = AllMainPlan(*t.program, game->hardware());
  CHECK(Annealed(*game, plan, 1).plan == plan);
}

TEST_CASE("random plans stay valid and get no slower, the same for the same seed") {
  Rng rng(1);
  int faster = 0;
  for (int i = 0; i < 60; ++i) {
    const auto program =
        testing::RandomProgram(rng, {.instructions = 16, .constrained = i % 2 == 1});
    Hardware hardware = TestHardware(12 + rng.Below(12));
    const auto game = MakeGame(program, hardware);
    const State state = testing::PlayAtRandom(*game, rng);
    const Plan plan = state.ToPlan();
    const FoundPlan annealed = Annealed(*game, plan, 7);
    const Verdict verdict = Validate(*program, game->hardware(), annealed.plan);
    INFO(verdict.message);
    REQUIRE(verdict.ok());
    CHECK(annealed.latency_ps == LatencyOf(*game, annealed.plan));
    CHECK(annealed.latency_ps <= state.latency_ps());
    faster += annealed.latency_ps < state.latency_ps();
    CHECK(Annealed(*game, plan, 7).plan == annealed.plan);
  }
  CHECK(faster > 30);
}

TEST_CASE("of several plans the result is no slower than any, and says where it began") {
  const LateRead t;
  const auto game = MakeGame(t.program, TestHardware(8));
  PlanBuilder prefetched(*t.program, game->hardware());
  const ResidenceId r = prefetched.Reside(t.p, 0, 1, 2);
  prefetched.Prefetch(r, 1, 1);  // a stall of 8
  prefetched.ServeAll(r);
  const Plan all_main = AllMainPlan(*t.program, game->hardware());
  const auto annealed = [&](const std::vector<Plan>& plans, int64_t limit) {
    return *AnnealPlan(*game, plans, 1, [limit](int64_t trials) {
      return std::min(1.0, static_cast<double>(trials) / static_cast<double>(limit));
    });
  };
  // No trial at all: the faster one.
  const FoundPlan untried = annealed({all_main, prefetched.plan}, 1);
  CHECK(untried.start == 1);
  CHECK(untried.latency_ps == 10 + 8 + 5);
  CHECK(annealed({prefetched.plan, all_main}, 1).start == 0);
  const FoundPlan found = annealed({all_main, prefetched.plan}, 400);
  CHECK(found.latency_ps == 15);
  CHECK(found.plan == annealed({all_main, prefetched.plan}, 400).plan);
  CHECK(found.evaluations <= 400 + 16);
}

}  // namespace
}  // namespace mallocgame
