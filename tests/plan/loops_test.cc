// Validate on loops, branches and plain copies that the plan takes over.
#include <string>
#include <vector>

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

//   tick  0       1      | 2          | 3     4       5     | 6     7
//         start   entry  | condition  | body                | exit  after
//   w             carry               | read                              a weight
//   s     write   carry               |       update  read  |       read  the loop's state
//   t                                 | write         read  |             a temporary
struct Looped {
  Looped() {
    ProgramBuilder b;
    w = b.Parameter("w", 4);
    s = b.Result("s", 4);
    t = b.Result("t", 4);
    b.Add({.name = "start", .writes = {s}});
    b.BeginLoop("loop", 10);
    b.Add({.name = "test"});
    b.BeginBody();
    b.Add({.name = "use", .reads = {w}, .writes = {t}});
    b.Add({.name = "step", .updates = {s}});
    b.Add({.name = "both", .reads = {s, t}});
    b.EndLoop();
    b.Add({.name = "after", .reads = {s}});
    program = b.Build();
  }
  PlanBuilder Plan() const { return PlanBuilder(*program, hardware); }

  Hardware hardware = TestHardware(16);
  BufferId w, s, t;
  std::shared_ptr<const Program> program;
};

TEST_CASE("loops: no copy begins in a loop that never runs") {
  ProgramBuilder b;
  const BufferId w = b.Parameter("w", 4);
  b.Add({.name = "start", .reads = {w}});
  b.BeginLoop("never", 0);
  b.BeginBody();
  b.Add({.name = "x"});
  b.Add({.name = "y"});
  b.EndLoop();
  b.Add({.name = "after", .reads = {w}});
  const auto program = b.Build();
  const Hardware hardware = TestHardware(16);
  // It may lie there all the time that the loop would take.
  PlanBuilder over(*program, hardware);
  const ResidenceId r = over.Reside(w, 0, 0, program->ticks());
  over.Prefetch(r, 0, 0);
  over.ServeAll(r);
  CheckValid(*program, hardware, over.plan);

  PlanBuilder inside(*program, hardware);
  const ResidenceId s = inside.Reside(w, 0, 3, 5);
  inside.Prefetch(s, 3, 4);
  CheckBroken(*program, hardware, inside.plan, Rule::kRegion, {"'w'", "never runs"});
}

TEST_CASE("loops: resident over the whole loop") {
  const Looped l;
  PlanBuilder plan = l.Plan();
  const ResidenceId w = plan.Reside(l.w, 0, 0, 6), s = plan.Reside(l.s, 4, 0, 8);
  plan.Prefetch(w, 0, 1);
  plan.ServeAll(w);
  plan.ServeAll(s);
  CheckValid(*l.program, l.hardware, plan.plan);

  SECTION("ends inside") {
    plan.plan.residences[0].end = 5;
    CheckBroken(*l.program, l.hardware, plan.plan, Rule::kRegion, {"'w'", "'loop'", "6"});
  }
  SECTION("serves the entry and is gone inside") {
    plan.plan.residences[0].end = 2;
    plan.plan.served_by[testing::AccessAt(*l.program, l.w, 3).index()] = ResidenceId();
    CheckBroken(*l.program, l.hardware, plan.plan, Rule::kRegion, {"'w'", "'loop'"});
  }
  SECTION("an access inside elsewhere") {
    plan.plan.served_by[testing::AccessAt(*l.program, l.w, 3).index()] = ResidenceId();
    CheckBroken(*l.program, l.hardware, plan.plan, Rule::kServed, {"'w'", "tick 3", "'loop'"});
  }
  SECTION("written inside: main memory is stale after the loop, until an eviction") {
    plan.plan.served_by[testing::AccessAt(*l.program, l.s, 7).index()] = ResidenceId();
    CheckBroken(*l.program, l.hardware, plan.plan, Rule::kMainValue, {"'s'", "tick 7"});
    plan.Eviction(s, 6, 7);
    CheckValid(*l.program, l.hardware, plan.plan);
  }
  SECTION("not filled at the entry") {
    plan.plan.copies[0].end = 2;
    CheckBroken(*l.program, l.hardware, plan.plan, Rule::kServed, {"'w'", "tick 1"});
  }
}

TEST_CASE("loops: a residence of one trip") {
  const Looped l;
  PlanBuilder plan = l.Plan();
  const ResidenceId t = plan.Reside(l.t, 8, 3, 6);
  plan.ServeAll(t);
  CheckValid(*l.program, l.hardware, plan.plan);

  SECTION("begins inside, ends outside") {
    plan.plan.residences[0].end = 7;
    CheckBroken(*l.program, l.hardware, plan.plan, Rule::kRegion, {"'t'", "6"});
  }
  SECTION("begins in the condition, ends in the body") {
    plan.plan.residences[0].begin = 2;
    CheckBroken(*l.program, l.hardware, plan.plan, Rule::kRegion, {"'t'", "3"});
  }
  SECTION("a weight fetched anew in each trip") {
    const ResidenceId w = plan.Reside(l.w, 0, 3, 4);
    plan.Prefetch(w, 3, 3);
    plan.ServeAll(w);
    CheckValid(*l.program, l.hardware, plan.plan);
    plan.plan.residences[1].begin = plan.plan.copies[0].begin = 2;
    CheckBroken(*l.program, l.hardware, plan.plan, Rule::kRegion, {"'w'"});
  }
}

TEST_CASE("loops: the slices of a prefetch begin in one loop") {
  const Looped l;
  PlanBuilder plan = l.Plan();
  const ResidenceId w = plan.Reside(l.w, 0, 0, 6);
  plan.Prefetch(w, 0, 1);
  plan.Prefetch(w, 3, 3);
  plan.plan.copies[0].part_end = plan.plan.copies[1].part_begin = 2;
  plan.plan.served_by[testing::AccessAt(*l.program, l.w, 3).index()] = w;
  CheckBroken(*l.program, l.hardware, plan.plan, Rule::kRegion, {"'w'", "0 and 3"});
  // Both begin in the body, so both are served anew in each trip.
  plan.plan.residences[0].begin = plan.plan.copies[0].begin = plan.plan.copies[0].end = 3;
  plan.plan.residences[0].end = 4;
  CheckValid(*l.program, l.hardware, plan.plan);
}

TEST_CASE("loops: a value that is carried in main memory must be there at each trip's end") {
  const Looped l;
  PlanBuilder plan = l.Plan();
  const ResidenceId s = plan.Reside(l.s, 0, 3, 6);
  plan.Prefetch(s, 3, 4);
  plan.ServeAll(s);
  CheckBroken(*l.program, l.hardware, plan.plan, Rule::kMainValue, {"'s'", "body"});
  plan.Eviction(s, 5, 6);
  CheckValid(*l.program, l.hardware, plan.plan);

  SECTION("an eviction behind the body is one of another region") {
    plan.plan.copies[1].begin = 6;
    CheckBroken(*l.program, l.hardware, plan.plan, Rule::kRegion, {"'s'"});
  }
  SECTION("a window out of the body") {
    plan.plan.residences[0].end = 7;
    plan.plan.copies[1].end = 7;
    CheckBroken(*l.program, l.hardware, plan.plan, Rule::kRegion);
  }
  SECTION("not in main memory at the entry") {
    PlanBuilder other = l.Plan();
    other.Serve(other.Reside(l.s, 0, 0, 1), 0);
    CheckBroken(*l.program, l.hardware, other.plan, Rule::kMainValue,
                {"'s'", "tick 1", "enters the loop"});
  }
}

// The residence around the loop is read before the write: the first trip finds the right value, the
// second one the old one.
//   tick  0      1     | 2     | 3     4      | 5
//   s     write  carry |       | read  write  |
TEST_CASE("loops: what only a second trip shows") {
  ProgramBuilder b;
  const BufferId s = b.Result("s", 4);
  b.Add({.name = "start", .writes = {s}});
  b.BeginLoop("loop", 2);
  b.BeginBody();
  b.Add({.name = "look", .reads = {s}});
  b.Add({.name = "set", .writes = {s}});
  b.EndLoop();
  const auto program = b.Build();
  const Hardware hardware = TestHardware(16);
  PlanBuilder plan(*program, hardware);
  const ResidenceId around = plan.Reside(s, 0, 0, 5);
  plan.Serve(around, 0);
  plan.Eviction(around, 1, 1);
  CheckValid(*program, hardware, plan.plan);
  plan.Serve(around, 3);
  CheckBroken(*program, hardware, plan.plan, Rule::kServed, {"'s'", "tick 3"});
}

TEST_CASE("loops: undefined storage of a body is undefined again in each trip") {
  ProgramBuilder b;
  const BufferId s = b.Undefined("s", 4);
  b.BeginLoop("loop", 2);
  b.BeginBody();
  b.Add({.name = "set", .updates = {s}});
  b.Add({.name = "look", .reads = {s}});
  b.EndLoop();
  const auto program = b.Build();
  const Hardware hardware = TestHardware(16);
  PlanBuilder plan(*program, hardware);
  plan.ServeAll(plan.Reside(s, 0, 2, 4));
  CheckValid(*program, hardware, plan.plan);
}

TEST_CASE("copies over a whole loop, and into one") {
  ProgramBuilder b;
  const BufferId p = b.Parameter("p", 4);
  b.Add({.name = "first"});
  b.BeginLoop("loop", 3);
  b.BeginBody();
  b.Add({.name = "work"});
  b.EndLoop();
  b.Add({.name = "look", .reads = {p}});
  const auto program = b.Build();  // entry 1, condition 2, body 3, exit 4, look 5
  const Hardware hardware = TestHardware(16);
  PlanBuilder plan(*program, hardware);
  const ResidenceId r = plan.Reside(p, 0, 0, 6);
  plan.Prefetch(r, 0, 5);
  plan.ServeAll(r);
  CheckValid(*program, hardware, plan.plan);
  plan.plan.copies[0].end = 4;  // the last instruction before it is in the body
  CheckBroken(*program, hardware, plan.plan, Rule::kRegion, {"'p'", "[0, 4)"});
  plan.plan.copies[0].end = 3;
  CheckBroken(*program, hardware, plan.plan, Rule::kRegion, {"'p'"});
  plan.plan.copies[0].end = 2;
  CheckValid(*program, hardware, plan.plan);
}

//   tick  0        | 1         | 2         | 3
//         before   | branch 0  | branch 1  | conditional
//   p     read     | read      | read      | read
TEST_CASE("branches") {
  ProgramBuilder b;
  const BufferId p = b.Parameter("p", 4);
  b.Add({.name = "before", .reads = {p}});
  b.BeginBranch();
  b.Add({.name = "yes", .reads = {p}});
  b.EndBranch();
  b.BeginBranch();
  b.Add({.name = "no", .reads = {p}});
  b.EndBranch();
  b.Add({.name = "if", .reads = {p}});
  const auto program = b.Build();
  const Hardware hardware = TestHardware(16);
  PlanBuilder plan(*program, hardware);
  SECTION("from outside into a branch, and over it") {
    const ResidenceId r = plan.Reside(p, 0, 0, 2);
    plan.Prefetch(r, 0, 0);
    plan.ServeAll(r);
    CheckValid(*program, hardware, plan.plan);
    plan.plan.residences[0].end = 4;
    plan.ServeAll(r);
    CheckValid(*program, hardware, plan.plan);
  }
  SECTION("from a branch out of it") {
    const ResidenceId r = plan.Reside(p, 0, 1, 2);
    plan.Prefetch(r, 1, 1);
    plan.Serve(r, 1);
    CheckValid(*program, hardware, plan.plan);
    plan.plan.residences[0].end = 3;
    CheckBroken(*program, hardware, plan.plan, Rule::kRegion, {"'p'", "2"});
  }
  SECTION("a window into a branch") {
    const ResidenceId r = plan.Reside(p, 0, 0, 2);
    plan.Prefetch(r, 0, 2);
    CheckBroken(*program, hardware, plan.plan, Rule::kRegion, {"'p'", "[0, 2)"});
  }
}

//   tick  0      1       2     3      4
//   from  write                write
//   to           write   read         read      tick 1 is the plain copy from -> to
struct Copied {
  Copied() {
    ProgramBuilder b;
    from = b.Result("from", 4);
    to = b.Result("to", 4);
    b.Add({.name = "make", .writes = {from}});
    b.Add({.name = "copy", .reads = {from}, .writes = {to}, .plain_copy = true});
    b.Add({.name = "look", .reads = {to}});
    b.Add({.name = "again", .writes = {from}});
    b.Add({.name = "late", .reads = {to}});
    program = b.Build();
  }
  // `to` comes at ticks [begin, end) straight from `from`.
  PlanBuilder Plan(Tick begin, Tick end) const {
    PlanBuilder plan(*program, hardware);
    const ResidenceId r = plan.Reside(to, 0, begin, 5);
    plan.Prefetch(r, begin, end).replaces = 1;
    plan.ServeAll(r);
    return plan;
  }
  Hardware hardware = TestHardware(16);
  BufferId from, to;
  std::shared_ptr<const Program> program;
};

TEST_CASE("plain copies that the plan takes over") {
  const Copied c;
  CheckValid(*c.program, c.hardware, c.Plan(1, 1).plan);
  CheckValid(*c.program, c.hardware, c.Plan(1, 2).plan);

  SECTION("after the tick that it replaces") {
    PlanBuilder good = c.Plan(2, 2);
    good.Serve(ResidenceId(0), 1);
    CheckValid(*c.program, c.hardware, good.plan);
    // This is too late for tick 2, which reads the result, and for the operand, which tick 3
    // overwrites.
    PlanBuilder plan = c.Plan(3, 3);
    plan.Serve(ResidenceId(0), 1);
    CheckBroken(*c.program, c.hardware, plan.plan, Rule::kMainValue, {"'to'", "tick 2"});
    PlanBuilder later = c.Plan(4, 4);
    later.Serve(ResidenceId(0), 1);
    CheckBroken(*c.program, c.hardware, later.plan, Rule::kMainValue, {"'from'", "'copy'"});
  }
  SECTION("before the operand is written") {
    CheckBroken(*c.program, c.hardware, c.Plan(0, 2).plan, Rule::kMainValue, {"'from'", "'copy'"});
  }
  SECTION("not done at the first access of the result") {
    CheckBroken(*c.program, c.hardware, c.Plan(1, 3).plan, Rule::kServed, {"'to'", "tick 2"});
  }
  SECTION("the operand is overwritten under the copy") {
    PlanBuilder plan = c.Plan(1, 4);
    CheckBroken(*c.program, c.hardware, plan.plan, Rule::kCopy, {"'from'", "tick 3", "'again'"});
  }
  SECTION("the result is not in the residence") {
    PlanBuilder plan = c.Plan(1, 2);
    plan.plan.served_by[testing::AccessAt(*c.program, c.to, 1).index()] = ResidenceId();
    CheckBroken(*c.program, c.hardware, plan.plan, Rule::kCopy, {"'to'", "'copy'"});
  }
  SECTION("the operand is served from fast memory") {
    PlanBuilder plan = c.Plan(1, 2);
    const ResidenceId r = plan.Reside(c.from, 8, 0, 2);
    plan.ServeAll(r);
    CheckBroken(*c.program, c.hardware, plan.plan, Rule::kCopy, {"'copy'", "operand"});
  }
  SECTION("the operand's value is in fast memory only") {
    PlanBuilder plan = c.Plan(1, 2);
    const ResidenceId r = plan.Reside(c.from, 8, 0, 1);
    plan.ServeAll(r);
    CheckBroken(*c.program, c.hardware, plan.plan, Rule::kMainValue, {"'from'", "tick 1"});
  }
  SECTION("a slice of the copy may come after the tick it replaces") {
    PlanBuilder plan = c.Plan(1, 2);
    plan.plan.copies[0].part_end = 2;
    plan.Slice(ResidenceId(0), 2, 2, 2, 4).replaces = 1;
    CheckValid(*c.program, c.hardware, plan.plan);
    plan.plan.copies[1].begin = plan.plan.copies[1].end = 4;  // the operand's next value
    CheckBroken(*c.program, c.hardware, plan.plan, Rule::kMainValue, {"'from'", "'copy'"});
  }
}

//   tick  0      1      2       3
//   from  write  write          read
//   The value copied must be the one that the plain copy at tick 2 reads.
TEST_CASE("plain copies: an old value of the operand") {
  ProgramBuilder b;
  const BufferId from = b.Result("from", 4), to = b.Result("to", 4);
  b.Add({.name = "make", .writes = {from}});
  b.Add({.name = "nothing"});
  b.Add({.name = "again", .writes = {from}});
  b.Add({.name = "copy", .reads = {from}, .writes = {to}, .plain_copy = true});
  b.Add({.name = "look", .reads = {to}});
  const auto program = b.Build();
  const Hardware hardware = TestHardware(16);
  PlanBuilder plan(*program, hardware);
  const ResidenceId r = plan.Reside(to, 0, 1, 5);
  plan.Prefetch(r, 1, 2).replaces = 3;
  plan.ServeAll(r);
  CheckBroken(*program, hardware, plan.plan, Rule::kCopy, {"'from'", "'copy'"});
  plan.plan.residences[0].begin = plan.plan.copies[0].begin = 3;
  plan.plan.copies[0].end = 4;
  CheckValid(*program, hardware, plan.plan);
}

}  // namespace
}  // namespace mallocgame
