// PlanRecorder: what a State tells it, told by hand.
#include "mallocgame/game/time/plan_recorder.h"

#include "mallocgame/plan/validate.h"
#include "tests/catch.h"
#include "tests/support/plans.h"
#include "tests/support/programs.h"

namespace mallocgame {
namespace {

using testing::ProgramBuilder;
using testing::TestHardware;

// x, 4 bytes, is written at tick 0 and read at 2 and 3; p, 2 bytes, is read at 1 and 3.
struct Example {
  Example() {
    ProgramBuilder b;
    x = b.Result("x", 4);
    p = b.Parameter("p", 2);
    b.Add({.name = "make", .writes = {x}});
    b.Add({.name = "look", .reads = {p}});
    b.Add({.name = "use", .reads = {x}});
    b.Add({.name = "both", .reads = {x, p}});
    program = b.Build();
  }
  AccessId At(BufferId buffer, Tick tick) const {
    return testing::AccessAt(*program, buffer, tick);
  }

  Hardware hardware = TestHardware(8);
  BufferId x, p;
  std::shared_ptr<const Program> program;
};

TEST_CASE("a recorder that was told nothing has the plan with everything in main memory") {
  const Example e;
  REQUIRE(PlanRecorder(*e.program, e.hardware).Finish() == AllMainPlan(*e.program, e.hardware));
}

TEST_CASE("residences are numbered as they open; a buffer's latest is the one that is meant") {
  const Example e;
  PlanRecorder recorder(*e.program, e.hardware);
  recorder.Open(e.x, 0, 0, 1);
  recorder.Serve(e.At(e.x, 0), e.x);
  recorder.Open(e.p, 4, 0, 2);
  recorder.Serve(e.At(e.p, 1), e.p);
  recorder.Open(e.x, 2, 2, 3);
  recorder.Serve(e.At(e.x, 2), e.x);
  recorder.SetEnd(e.x, 4);  // of the second residence of x
  const Plan plan = recorder.Finish();
  REQUIRE(plan.residences ==
          std::vector<Residence>{{e.x, 0, 0, 1}, {e.p, 4, 0, 2}, {e.x, 2, 2, 4}});
  REQUIRE(plan.served_by[e.At(e.x, 0).index()] == ResidenceId(0));
  REQUIRE(plan.served_by[e.At(e.p, 1).index()] == ResidenceId(1));
  REQUIRE(plan.served_by[e.At(e.x, 2).index()] == ResidenceId(2));
  REQUIRE(!plan.served_by[e.At(e.p, 3).index()].valid());
}

TEST_CASE("copies come in the order in which the channel serves them") {
  const Example e;
  PlanRecorder recorder(*e.program, e.hardware);
  // As the game decides: the write of x with its eviction, whose start is known only later, then
  // the reads, of which the last is served in a gap before.
  recorder.Open(e.x, 0, 0, 3);
  recorder.Eviction(e.x, 1, 3);
  recorder.EvictionStarts(e.x, 20);
  recorder.Open(e.p, 4, 1, 2);
  recorder.Prefetch(e.p, 1, 1, /*start_ps=*/30, /*replaces=*/-1);
  recorder.Open(e.p, 6, 0, 4);
  recorder.Prefetch(e.p, 0, 1, /*start_ps=*/10, /*replaces=*/-1);
  recorder.SetEvictionEnd(e.x, 2);
  const Plan plan = recorder.Finish();
  REQUIRE(plan.copies == std::vector<Copy>{
                             {CopyKind::kPrefetch, ResidenceId(2), 0, 1, 0, 2, false, -1},
                             {CopyKind::kEviction, ResidenceId(0), 1, 2, 0, 4, false, -1},
                             {CopyKind::kPrefetch, ResidenceId(1), 1, 1, 0, 2, false, -1},
                         });
}

TEST_CASE("preloads come first, and an eviction that has not begun last") {
  const Example e;
  PlanRecorder recorder(*e.program, e.hardware);
  recorder.Open(e.x, 0, 0, 4);
  recorder.Eviction(e.x, 1, 4);
  recorder.Open(e.p, 4, 0, 2);
  recorder.Prefetch(e.p, 0, 1, /*start_ps=*/0, /*replaces=*/-1);
  recorder.Open(e.p, 6, 0, 4);
  recorder.Preload(e.p, 3);
  const Plan plan = recorder.Finish();
  REQUIRE(plan.copies.size() == 3);
  REQUIRE(plan.copies[0] == Copy{CopyKind::kPrefetch, ResidenceId(2), 0, 3, 0, 2, true, -1});
  REQUIRE(plan.copies[1].kind == CopyKind::kPrefetch);
  REQUIRE(plan.copies[2].kind == CopyKind::kEviction);
}

TEST_CASE("a prefetch that takes a plain copy's place names its tick") {
  ProgramBuilder b;
  const BufferId p = b.Parameter("p", 4), q = b.Result("q", 4);
  b.Add({.name = "copy", .reads = {p}, .writes = {q}, .plain_copy = true});
  b.Add({.name = "use", .reads = {q}});
  const auto program = b.Build();
  PlanRecorder recorder(*program, TestHardware(8));
  recorder.Open(q, 0, 0, 2);
  recorder.Prefetch(q, 0, 0, /*start_ps=*/0, /*replaces=*/0);
  recorder.Serve(testing::AccessAt(*program, q, 0), q);
  recorder.Serve(testing::AccessAt(*program, q, 1), q);
  const Plan plan = recorder.Finish();
  REQUIRE(plan.copies[0].replaces == 0);
  REQUIRE(Validate(*program, TestHardware(8), plan).ok());
}

}  // namespace
}  // namespace mallocgame
