// The no-contention bound is below every play and equals what brute force over placements gives.
// The solver exact finds what brute force over plays finds.
#include "mallocgame/solvers/bounds.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "mallocgame/game/time/state.h"
#include "mallocgame/game/time/time_game.h"
#include "mallocgame/solvers/registry.h"
#include "tests/catch.h"
#include "tests/support/play.h"
#include "tests/support/programs.h"

namespace mallocgame {
namespace {

using testing::Op;
using testing::ProgramBuilder;
using testing::RandomProgram;
using testing::TestHardware;

std::shared_ptr<const Game> TinyGame(Rng& rng, int instructions) {
  testing::RandomProgramOptions program;
  program.instructions = instructions;
  program.loops = static_cast<int>(rng.Below(2));
  program.constrained = rng.Below(2) == 0;
  program.roofline = rng.Below(4) == 0;
  return testing::MakeGame(RandomProgram(rng, program), TestHardware(6 + rng.Below(12)));
}

int64_t Floor(const Game& game) {
  const auto bound = NoContentionPs(game.cost_model());
  REQUIRE(bound.ok());
  return *bound;
}

// The least price of an instruction over all sets of its accesses that fit.
int64_t LeastByForce(const Game& game, Tick tick) {
  const Program& program = game.program();
  const Instruction& i = program.instruction(tick);
  int64_t least = i.plain_copy ? 0 : std::numeric_limits<int64_t>::max();
  for (uint64_t fast = 0; fast < uint64_t{1} << i.access_count; ++fast) {
    int64_t bytes = 0;
    bool possible = true;
    for (int32_t s = 0; s < i.access_count; ++s) {
      if ((fast >> s & 1) == 0) continue;
      const AccessId access(i.first_access + s);
      bytes += program.buffer(program.access(access).buffer).size_bytes;
      possible &= !program.in_main_only(access);
    }
    if (bytes > game.hardware().fast_bytes - i.reserved_bytes && fast != 0) continue;
    if (!possible) continue;
    least = std::min(least, game.cost_model().PriceOf(tick, fast).time_ps);
  }
  return least;
}

TEST_CASE("no-contention: every instruction at its least price over the placements that fit") {
  Rng rng(1);
  int64_t below_all_main = 0;
  for (int n = 0; n < 300; ++n) {
    const auto game = TinyGame(rng, 10);
    int64_t expected = 0;
    for (Tick t = 0; t < game->program().ticks(); ++t)
      expected += LeastByForce(*game, t) * game->program().trips(t);
    REQUIRE(Floor(*game) == expected);
    below_all_main += expected < game->all_main_ps();
  }
  REQUIRE(below_all_main > 200);
}

TEST_CASE("no play is below the no-contention bound, and exact finds the best play of all") {
  Rng rng(2);
  int compared = 0, better_than_greedy = 0;
  while (compared < 150) {
    const auto game = TinyGame(rng, 5);
    if (game->max_decisions() > 9) continue;
    ++compared;
    State state(game);
    const int64_t best = testing::BestLatency(state);
    REQUIRE(Floor(*game) <= best);
    SolveLimits limits;
    limits.seconds = 0;
    const auto exact = Solve("exact", {game, nullptr}, limits);
    REQUIRE(exact.ok());
    REQUIRE(exact->status == SolveStatus::kOptimal);
    REQUIRE(exact->report.latency_ps == best);
    REQUIRE(exact->bound_ps == best);
    better_than_greedy += best < Solve("greedy", {game, nullptr}, limits)->report.latency_ps;
  }
  REQUIRE(better_than_greedy > 0);
}

TEST_CASE("exact stopped early still gives a plan and a lower bound") {
  Rng rng(3);
  for (int n = 0; n < 40; ++n) {
    const auto game = TinyGame(rng, 5);
    if (game->max_decisions() > 9) continue;
    State state(game);
    const int64_t best = testing::BestLatency(state);
    for (const int64_t evaluations : {1, 2, 3}) {
      SolveLimits limits;
      limits.seconds = 0;
      limits.evaluations = evaluations;
      const auto result = Solve("exact", {game, nullptr}, limits);
      REQUIRE(result.ok());
      REQUIRE(*result->bound_ps <= best);
      REQUIRE(result->report.latency_ps >= best);
      if (result->status == SolveStatus::kOptimal) REQUIRE(result->report.latency_ps == best);
    }
  }
}

TEST_CASE("rows tell the largest slots apart, and hold for every placement of the others") {
  Rng rng(4);
  for (int n = 0; n < 200; ++n) {
    const auto game = TinyGame(rng, 10);
    const Program& program = game->program();
    for (const int max_slots : {0, 1, 2, 8}) {
      const auto prices = PricePlacements(game->cost_model(), max_slots);
      REQUIRE(prices.ok());
      REQUIRE(prices->decided.size() == static_cast<size_t>(program.ticks()));
      for (const PlacementPrice& row : prices->rows) {
        if (row.replaced) {
          REQUIRE(program.instruction(row.tick).plain_copy);
          REQUIRE((row.fast == 2 && row.time_ps == 0 && row.idle_ps == 0));
          continue;
        }
        const uint64_t decided = prices->decided[row.tick];
        REQUIRE((row.fast & ~decided) == 0);
        // one of the placements that the row stands for
        const Price price = game->cost_model().PriceOf(row.tick, row.fast);
        REQUIRE(row.time_ps <= price.time_ps);
        REQUIRE(row.time_ps - row.idle_ps <= price.time_ps - price.idle_ps);
        if (max_slots == 8) REQUIRE((row.time_ps == price.time_ps && row.idle_ps == price.idle_ps));
      }
    }
  }
}

TEST_CASE("an instruction with more slots than are enumerated gets a floor") {
  for (const CostKind kind : {CostKind::kProfile, CostKind::kRoofline}) {
    ProgramBuilder b("wide", kind);
    Op op = {.name = "wide"};
    for (int i = 0; i < kMaxEnumeratedSlots + 2; ++i)
      op.reads.push_back(b.Parameter(absl::StrCat("p", i), 1));
    if (kind == CostKind::kProfile) op.cycles = {20};
    op.writes = {b.Result("r", 1)};
    op.flops = 3;
    b.Add(op);
    const auto game = *TimeGame::Create(b.Build(), TestHardware(64));
    const auto prices = *PricePlacements(game->cost_model(), 3);
    REQUIRE(prices.decided[0] == 0);
    REQUIRE(prices.rows.size() == 1);
    REQUIRE(Floor(*game) > 0);
    REQUIRE(Floor(*game) <= game->cost_model().PriceOf(0, ~uint64_t{0} >> 46).time_ps);
    REQUIRE(Floor(*game) <= game->all_main_ps());
  }
}

TEST_CASE("bounds refuse what they can't use") {
  ProgramBuilder b;
  b.Add({.name = "a", .cycles = {10}});
  const auto program = b.Build();
  const Hardware hardware = TestHardware(8);
  const CostModel model(program, hardware);
  for (const int slots : {-1, kMaxEnumeratedSlots + 1}) {
    REQUIRE(PricePlacements(model, slots).status().code() == absl::StatusCode::kInvalidArgument);
  }
  REQUIRE(NoContentionPs(CostModel(program, Hardware())).status().code() ==
          absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace mallocgame
