// XLA's decision for one buffer, in cases that programs rarely bring about.
#include "mallocgame/solvers/xla/buffer_walk.h"

#include <vector>

#include "mallocgame/plan/validate.h"
#include "mallocgame/solvers/xla/heuristic.h"
#include "tests/catch.h"
#include "tests/support/plans.h"
#include "tests/support/play.h"
#include "tests/support/programs.h"

namespace mallocgame {
namespace {

using testing::AccessAt;
using testing::MakeGame;
using testing::ProgramBuilder;
using testing::TestHardware;

Hardware MachineOf(int64_t fast_bytes, int max_preloads = 0) {
  Hardware hardware = TestHardware(fast_bytes);
  hardware.max_preloads = max_preloads;
  return hardware;
}

XlaOutcome OutcomeOf(const Game& game, const XlaOptions& options = {}) {
  XlaOutcome outcome = PlanLikeXla(game, Deadline(), options);
  const Verdict verdict = Validate(game.program(), game.hardware(), outcome.plan);
  INFO(verdict.message);
  REQUIRE(verdict.ok());
  return outcome;
}

bool Fast(const Game& game, const Plan& plan, BufferId buffer, Tick tick) {
  return plan.served_by[AccessAt(game.program(), buffer, tick).index()].valid();
}

TEST_CASE("what failed for a use that is served in the end repacks nothing") {
  ProgramBuilder b("twice", CostKind::kRoofline);
  const BufferId p = b.Parameter("p", 8), r = b.Result("r", 8), out = b.Result("out", 4);
  const auto work = [&] {
    for (int k = 0; k < 6; ++k) b.Add({.name = "work", .flops = 9});
  };
  work();
  const Tick first = b.Add({.name = "first", .reads = {p}});
  b.Add({.name = "fill", .writes = {r}});
  for (int k = 0; k < 4; ++k) b.Add({.name = "drain", .reads = {r}});
  work();
  const Tick last = b.Add({.name = "last", .reads = {p}, .writes = {out}});
  b.MarkOutput(out);
  const auto game = MakeGame(b.Build(), MachineOf(8));
  // r takes all bytes between the uses of p, which can't stay.
  const XlaOutcome outcome = OutcomeOf(*game);
  for (const Tick use : {first, last}) CHECK(Fast(*game, outcome.plan, p, use));
  CHECK(outcome.plan.copies.size() == 2);
  CHECK(outcome.counts.repacks == 0);
}

TEST_CASE("behind a use that is forbidden in fast memory the next one needs a copy of its own") {
  ProgramBuilder b("uses", CostKind::kRoofline);
  const BufferId p = b.Parameter("p", 8), out = b.Result("out", 4);
  std::vector<Tick> uses;
  for (int i = 0; i < 3; ++i) {
    for (int k = 0; k < 4; ++k) b.Add({.name = "work", .flops = 9});
    const BufferId v = i < 2 ? b.Result("v", 4) : out;
    uses.push_back(b.Add({.name = "use", .reads = {p}, .writes = {v}}));
  }
  b.MarkOutput(out);
  const auto program = b.Build();
  const auto prefetches = [&](const std::vector<AccessId>& forbidden) {
    return OutcomeOf(*MakeGame(program, MachineOf(64), forbidden)).plan.copies.size();
  };
  CHECK(prefetches({}) == 1);
  CHECK(prefetches({AccessAt(*program, p, uses[1])}) == 2);
}

TEST_CASE("slices begin elsewhere if they would not be in time") {
  ProgramBuilder b("slices", CostKind::kRoofline);
  const BufferId p = b.Parameter("p", 40), out = b.Result("out", 4);
  for (int k = 0; k < 40; ++k) b.Add({.name = "work", .flops = 4});
  const Tick use = b.Add({.name = "use", .reads = {p}, .writes = {out}});
  b.MarkOutput(out);
  const auto game = MakeGame(b.Build(), MachineOf(64));
  const auto begins = [&](int slices, Tick wanted) {
    const XlaOptions options = {.preferred_overlap = 4.0 * (use - wanted) / 40,
                                .min_sliced_bytes = 1,
                                .max_slices = slices};
    std::vector<Tick> found;
    for (const Copy& copy : OutcomeOf(*game, options).plan.copies) found.push_back(copy.begin);
    return found;
  };
  // In one piece it takes 40 ps of the 48 behind that tick. Slices count as 1.8 times as much.
  CHECK(begins(1, use - 12) == std::vector<Tick>{use - 12});
  CHECK(begins(2, use - 30).front() == use - 30);
  const std::vector<Tick> sooner = begins(2, use - 12);
  REQUIRE(sooner.size() == 2);
  CHECK(sooner.front() < use - 12);
}

TEST_CASE("a preload counts as a copy that is under way until its first use") {
  ProgramBuilder b("preload", CostKind::kRoofline);
  const BufferId p = b.Parameter("p", 8), q = b.Parameter("q", 8), out = b.Result("out", 4);
  for (int k = 0; k < 9; ++k) b.Add({.name = "work", .flops = 4});
  b.Add({.name = "first gather", .reads = {p}, .flops = 9});
  b.Add({.name = "use", .reads = {q}, .writes = {out}});
  b.MarkOutput(out);
  const auto program = b.Build();
  const auto begin = [&](int most) {
    Hardware hardware = MachineOf(64, 1);
    hardware.max_outstanding_prefetches = most;
    const Plan plan = OutcomeOf(*MakeGame(program, hardware), {.preferred_overlap = 25.0 / 8}).plan;
    REQUIRE(plan.copies[0].preload);
    return plan.copies.size() > 1 ? plan.copies[1].begin : -1;
  };
  CHECK(begin(2) == 5);
  CHECK(begin(1) != 5);
}

TEST_CASE("a preload leaves its bytes to others behind its last use") {
  ProgramBuilder b("freed", CostKind::kRoofline);
  const BufferId p = b.Parameter("p", 20), q = b.Parameter("q", 20), out = b.Result("out", 4);
  b.Add({.name = "first gather", .reads = {p}, .flops = 9});
  for (int k = 0; k < 40; ++k) b.Add({.name = "work", .flops = 4});
  const Tick use = b.Add({.name = "use", .reads = {q}, .writes = {out}});
  for (int k = 0; k < 40; ++k) b.Add({.name = "work", .flops = 4});
  b.MarkOutput(out);
  const auto game = MakeGame(b.Build(), MachineOf(24, 1));
  const Plan plan = OutcomeOf(*game).plan;
  REQUIRE(!plan.copies.empty());
  CHECK(plan.copies[0].preload);
  CHECK(Fast(*game, plan, p, 0));
  CHECK(Fast(*game, plan, q, use));
}

TEST_CASE("an eviction that slices leave too few bytes ends at once") {
  ProgramBuilder b("edges", CostKind::kRoofline);
  const BufferId v = b.Result("v", 12), p = b.Parameter("p", 24), out = b.Result("out", 4);
  b.Add({.name = "make", .writes = {v}});
  b.Add({.name = "soon", .reads = {v}, .flops = 1});
  for (int k = 0; k < 30; ++k) b.Add({.name = "work", .flops = 1});
  for (int k = 0; k < 3; ++k) b.Add({.name = "look", .reads = {p}, .flops = 1});
  b.Add({.name = "use", .reads = {p}, .writes = {out}});
  b.MarkOutput(v);
  b.MarkOutput(out);
  const auto game = MakeGame(b.Build(), MachineOf(24));
  // Both halves of p, which is decided first, lie where v could lie; the second comes before v is
  // best evicted.
  const XlaOptions options = {
      .preferred_overlap = 8, .min_sliced_bytes = 20, .max_slices = 2, .slice_work = 1};
  const Plan plan = OutcomeOf(*game, options).plan;
  REQUIRE(plan.copies.size() == 3);
  for (const Copy& copy : plan.copies) {
    if (copy.kind != CopyKind::kEviction) continue;
    CHECK(copy.begin == 1);
    CHECK(copy.end == 1);
  }
}

}  // namespace
}  // namespace mallocgame
