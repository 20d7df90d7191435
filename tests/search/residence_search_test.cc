// Whatever moves are made, the residences are those of a valid plan that costs what the search
// says. Annealing finds better ones.
#include "mallocgame/search/residence_search.h"

#include <algorithm>
#include <limits>

#include "mallocgame/game/time/state.h"
#include "mallocgame/game/time/time_game.h"
#include "mallocgame/plan/validate.h"
#include "mallocgame/search/anneal_plan.h"
#include "mallocgame/search/plan_cost.h"
#include "mallocgame/simulator/simulate.h"
#include "mallocgame/solvers/bounds.h"
#include "mallocgame/solvers/registry.h"
#include "mallocgame/solvers/xla/heuristic.h"
#include "tests/catch.h"
#include "tests/support/plans.h"
#include "tests/support/play.h"
#include "tests/support/programs.h"

namespace mallocgame {
namespace {

using testing::LatencyOf;
using testing::ProgramBuilder;
using testing::RandomProgram;
using testing::TestHardware;
using testing::WithOtherPrices;

TimeGameOptions AnySize() {
  TimeGameOptions options;
  options.min_buffer_bytes = 0;
  return options;
}

struct Seen {
  int64_t slices = 0, evictions = 0, preloads = 0, replaced = 0, kept = 0, in_loops = 0;
};

void Count(const Program& program, const Plan& plan, Seen& seen) {
  std::vector<int> fills(plan.residences.size()), serves(plan.residences.size());
  for (const Copy& copy : plan.copies) {
    seen.evictions += copy.kind == CopyKind::kEviction;
    seen.preloads += copy.preload;
    seen.replaced += copy.replaces >= 0;
    fills[copy.residence.index()] += copy.kind == CopyKind::kPrefetch;
  }
  for (const ResidenceId r : plan.served_by) {
    if (r.valid()) ++serves[r.index()];
  }
  for (size_t r = 0; r < fills.size(); ++r) {
    seen.slices += fills[r] > 1;
    seen.kept += serves[r] > 2;
    seen.in_loops += program.instruction(plan.residences[r].begin).region != 0;
  }
}

TEST_CASE("whatever moves are made, the plan is valid and costs what the search says") {
  Rng rng(1);
  Seen seen;
  int64_t most_preloads = 0;  // of one plan
  for (int n = 0; n < 600; ++n) {
    const auto program = RandomProgram(rng, {.instructions = 8 + static_cast<int>(rng.Below(30)),
                                             .loops = static_cast<int>(rng.Below(3)),
                                             .branches = static_cast<int>(rng.Below(2)),
                                             .constrained = rng.Below(4) == 0});
    Hardware hardware = TestHardware(6 + rng.Below(12), 1 + rng.Below(2));
    hardware.max_preloads = 1 + n % 4;
    const auto game = *Game::Create(program, hardware, AnySize());
    const Plan start = n % 2 == 0 ? testing::PlayAtRandom(*game, rng).ToPlan()
                                  : PlanLikeXla(*game, Deadline()).plan;
    ResidenceSearch search(*game, start);
    for (int round = 0; round < 6 && !search.empty(); ++round) {
      for (int trial = 0; trial < 12; ++trial) {
        search.Propose(rng);
        if (rng.Below(3) != 0 && search.Try(std::numeric_limits<int64_t>::max()))
          search.Accept();
        else
          search.Reject();
      }
      const int64_t preloads_before = seen.preloads;
      search.Remember();
      const Plan plan = search.Remembered();
      const Verdict verdict = Validate(*program, game->hardware(), plan);
      INFO("program " << n << ", round " << round << ": " << verdict.message);
      REQUIRE(verdict.ok());
      REQUIRE(LatencyOf(*game, plan) == search.latency_ps());
      Count(*program, plan, seen);
      REQUIRE(seen.preloads - preloads_before <= hardware.max_preloads);
      most_preloads = std::max(most_preloads, seen.preloads - preloads_before);
    }
  }
  CHECK(seen.slices > 100);
  CHECK(seen.evictions > 100);
  CHECK(seen.preloads > 100);
  CHECK(most_preloads >= 2);
  CHECK(seen.replaced > 20);
  CHECK(seen.kept > 100);
  CHECK(seen.in_loops > 100);
}

TEST_CASE("by two sets of prices the value is that of what Simulate says at each") {
  Rng rng(4);
  int64_t differ = 0, better = 0;
  for (int n = 0; n < 200; ++n) {
    const auto program =
        WithOtherPrices(*RandomProgram(rng, {.instructions = 8 + static_cast<int>(rng.Below(30)),
                                             .loops = static_cast<int>(rng.Below(3)),
                                             .branches = static_cast<int>(rng.Below(2))}),
                        rng);
    Hardware hardware = TestHardware(6 + rng.Below(12), 1);
    hardware.max_outstanding_prefetches = 1 + static_cast<int32_t>(rng.Below(4));
    const auto game = *Game::Create(program, hardware, AnySize());
    const Plan start = PlanLikeXla(*game, Deadline()).plan;
    ResidenceSearch search(*game, start);
    for (int round = 0; round < 6 && !search.empty(); ++round) {
      for (int trial = 0; trial < 12; ++trial) {
        search.Propose(rng);
        const int64_t most = search.latency_ps() + rng.Below(200);
        if (rng.Below(3) != 0 && search.Try(most))
          search.Accept();
        else
          search.Reject();
      }
      search.Remember();
      const Plan plan = search.Remembered();
      const PlanCost cost = *CostOf(*game, plan);
      INFO("program " << n << ", round " << round);
      REQUIRE(Validate(*program, game->hardware(), plan).ok());
      REQUIRE(ValueOf(*program, cost) == search.latency_ps());
      differ += cost.others->stall_ps != cost.report.stall_ps;
    }
    const auto progress = [](int64_t evaluations) {
      return static_cast<double>(evaluations) / 400;
    };
    const FoundPlan found = *AnnealPlan(*game, {&start, 1}, 7, progress);
    const int64_t before = ValueOf(*program, *CostOf(*game, start));
    REQUIRE(found.latency_ps == ValueOf(*program, *CostOf(*game, found.plan)));
    REQUIRE(found.latency_ps <= before);
    better += found.latency_ps < before;
  }
  CHECK(differ > 100);
  CHECK(better > 50);
}

TEST_CASE("what is remembered comes back, whatever was tried and accepted since") {
  Rng rng(5);
  int64_t changed = 0;
  for (int n = 0; n < 100; ++n) {
    const auto program = RandomProgram(rng, {.instructions = 30, .loops = 1, .branches = 1});
    const auto game = *Game::Create(program, TestHardware(12), AnySize());
    ResidenceSearch search(*game, testing::PlayAtRandom(*game, rng).ToPlan());
    const auto walk = [&] {
      for (int trial = 0; trial < 20; ++trial) {
        search.Propose(rng);
        if (search.Try(std::numeric_limits<int64_t>::max()))
          search.Accept();
        else
          search.Reject();
      }
    };
    walk();
    search.Remember();
    const int64_t latency_ps = search.latency_ps();
    const Plan plan = search.Remembered();
    walk();
    REQUIRE(search.Remembered() == plan);
    changed += search.latency_ps() != latency_ps;
    search.Return();
    REQUIRE(search.latency_ps() == latency_ps);
    REQUIRE(search.Remembered() == plan);
    search.Propose(rng);
    search.Try(-1);
    search.Reject();
    search.Remember();
    REQUIRE(search.latency_ps() == latency_ps);
    REQUIRE(search.Remembered() == plan);
  }
  CHECK(changed > 80);
}

// Both halves of `big` become free early, one after the other. The game can only fetch it in one
// piece, when all of it is free.
TEST_CASE("a prefetch takes its bytes as they become free") {
  ProgramBuilder b;
  const BufferId p = b.Parameter("p", 4), q = b.Parameter("q", 4), big = b.Parameter("big", 8);
  b.Add({.name = "wait", .cycles = {8}});
  b.Add({.name = "use p", .reads = {p}, .cycles = {20, 4}});
  b.Add({.name = "use q", .reads = {q}, .cycles = {20, 4}});
  b.Add({.name = "use big", .reads = {big}, .cycles = {40, 10}});
  Hardware hardware = TestHardware(8);
  hardware.max_preloads = 0;
  const auto game = *Game::Create(b.Build(), hardware, AnySize());
  // All 8 ps of the channel are idle, so p and q arrive in time. `use q` leaves 4 ps, in which the
  // half that p has left is filled; the other half stalls: 8 + 4 + 4 + 4 + 10.
  SolveLimits limits;
  limits.seconds = 0;
  REQUIRE(Solve("exact", {game, nullptr}, limits)->report.latency_ps > 30);
  limits.evaluations = 300;
  const auto found = Solve("packing", {game, nullptr}, limits);
  REQUIRE(found->report.latency_ps == 30);
  REQUIRE(found->plan.residences.size() == 3);
  REQUIRE(found->plan.copies.size() == 4);
}

TEST_CASE("annealing never loses, gains, keeps the bound, and depends on the seed only") {
  Rng rng(2);
  int better_than_plays = 0;
  for (int n = 0; n < 60; ++n) {
    const auto program = RandomProgram(
        rng, {.instructions = 6, .loops = static_cast<int>(rng.Below(2)), .branches = 0});
    const auto game = *Game::Create(program, TestHardware(6 + rng.Below(12)), AnySize());
    if (game->max_decisions() > 9) continue;
    State state(game);
    const int64_t best_play = testing::BestLatency(state);
    const Plan start = testing::PlayAtRandom(*game, rng).ToPlan();
    const auto progress = [](int64_t evaluations) {
      return static_cast<double>(evaluations) / 400;
    };
    const FoundPlan found = *AnnealPlan(*game, {&start, 1}, 7, progress);
    REQUIRE(Validate(*program, game->hardware(), found.plan).ok());
    REQUIRE(found.latency_ps == LatencyOf(*game, found.plan));
    REQUIRE(found.latency_ps <= LatencyOf(*game, start));
    REQUIRE(found.latency_ps >= *NoContentionPs(game->cost_model()));
    REQUIRE(found.plan == AnnealPlan(*game, {&start, 1}, 7, progress)->plan);
    better_than_plays += found.latency_ps < best_play;
  }
  CHECK(better_than_plays > 0);
}

TEST_CASE("forbidden accesses stay in main memory, and a share of the capacity free") {
  Rng rng(3);
  int64_t fast = 0;
  for (int n = 0; n < 100; ++n) {
    const auto program = RandomProgram(rng, {.instructions = 12, .loops = 0, .branches = 0});
    TimeGameOptions options = AnySize();
    for (size_t a = 0; a < program->accesses().size(); a += 3) options.forbidden.emplace_back(a);
    options.keep_free = 0.5;
    const auto game = *Game::Create(program, TestHardware(16), options);
    SolveLimits limits;
    limits.seconds = 0;
    limits.evaluations = 8;
    const auto result = Solve(n % 2 == 0 ? "packing" : "portfolio", {game, nullptr}, limits);
    REQUIRE(result.ok());
    for (const AccessId id : options.forbidden)
      REQUIRE(!result->plan.served_by[id.index()].valid());
    for (const Residence& r : result->plan.residences)
      REQUIRE(r.offset + program->buffer(r.buffer).size_bytes <= 8);
    fast += static_cast<int64_t>(result->plan.residences.size());
  }
  CHECK(fast > 100);
}

}  // namespace
}  // namespace mallocgame
