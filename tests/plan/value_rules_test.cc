// CheckValues alone, on plans that keep all other rules: where the newest value of a buffer is.
#include "mallocgame/plan/value_rules.h"

#include <string>

#include "tests/catch.h"
#include "tests/support/plans.h"
#include "tests/support/programs.h"

namespace mallocgame {
namespace {

using testing::PlanBuilder;
using testing::ProgramBuilder;
using testing::TestHardware;

//   tick  0      1      2       3     4
//   x     write         update        read       4 bytes, an output
struct WriteUpdateRead {
  WriteUpdateRead() {
    ProgramBuilder b;
    x = b.Result("x", 4);
    b.MarkOutput(x);
    b.Add({.name = "make", .writes = {x}});
    b.Add({.name = "wait"});
    b.Add({.name = "step", .updates = {x}});
    b.Add({.name = "wait2"});
    b.Add({.name = "use", .reads = {x}});
    program = b.Build();
  }
  PlanBuilder Plan() const { return PlanBuilder(*program, TestHardware(16)); }
  Verdict Check(const PlanBuilder& plan) const { return CheckValues(*program, plan.plan); }

  BufferId x;
  std::shared_ptr<const Program> program;
};

TEST_CASE("with everything in main memory every value is where it is looked for") {
  const WriteUpdateRead t;
  CHECK(t.Check(t.Plan()).ok());
}

TEST_CASE("a value that was updated in fast memory is not in main memory before it is back") {
  const WriteUpdateRead t;
  PlanBuilder plan = t.Plan();
  const ResidenceId r = plan.Reside(t.x, 0, 1, 5);
  plan.Prefetch(r, 1, 2);
  plan.Serve(r, 2);
  SECTION("read from main memory without an eviction") {
    const Verdict verdict = t.Check(plan);
    CHECK(verdict.rule == Rule::kMainValue);
    CHECK_THAT(verdict.message, Catch::Contains("'x'") && Catch::Contains("tick 4"));
  }
  SECTION("the eviction is done too late for the read") {
    plan.Eviction(r, 3, 5);
    CHECK_THAT(t.Check(plan).message, Catch::Contains("an eviction is on its way"));
  }
  SECTION("the eviction is done before the read") {
    plan.Eviction(r, 3, 4);
    CHECK(t.Check(plan).ok());
  }
  SECTION("half of it gets back") {
    plan.Eviction(r, 3, 4).part_end = 2;
    CHECK(t.Check(plan).rule == Rule::kMainValue);
  }
  SECTION("both halves get back, in any order") {
    plan.Eviction(r, 3, 4).part_begin = 2;
    plan.Eviction(r, 3, 4).part_end = 2;
    CHECK(t.Check(plan).ok());
  }
  SECTION("read where it is, but the output never gets back") {
    plan.Serve(r, 4);
    CHECK(t.Check(plan).rule == Rule::kMainValue);
  }
}

TEST_CASE("an old value is not served") {
  const WriteUpdateRead t;
  PlanBuilder plan = t.Plan();
  const ResidenceId old = plan.Reside(t.x, 0, 1, 5);
  plan.Prefetch(old, 1, 2);  // of what "make" wrote; "step" writes a new one in main memory
  plan.Serve(old, 4);
  CHECK(t.Check(plan).rule == Rule::kServed);
}

TEST_CASE("main memory is not written while a copy reads it") {
  const WriteUpdateRead t;
  PlanBuilder plan = t.Plan();
  plan.Prefetch(plan.Reside(t.x, 0, 1, 5), 1, 3);
  CHECK(t.Check(plan).rule == Rule::kCopy);
}

TEST_CASE("slices of one prefetch that find different values make none") {
  const WriteUpdateRead t;
  PlanBuilder plan = t.Plan();
  const ResidenceId r = plan.Reside(t.x, 0, 1, 5);
  plan.Slice(r, 1, 2, 0, 2);
  plan.Slice(r, 3, 4, 2, 4);
  plan.Serve(r, 4);
  CHECK(t.Check(plan).rule == Rule::kServed);
}

TEST_CASE("an eviction writes back something, once, and undisturbed") {
  const WriteUpdateRead t;
  PlanBuilder plan = t.Plan();
  const ResidenceId r = plan.Reside(t.x, 0, 0, 5);
  plan.Serve(r, 0);
  plan.Serve(r, 2);
  SECTION("the value is written while it is on its way") {
    plan.Eviction(r, 1, 3);
    CHECK(t.Check(plan).rule == Rule::kCopy);
  }
  SECTION("some of its bytes twice") {
    plan.Eviction(r, 3, 4).part_end = 3;
    plan.Eviction(r, 3, 4).part_begin = 2;
    CHECK(t.Check(plan).rule == Rule::kCopy);
  }
  SECTION("once more, to no effect") {
    plan.Eviction(r, 3, 3);
    plan.Eviction(r, 3, 4);
    CHECK(t.Check(plan).ok());
  }
}

// The first trip finds the value that was there before the loop, the second one does not find what
// the first one left in fast memory.
TEST_CASE("a loop is walked twice") {
  ProgramBuilder b;
  const BufferId s = b.Parameter("s", 4);
  b.BeginLoop("steps", 3);
  b.BeginBody();
  b.Add({.name = "look", .reads = {s}});
  const Tick step = b.Add({.name = "step", .updates = {s}});
  b.Add({.name = "rest"});
  b.EndLoop();
  const auto program = b.Build();
  PlanBuilder plan(*program, TestHardware(8));
  const ResidenceId r = plan.Reside(s, 0, step, step + 2);
  plan.Prefetch(r, step, step);
  plan.Serve(r, step);
  CHECK(CheckValues(*program, plan.plan).rule == Rule::kMainValue);
  plan.Eviction(r, step + 1, step + 2);
  CHECK(CheckValues(*program, plan.plan).ok());
}

}  // namespace
}  // namespace mallocgame
