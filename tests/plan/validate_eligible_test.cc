// Validate where instructions say which memory a buffer may lie in, and where a prefetch takes the
// place of a plain copy.
#include "mallocgame/plan/validate.h"
#include "tests/catch.h"
#include "tests/plan/verdicts.h"
#include "tests/support/plans.h"
#include "tests/support/programs.h"

namespace mallocgame {
namespace {

using testing::CheckBroken;
using testing::CheckValid;
using testing::PlanBuilder;
using testing::ProgramBuilder;
using testing::TestHardware;

TEST_CASE("eligible") {
  ProgramBuilder b;
  const BufferId p = b.Parameter("p", 4);
  b.MarkIneligible(p, "effective scalar");
  b.Add({.name = "look", .reads = {p}});
  const auto program = b.Build();
  const Hardware hardware = TestHardware(16);
  PlanBuilder plan(*program, hardware);
  plan.Prefetch(plan.Reside(p, 0, 0, 1), 0, 0);
  CheckBroken(*program, hardware, plan.plan, Rule::kEligible, {"'p'", "effective scalar"});
}

TEST_CASE("eligible: what an instruction must make in main memory may be fetched afterwards") {
  ProgramBuilder b;
  const BufferId x = b.Result("x", 4);
  b.Add({.name = "make", .writes = {x}, .results_in_main = true});
  b.Add({.name = "wait"});
  b.Add({.name = "look", .reads = {x}});
  b.Add({.name = "change", .updates = {x}, .results_in_main = true});
  const auto program = b.Build();
  const Hardware hardware = TestHardware(16);
  PlanBuilder made(*program, hardware);
  made.ServeAll(made.Reside(x, 0, 0, 4));
  CheckBroken(*program, hardware, made.plan, Rule::kEligible, {"'x'", "tick 0 ('make')"});
  PlanBuilder fetched(*program, hardware);
  const ResidenceId x0 = fetched.Reside(x, 0, 1, 4);
  fetched.Prefetch(x0, 1, 1);
  fetched.plan.served_by[1] = x0;
  CheckValid(*program, hardware, fetched.plan);
  fetched.plan.served_by[2] = x0;
  CheckBroken(*program, hardware, fetched.plan, Rule::kEligible, {"'x'", "tick 3 ('change')"});
}

TEST_CASE("eligible: a prefetch in the place of a plain copy that can't write to fast memory") {
  ProgramBuilder b;
  const BufferId p = b.Parameter("p", 4), x = b.Result("x", 4);
  b.Add({.name = "wait"});
  b.Add({.name = "copy", .reads = {p}, .writes = {x}, .plain_copy = true, .results_in_main = true});
  b.Add({.name = "look", .reads = {x}});
  const auto program = b.Build();
  const Hardware hardware = TestHardware(16);
  PlanBuilder written(*program, hardware);
  written.ServeAll(written.Reside(x, 0, 1, 3));
  CheckBroken(*program, hardware, written.plan, Rule::kEligible, {"'x'", "tick 1 ('copy')"});
  PlanBuilder replaced(*program, hardware);
  const ResidenceId x0 = replaced.Reside(x, 0, 0, 3);
  replaced.Prefetch(x0, 0, 2);
  replaced.plan.copies[0].replaces = 1;
  replaced.ServeAll(x0);
  CheckValid(*program, hardware, replaced.plan);
}

TEST_CASE("copy: what a prefetch brings in the place of a plain copy isn't evicted before") {
  ProgramBuilder b;
  const BufferId p = b.Parameter("p", 4), x = b.Result("x", 4);
  b.MarkOutput(x);
  b.Add({.name = "copy", .reads = {p}, .writes = {x}, .plain_copy = true});
  b.Add({.name = "look", .reads = {x}});
  const auto program = b.Build();
  const Hardware hardware = TestHardware(16);
  PlanBuilder plan(*program, hardware);
  const ResidenceId x0 = plan.Reside(x, 0, 1, 2);
  plan.Prefetch(x0, 1, 1);
  plan.plan.copies[0].replaces = 0;
  plan.Eviction(x0, 1, 2);
  plan.Serve(x0, 0);
  plan.Serve(x0, 1);
  CheckValid(*program, hardware, plan.plan);
  std::swap(plan.plan.copies[0], plan.plan.copies[1]);
  CheckBroken(*program, hardware, plan.plan, Rule::kCopy, {"eviction of buffer 'x'", "tick 1"});
}

}  // namespace
}  // namespace mallocgame
