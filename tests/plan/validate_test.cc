// Plans that keep every rule of Validate, and plans that break each of them on purpose, on programs
// small enough to draw.
#include "mallocgame/plan/validate.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
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

//   tick  0      1      2       3        4      5
//   p            read           read            read
//   a     write         update           read             a is 8 bytes, p 4, out 8 and an output
//   out                                         write
struct Line {
  Line() {
    ProgramBuilder b;
    p = b.Parameter("p", 4);
    a = b.Result("a", 8);
    out = b.Result("out", 8);
    b.MarkOutput(out);
    b.Add({.name = "make", .writes = {a}});
    b.Add({.name = "look1", .reads = {p}});
    b.Add({.name = "change", .updates = {a}});
    b.Add({.name = "look3", .reads = {p}});
    b.Add({.name = "look4", .reads = {a}});
    b.Add({.name = "finish", .reads = {p}, .writes = {out}});
    program = b.Build();
  }
  PlanBuilder Plan() const { return PlanBuilder(*program, hardware); }

  Hardware hardware = TestHardware(16, 4);
  BufferId p, a, out;
  std::shared_ptr<const Program> program;
};

TEST_CASE("everything in main memory is valid") {
  const Line t;
  CheckValid(*t.program, t.hardware, t.Plan().plan);
}

TEST_CASE("malformed plans") {
  const Line t;
  PlanBuilder good = t.Plan();
  const ResidenceId r = good.Reside(t.p, 0, 0, 6);
  good.Prefetch(r, 0, 1);
  good.ServeAll(r);
  CheckValid(*t.program, t.hardware, good.plan);

  const auto broken = [&](auto change, const std::vector<std::string>& parts) {
    Plan plan = good.plan;
    change(plan);
    CheckBroken(*t.program, t.hardware, plan, Rule::kMalformed, parts);
  };
  broken([](Plan& x) { x.program_fingerprint = "0123456789abcdef"; },
         {"0123456789abcdef", t.program->fingerprint()});
  broken([](Plan& x) { x.hardware = "abacus"; }, {"abacus", "test"});
  broken([](Plan& x) { x.served_by.pop_back(); }, {"7", "6"});
  broken([](Plan& x) { x.served_by[0] = ResidenceId(1); }, {"access 0", "residence 1"});
  broken([](Plan& x) { x.served_by[0] = ResidenceId(-2); }, {"-2"});
  broken([](Plan& x) { x.residences[0].buffer = BufferId(3); }, {"buffer 3"});
  broken([](Plan& x) { x.residences[0].end = 7; }, {"[0, 7)"});
  broken([](Plan& x) { x.residences[0].begin = 6; }, {"[6, 6)"});
  broken([](Plan& x) { x.copies[0].residence = ResidenceId(); }, {"residence -1"});
  broken([](Plan& x) { x.copies[0].end = 7; }, {"[0, 7)"});
  broken([](Plan& x) { x.copies[0].begin = 2; }, {"[2, 1)"});
  broken([](Plan& x) { x.copies[0].part_end = 5; }, {"[0, 5)"});
  broken([](Plan& x) { x.copies[0].part_end = 0; }, {"[0, 0)"});
  broken([](Plan& x) { x.copies[0].replaces = 1; }, {"tick 1", "plain copy"});
  broken([](Plan& x) { x.copies[0].begin = x.copies[0].end = 1, x.copies[0].preload = true; },
         {"preload"});
  broken([](Plan& x) { x.copies.push_back(x.copies[0]), x.copies[0].begin = 1; },
         {"begins at 0", "at 1"});
}

// Offsets of a and p over ticks:
//   16 +----------------+
//      |      p at 12   |
//    8 +---------+------+
//      |    a    |
//    0 +---------+
TEST_CASE("space: two residences beside each other, and in each other's way") {
  const Line t;
  PlanBuilder plan = t.Plan();
  const ResidenceId a = plan.Reside(t.a, 0, 0, 5);
  const ResidenceId p = plan.Reside(t.p, 12, 0, 6);
  plan.Prefetch(p, 0, 1);
  plan.ServeAll(a);
  plan.ServeAll(p);
  CheckValid(*t.program, t.hardware, plan.plan);
  plan.plan.residences[1].offset = 8;
  CheckValid(*t.program, t.hardware, plan.plan);
  plan.plan.residences[1].offset = 4;
  CheckBroken(*t.program, t.hardware, plan.plan, Rule::kSpace, {"'p'", "'a'", "[4, 8)", "[0, 8)"});
  plan.plan.residences[1].offset = 16;
  CheckBroken(*t.program, t.hardware, plan.plan, Rule::kSpace, {"'p'", "offset 16 of 16"});
  plan.plan.residences[1].offset = -4;
  CheckBroken(*t.program, t.hardware, plan.plan, Rule::kSpace, {"-4"});
  plan.plan.residences[1].offset = 10;
  CheckBroken(*t.program, t.hardware, plan.plan, Rule::kSpace, {"10", "multiple of 4"});
  plan.plan.residences[1].offset = INT64_MAX / 4 * 4;
  CheckBroken(*t.program, t.hardware, plan.plan, Rule::kSpace);
}

TEST_CASE("space: a residence may begin where and when another ends") {
  const Line t;
  PlanBuilder plan = t.Plan();
  plan.ServeAll(plan.Reside(t.a, 0, 0, 5));
  const ResidenceId p = plan.Reside(t.p, 4, 5, 6);
  plan.Prefetch(p, 5, 5);
  plan.ServeAll(p);
  CheckValid(*t.program, t.hardware, plan.plan);
  plan.plan.residences[1].begin = plan.plan.copies[0].begin = 4;
  CheckBroken(*t.program, t.hardware, plan.plan, Rule::kSpace, {"tick 4"});
}

TEST_CASE("space: what instructions need for themselves") {
  ProgramBuilder b;
  const BufferId p = b.Parameter("p", 4);
  b.Add({.name = "look", .reads = {p}});
  b.Add({.name = "big", .reserved_bytes = 8});
  b.Add({.name = "look", .reads = {p}});
  const auto program = b.Build();
  const Hardware hardware = TestHardware(16, 4);
  PlanBuilder plan(*program, hardware);
  const ResidenceId p0 = plan.Reside(p, 8, 0, 3);
  plan.Prefetch(p0, 0, 0);
  plan.ServeAll(p0);
  CheckValid(*program, hardware, plan.plan);
  plan.plan.residences[0].offset = 4;
  CheckBroken(*program, hardware, plan.plan, Rule::kSpace, {"tick 1", "'big'", "[0, 8)"});
  plan.plan.residences[0].end = 1;
  plan.plan.served_by[1] = ResidenceId();
  CheckValid(*program, hardware, plan.plan);
}

// a is filled in two slices of 4 bytes, the upper one later: its place is free until then.
TEST_CASE("space and copies: slices") {
  ProgramBuilder b;
  const BufferId a = b.Parameter("a", 8), p = b.Parameter("p", 4);
  b.Add({.name = "look0", .reads = {p}});
  b.Add({.name = "look1", .reads = {p}});
  b.Add({.name = "look2", .reads = {a}});
  const auto program = b.Build();
  const Hardware hardware = TestHardware(8, 4);
  PlanBuilder plan(*program, hardware);
  const ResidenceId whole = plan.Reside(a, 0, 0, 3), small = plan.Reside(p, 4, 0, 1);
  plan.Slice(whole, 0, 2, 0, 4);
  plan.Prefetch(small, 0, 0);
  plan.Slice(whole, 1, 2, 4, 8);
  plan.ServeAll(whole);
  plan.ServeAll(small);
  CheckValid(*program, hardware, plan.plan);

  SECTION("the upper slice is too early") {
    plan.plan.copies[2].begin = 0;
    CheckBroken(*program, hardware, plan.plan, Rule::kSpace, {"'p'", "[4, 8)"});
  }
  SECTION("a byte is missing") {
    plan.plan.copies[2].part_begin = 5;
    CheckBroken(*program, hardware, plan.plan, Rule::kCopy, {"8 bytes", "4"});
  }
  SECTION("bytes are filled twice") {
    plan.plan.copies[2].part_begin = 3;
    CheckBroken(*program, hardware, plan.plan, Rule::kCopy, {"8 bytes"});
    plan.plan.copies[2].part_begin = 0;
    CheckBroken(*program, hardware, plan.plan, Rule::kCopy, {"8 bytes"});
  }
  SECTION("all slices must be there at the access") {
    plan.plan.copies[2].end = 3;
    CheckBroken(*program, hardware, plan.plan, Rule::kServed, {"'a'", "tick 2"});
  }
  SECTION("the residence begins with the first slice") {
    plan.plan.copies[0].begin = 1;
    std::swap(plan.plan.copies[0], plan.plan.copies[1]);
    CheckBroken(*program, hardware, plan.plan, Rule::kCopy, {"begins at 1"});
  }
}

TEST_CASE("served: between two slices part of the bytes is missing") {
  ProgramBuilder b;
  const BufferId a = b.Parameter("a", 8);
  b.Add({.name = "before"});
  b.Add({.name = "early", .reads = {a}});
  b.Add({.name = "late", .reads = {a}});
  const auto program = b.Build();
  const Hardware hardware = TestHardware(8, 4);
  PlanBuilder plan(*program, hardware);
  const ResidenceId whole = plan.Reside(a, 0, 0, 3);
  plan.Slice(whole, 0, 1, 0, 4);
  plan.Slice(whole, 2, 2, 4, 8);
  plan.Serve(whole, 2);
  CheckValid(*program, hardware, plan.plan);
  plan.Serve(whole, 1);
  CheckBroken(*program, hardware, plan.plan, Rule::kServed,
              {"'a'", "tick 1", "prefetched only from tick 2"});
}

TEST_CASE("served: by a residence that is over, not filled, of another buffer, or old") {
  const Line t;
  PlanBuilder plan = t.Plan();
  SECTION("after the residence's end") {
    const ResidenceId p = plan.Reside(t.p, 0, 1, 3);
    plan.Prefetch(p, 1, 1);
    plan.Serve(p, 3);
    CheckBroken(*t.program, t.hardware, plan.plan, Rule::kServed,
                {"tick 3", "'look3'", "'p'", "[1, 3)"});
  }
  SECTION("before the prefetch is done") {
    const ResidenceId p = plan.Reside(t.p, 0, 1, 6);
    plan.Prefetch(p, 1, 4);
    plan.Serve(p, 5);
    CheckValid(*t.program, t.hardware, plan.plan);
    plan.Serve(p, 3);
    CheckBroken(*t.program, t.hardware, plan.plan, Rule::kServed, {"tick 3", "not done"});
  }
  SECTION("of another buffer") {
    const ResidenceId p = plan.Reside(t.p, 0, 0, 6);
    plan.Prefetch(p, 0, 0);
    plan.plan.served_by[testing::AccessAt(*t.program, t.a, 4).index()] = p;
    CheckBroken(*t.program, t.hardware, plan.plan, Rule::kServed, {"'a'"});
  }
  SECTION("never filled") {
    plan.Serve(plan.Reside(t.p, 0, 0, 6), 1);
    CheckBroken(*t.program, t.hardware, plan.plan, Rule::kServed, {"'p'", "tick 1", "newest"});
  }
  SECTION("the value was changed in main memory since") {
    const ResidenceId a = plan.Reside(t.a, 0, 0, 5);
    plan.Serve(a, 0);
    plan.Eviction(a, 1, 2);
    plan.Serve(a, 4);
    CheckBroken(*t.program, t.hardware, plan.plan, Rule::kServed, {"'a'", "tick 4", "'look4'"});
  }
  SECTION("the value was changed in another residence since") {
    const ResidenceId first = plan.Reside(t.a, 0, 0, 5), second = plan.Reside(t.a, 8, 2, 4);
    plan.Serve(first, 0);
    plan.Eviction(first, 1, 2);
    plan.Prefetch(second, 2, 2);
    plan.Serve(second, 2);
    plan.Eviction(second, 3, 4);
    CheckValid(*t.program, t.hardware, plan.plan);
    plan.Serve(first, 4);
    CheckBroken(*t.program, t.hardware, plan.plan, Rule::kServed, {"'a'", "tick 4", "residence 0"});
  }
}

TEST_CASE("served: what a transfer holds stays where the transfer began") {
  ProgramBuilder b;
  const BufferId a = b.Parameter("a", 4), r = b.Result("r", 4);
  b.Add({.name = "first", .cycles = {10}});
  const Tick start = b.Add({.name = "start", .reads = {a}, .writes = {r}, .cycles = {1}});
  b.Add({.name = "between", .cycles = {10}});
  const Tick done = b.Add({.name = "done", .reads = {a}, .updates = {r}, .cycles = {1}});
  b.Add({.name = "last", .reads = {a, r}, .cycles = {10}});
  b.Hold(a, start, done);
  b.Hold(r, start, done);
  const auto program = b.Build();
  const Hardware hardware = TestHardware(16);
  PlanBuilder plan(*program, hardware);
  SECTION("a residence over all of it, and another one behind") {
    const ResidenceId held = plan.Reside(r, 0, 1, 5);
    plan.Serve(held, 1);
    plan.Serve(held, 3);
    plan.Serve(held, 4);
    const ResidenceId later = plan.Reside(a, 8, 4, 5);
    plan.Prefetch(later, 4, 4);
    plan.Serve(later, 4);
    CheckValid(*program, hardware, plan.plan);
  }
  SECTION("in fast memory at its begin only") {
    const ResidenceId held = plan.Reside(a, 0, 0, 4);
    plan.Prefetch(held, 0, 1);
    plan.Serve(held, 1);
    CheckBroken(*program, hardware, plan.plan, Rule::kServed,
                {"tick 3 ('done')", "'a'", "tick 1 ('start')", "until tick 4"});
    plan.Serve(held, 3);
    CheckValid(*program, hardware, plan.plan);
  }
  SECTION("fetched on the way") {
    const ResidenceId held = plan.Reside(a, 0, 2, 4);
    plan.Prefetch(held, 2, 3);
    plan.Serve(held, 3);
    CheckBroken(*program, hardware, plan.plan, Rule::kServed, {"tick 3 ('done')", "'a'"});
  }
  SECTION("evicted while it is filled") {
    const ResidenceId held = plan.Reside(r, 0, 1, 5);
    plan.Serve(held, 1);
    plan.Serve(held, 3);
    plan.Serve(held, 4);
    plan.Eviction(held, 4, 5);
    CheckValid(*program, hardware, plan.plan);
    plan.plan.copies[0] = {CopyKind::kEviction, held, 2, 3, 0, 4};
    CheckBroken(*program, hardware, plan.plan, Rule::kCopy, {"'r'", "tick 1 ('start')", "fills"});
  }
}

TEST_CASE("main value: reads before the eviction is done, outputs that never get back") {
  const Line t;
  PlanBuilder plan = t.Plan();
  SECTION("a read of a value that is only in fast memory") {
    plan.Serve(plan.Reside(t.a, 0, 0, 1), 0);
    CheckBroken(*t.program, t.hardware, plan.plan, Rule::kMainValue, {"'a'", "tick 2", "'change'"});
  }
  SECTION("a read while the eviction is on its way, and at its end") {
    const ResidenceId a = plan.Reside(t.a, 0, 0, 4);
    plan.Serve(a, 0);
    plan.Eviction(a, 1, 3);
    CheckBroken(*t.program, t.hardware, plan.plan, Rule::kMainValue,
                {"'a'", "tick 2", "on its way"});
    plan.plan.copies[0].end = 2;
    CheckValid(*t.program, t.hardware, plan.plan);
  }
  SECTION("an output") {
    const ResidenceId out = plan.Reside(t.out, 0, 5, 6);
    plan.Serve(out, 5);
    CheckBroken(*t.program, t.hardware, plan.plan, Rule::kMainValue,
                {"'out'", "end of the program"});
    plan.Eviction(out, 6, 6);
    CheckValid(*t.program, t.hardware, plan.plan);
  }
  SECTION("a prefetch of a value that is not in main memory yet") {
    const ResidenceId a = plan.Reside(t.a, 0, 0, 4), again = plan.Reside(t.a, 8, 1, 5);
    plan.Serve(a, 0);
    plan.Eviction(a, 1, 2);
    plan.Prefetch(again, 1, 2);
    plan.Serve(again, 2);
    plan.Serve(again, 4);
    CheckBroken(*t.program, t.hardware, plan.plan, Rule::kMainValue, {"'a'", "prefetch [1, 2)"});
    plan.plan.residences[1].begin = plan.plan.copies[1].begin = 2;
    CheckValid(*t.program, t.hardware, plan.plan);
  }
  SECTION("copies with empty windows follow one another in the plan's order") {
    const ResidenceId a = plan.Reside(t.a, 0, 0, 1), again = plan.Reside(t.a, 8, 1, 5);
    plan.Serve(a, 0);
    plan.Eviction(a, 1, 1);
    plan.Prefetch(again, 1, 1);
    plan.ServeAll(again);
    CheckValid(*t.program, t.hardware, plan.plan);
    std::swap(plan.plan.copies[0], plan.plan.copies[1]);
    CheckBroken(*t.program, t.hardware, plan.plan, Rule::kMainValue, {"prefetch [1, 1)"});
  }
}

TEST_CASE("copies: of no value, without a source, outside their residence") {
  const Line t;
  PlanBuilder plan = t.Plan();
  SECTION("an eviction overtaken by the next write") {
    const ResidenceId a = plan.Reside(t.a, 0, 0, 5);
    plan.ServeAll(a);
    plan.Eviction(a, 1, 3);
    CheckBroken(*t.program, t.hardware, plan.plan, Rule::kCopy, {"'a'", "tick 2", "'change'"});
    plan.plan.copies[0].end = 2;
    CheckValid(*t.program, t.hardware, plan.plan);
  }
  SECTION("an eviction before the write") {
    const ResidenceId a = plan.Reside(t.a, 0, 0, 5);
    plan.ServeAll(a);
    plan.Eviction(a, 0, 1);
    CheckBroken(*t.program, t.hardware, plan.plan, Rule::kCopy, {"'a'", "eviction [0, 1)"});
  }
  SECTION("main memory is overwritten under a prefetch") {
    const ResidenceId a = plan.Reside(t.a, 0, 1, 5);
    plan.Prefetch(a, 1, 3);
    CheckBroken(*t.program, t.hardware, plan.plan, Rule::kCopy, {"'a'", "tick 2", "'change'"});
    plan.plan.copies[0].end = 2;
    CheckValid(*t.program, t.hardware, plan.plan);
  }
  SECTION("a copy that outlives its residence, or is there before it") {
    const ResidenceId a = plan.Reside(t.a, 0, 0, 1);
    plan.Serve(a, 0);
    plan.Eviction(a, 1, 2);
    CheckBroken(*t.program, t.hardware, plan.plan, Rule::kCopy, {"'a'", "[1, 2)", "[0, 1)"});
  }
  SECTION("a preload of what is no parameter") {
    ProgramBuilder b;
    const BufferId c = b.Constant("c", 4);
    b.Add({.name = "look", .reads = {c}});
    const auto program = b.Build();
    PlanBuilder preload(*program, t.hardware);
    const ResidenceId r = preload.Reside(c, 0, 0, 1);
    preload.Prefetch(r, 0, 0);
    preload.ServeAll(r);
    CheckValid(*program, t.hardware, preload.plan);
    preload.plan.copies[0].preload = true;
    CheckBroken(*program, t.hardware, preload.plan, Rule::kCopy, {"'c'", "parameter"});
  }
  SECTION("a preload of a donated parameter, which has another value in the next run") {
    ProgramBuilder b;
    const BufferId p = b.Parameter("p", 4);
    b.Add({.name = "look", .reads = {p}});
    b.Add({.name = "change", .updates = {p}});
    b.MarkOutput(p);
    const auto program = b.Build();
    PlanBuilder preload(*program, t.hardware);
    const ResidenceId r = preload.Reside(p, 0, 0, 1);
    preload.Prefetch(r, 0, 0);
    preload.Serve(r, 0);
    CheckValid(*program, t.hardware, preload.plan);
    preload.plan.copies[0].preload = true;
    CheckBroken(*program, t.hardware, preload.plan, Rule::kCopy, {"'p'", "returns it"});
    REQUIRE(!program->buffer(p).CanBePreloaded());
  }
}

TEST_CASE("values of undefined storage: none to fetch before the first write") {
  ProgramBuilder b;
  const BufferId s = b.Undefined("s", 4);
  b.Add({.name = "set", .updates = {s}});
  b.Add({.name = "look", .reads = {s}});
  const auto program = b.Build();
  const Hardware hardware = TestHardware(16);
  PlanBuilder plan(*program, hardware);
  const ResidenceId r = plan.Reside(s, 0, 0, 2);
  plan.ServeAll(r);
  CheckValid(*program, hardware, plan.plan);
  plan.plan.served_by[0] = ResidenceId();
  CheckBroken(*program, hardware, plan.plan, Rule::kServed, {"'s'", "tick 1"});
}

TEST_CASE("outstanding copies and preloads") {
  ProgramBuilder b;
  std::vector<BufferId> p;
  for (int i = 0; i < 3; ++i) p.push_back(b.Parameter(absl::StrCat("p", i), 4));
  for (int i = 0; i < 4; ++i) b.Add({.name = absl::StrCat("look", i), .reads = {p[0], p[1], p[2]}});
  const auto program = b.Build();
  Hardware hardware = TestHardware(16);
  hardware.max_outstanding_prefetches = 2;
  PlanBuilder plan(*program, hardware);
  SECTION("windows that share a tick; empty ones and those that only touch don't") {
    for (int i = 0; i < 3; ++i) plan.Reside(p[i], 4 * i, 0, 4);
    plan.Prefetch(ResidenceId(0), 0, 2);
    plan.Prefetch(ResidenceId(1), 0, 3);
    plan.Prefetch(ResidenceId(2), 2, 3);
    plan.plan.residences[2].begin = 2;
    CheckValid(*program, hardware, plan.plan);
    plan.plan.copies[2].begin = plan.plan.residences[2].begin = 1;
    CheckBroken(*program, hardware, plan.plan, Rule::kOutstanding, {"3 prefetches", "tick 1", "2"});
    plan.plan.copies[2].end = 1;
    CheckValid(*program, hardware, plan.plan);
  }
  SECTION("slices of one residence count as one") {
    plan.Reside(p[0], 0, 0, 4);
    plan.Reside(p[1], 4, 0, 4);
    for (int i = 0; i < 4; ++i) plan.Slice(ResidenceId(0), 0, 3, i, i + 1);
    plan.Prefetch(ResidenceId(1), 0, 3);
    CheckValid(*program, hardware, plan.plan);
  }
  SECTION("preloads") {
    for (int i = 0; i < 2; ++i) {
      const ResidenceId r = plan.Reside(p[i], 4 * i, 0, 4);
      plan.Preload(r, 0);
      plan.ServeAll(r);
    }
    CheckBroken(*program, hardware, plan.plan, Rule::kOutstanding, {"2 buffers", "1"});
    hardware.max_preloads = 2;
    CheckValid(*program, hardware, plan.plan);
  }
}

}  // namespace
}  // namespace mallocgame
