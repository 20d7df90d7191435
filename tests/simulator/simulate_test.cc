// Simulate on plans small enough to add up by hand. A byte, a cycle and a flop take one picosecond.
#include "mallocgame/simulator/simulate.h"

#include "tests/catch.h"
#include "tests/simulator/looped.h"
#include "tests/support/plans.h"
#include "tests/support/programs.h"

namespace mallocgame {
namespace {

using testing::Looped;
using testing::PlanBuilder;
using testing::ProgramBuilder;
using testing::TestHardware;

Report Run(const std::shared_ptr<const Program>& program, const Hardware& hardware,
           const Plan& plan) {
  const CostModel cost_model(program, hardware);
  const auto report = Simulate(cost_model, plan);
  INFO(report.status());
  REQUIRE(report.ok());
  return *report;
}

// These are XLA's own tests T3 to T6.
TEST_CASE("XLA's cases: a copy and nothing else") {
  for (const int64_t bytes : {8388608, 6291456}) {  // f32[1,1,1024,2048]; a slice f32[768,2048]
    ProgramBuilder b;
    const BufferId p = b.Parameter("p", bytes);
    b.Add({.name = "done"});
    const auto program = b.Build();
    const Hardware hardware = TestHardware(bytes);
    PlanBuilder plan(*program, hardware);
    plan.Prefetch(plan.Reside(p, 0, 0, 1), 0, 0);
    CHECK(Run(program, hardware, plan.plan).latency_ps == bytes);
    CHECK(Run(program, hardware, AllMainPlan(*program, hardware)).latency_ps == 0);
  }
}

TEST_CASE("A wait for links is a part of the latency, and the rest has its source") {
  ProgramBuilder b("sum", CostKind::kRoofline);
  const BufferId x = b.Parameter("x", 8), y = b.Result("y", 8);
  b.Add({.name = "sum", .reads = {x}, .writes = {y}});
  b.Add({.name = "done"});
  ProgramData data = b.Build()->data();
  data.cost.instructions[0].link_ps = 30;
  data.cost.instructions[1].link_ps = 5;
  const auto program = Program::Create(std::move(data));
  REQUIRE(program.ok());
  const Hardware hardware = TestHardware(32);
  const Report report = Run(*program, hardware, AllMainPlan(**program, hardware));
  CHECK(report.latency_ps == 16 + 30 + 5);
  CHECK(report.all_main_ps == report.latency_ps);
  CHECK(report.modelled_ps == 30 + 5);
  CHECK(report.exact_ps + report.predicted_ps + report.unpriced_ps == 0);
}

TEST_CASE("XLA's cases: an instruction that leaves no bandwidth") {
  ProgramBuilder b("negate", CostKind::kRoofline);
  const BufferId p = b.Parameter("p", 32), x = b.Parameter("x", 8), y = b.Result("y", 8);
  b.Add({.name = "negate", .reads = {x}, .writes = {y}, .flops = 2});
  b.Add({.name = "done"});
  const auto program = b.Build();
  const Hardware hardware = TestHardware(32);
  PlanBuilder plan(*program, hardware);
  plan.Prefetch(plan.Reside(p, 0, 0, 2), 0, 1);
  const Report report = Run(program, hardware, plan.plan);
  CHECK(report.latency_ps == 48);
  CHECK(report.compute_ps == 16);
  CHECK(report.stall_ps == 32);
  CHECK(report.stall_at_ps == std::vector<int64_t>{0, 32});
}

TEST_CASE("XLA's cases: a slice, a copy, and a copy under an addition") {
  ProgramBuilder b("add", CostKind::kRoofline);
  const BufferId x = b.Parameter("x", 256), y = b.Parameter("y", 256), z = b.Parameter("z", 512);
  const BufferId sum = b.Result("sum", 256);
  b.Add({.name = "add", .reads = {x, y}, .writes = {sum}, .flops = 64});
  b.Add({.name = "done"});
  const auto program = b.Build();
  const Hardware hardware = TestHardware(2048);
  PlanBuilder plan(*program, hardware);
  const ResidenceId in_x = plan.Reside(x, 0, 0, 1), in_y = plan.Reside(y, 256, 0, 1);
  plan.Prefetch(in_x, 0, 0);
  plan.Prefetch(in_y, 0, 0);
  plan.Prefetch(plan.Reside(z, 1024, 0, 2), 0, 1);
  plan.ServeAll(in_x);
  plan.ServeAll(in_y);
  plan.ServeAll(plan.Reside(sum, 512, 0, 2));
  const Report report = Run(program, hardware, plan.plan);
  CHECK(report.latency_ps == 1024);
  CHECK(report.stall_at_ps == std::vector<int64_t>{512, 128});
  CHECK(report.compute_ps == 384);
  CHECK(report.prefetched_bytes == 1024);
}

//   tick  0    1       x reads a (40) and writes o (20), 30 of compute; a copy of 25 hides behind
//         it
struct Hiding {
  Hiding() {
    hardware.fast_read_bytes_per_second = hardware.fast_write_bytes_per_second = 4'000'000'000'000;
    ProgramBuilder b("hiding", CostKind::kRoofline);
    a = b.Parameter("a", 40);
    p = b.Parameter("p", 25);
    o = b.Result("o", 20);
    b.Add({.name = "x", .reads = {a}, .writes = {o}, .flops = 30});
    b.Add({.name = "done"});
    program = b.Build();
  }
  Hardware hardware = TestHardware(128);
  BufferId a, p, o;
  std::shared_ptr<const Program> program;
};

TEST_CASE("a copy hides behind the time that an instruction leaves") {
  const Hiding h;
  PlanBuilder plan(*h.program, h.hardware);
  plan.Prefetch(plan.Reside(h.p, 0, 0, 2), 0, 1);
  const auto latency = [&] { return Run(h.program, h.hardware, plan.plan).latency_ps; };
  CHECK(latency() == 60 + 25);  // memory bound: nothing is left
  const ResidenceId a = plan.Reside(h.a, 25, 0, 1);
  plan.Preload(a, 0);
  plan.ServeAll(a);
  std::swap(plan.plan.copies[0], plan.plan.copies[1]);
  CHECK(latency() == 30 + 15);  // 10 of 25 done
  plan.ServeAll(plan.Reside(h.o, 65, 0, 2));
  CHECK(latency() == 30);
  const Report report = Run(h.program, h.hardware, plan.plan);
  CHECK(report.all_main_ps == 60);
  CHECK(report.latency_cold_ps == 40 + 30);  // the preload is waited for, ahead of the other copy
  CHECK(report.preloaded_bytes == 40);
  CHECK(report.prefetched_bytes == 25);
  CHECK(report.written_back_bytes == 0);
  CHECK(report.fast_bytes_at == std::vector<int64_t>{85, 45});
  CHECK(report.peak_fast_bytes == 85);

  // Both parameters preloaded: nothing is left to copy, and cold both are waited for.
  plan.plan.copies[1].preload = true;
  const Report both = Run(h.program, h.hardware, plan.plan);
  CHECK(both.latency_ps == 30);
  CHECK(both.latency_cold_ps == 40 + 30);
  CHECK(both.preloaded_bytes == 40 + 25);
  CHECK(both.prefetched_bytes == 0);
}

TEST_CASE("occupancy counts slices from their own copies on") {
  ProgramBuilder b;
  const BufferId p = b.Parameter("p", 10);
  for (int i = 0; i < 3; ++i) b.Add({.name = "work"});
  const auto program = b.Build();
  const Hardware hardware = TestHardware(16);
  PlanBuilder plan(*program, hardware);
  const ResidenceId r = plan.Reside(p, 0, 0, 3);
  plan.Slice(r, 0, 3, 0, 4);
  plan.Slice(r, 2, 3, 4, 10);
  const Report report = Run(program, hardware, plan.plan);
  CHECK(report.fast_bytes_at == std::vector<int64_t>{4, 4, 10});
  CHECK(report.peak_fast_bytes == 10);
  CHECK(report.stall_at_ps == std::vector<int64_t>{0, 0, 10});  // waited for at the program's end
}

TEST_CASE("loops: a copy over the whole loop is served in two trips' idle time") {
  const Looped l(5);
  PlanBuilder plan(*l.program, l.hardware);
  plan.Prefetch(plan.Reside(l.p, 0, 0, 8), 0, 7);
  const Report report = Run(l.program, l.hardware, plan.plan);
  CHECK(report.compute_ps == 5 * 12);
  CHECK(report.stall_ps == 10 - 2 * 2);
  CHECK(report.stall_at_ps[7] == 6);
  CHECK(report.prefetched_bytes == 10);
}

TEST_CASE("loops: no trip is not played") {
  ProgramBuilder b;
  const BufferId busy = b.Parameter("busy", 8), p = b.Parameter("p", 10);
  b.Add({.name = "first", .reads = {busy}, .cycles = {8}});
  b.BeginLoop("never", 0);
  b.BeginBody();
  b.Add({.name = "x"});
  b.EndLoop();
  b.Add({.name = "last", .reads = {p}, .cycles = {20, 4}});
  const auto program = b.Build();
  const Hardware hardware = TestHardware(64);
  PlanBuilder plan(*program, hardware);
  const ResidenceId r = plan.Reside(p, 0, 0, program->ticks());
  plan.Prefetch(r, 0, 1);
  plan.ServeAll(r);
  // first leaves nothing, so the copy of 10 stalls; last takes 4 with p in fast memory.
  const Report report = Run(program, hardware, plan.plan);
  CHECK(report.compute_ps == 8 + 4);
  CHECK(report.stall_ps == 10);
}

TEST_CASE("loops: one trip is played once") {
  const Looped l(1);
  PlanBuilder plan(*l.program, l.hardware);
  plan.Prefetch(plan.Reside(l.p, 0, 0, 8), 0, 7);
  CHECK(Run(l.program, l.hardware, plan.plan).latency_ps == 12 + 8);
}

TEST_CASE("loops: a copy of each trip stalls in each") {
  const Looped l(5);
  PlanBuilder plan(*l.program, l.hardware);
  const ResidenceId r = plan.Reside(l.p, 0, 4, 6);
  SECTION("within the body") {
    plan.Prefetch(r, 4, 5);
    const Report report = Run(l.program, l.hardware, plan.plan);
    CHECK(report.latency_ps == 5 * (8 + 4 + 8));
    CHECK(report.stall_at_ps[5] == 5 * 8);
    CHECK(report.prefetched_bytes == 50);
  }
  SECTION("up to the body's end") {
    plan.Prefetch(r, 4, 6);
    const Report report = Run(l.program, l.hardware, plan.plan);
    CHECK(report.latency_ps == 5 * (8 + 4 + 8));
    CHECK(report.stall_at_ps[6] == 5 * 8);
  }
}

TEST_CASE("loops: the first trip is not the steady state") {
  const Looped l(5);
  PlanBuilder plan(*l.program, l.hardware);
  // q is booked before the loop and is ahead of the first trip's copy of p: that trip waits 30 +
  // 10, each of the others 10.
  plan.Prefetch(plan.Reside(l.q, 16, 0, 8), 0, 7);
  plan.Prefetch(plan.Reside(l.p, 0, 3, 6), 3, 4);
  const Report report = Run(l.program, l.hardware, plan.plan);
  CHECK(report.stall_at_ps[4] == 40 + 4 * 10);
  CHECK(report.stall_at_ps[7] == 0);
  CHECK(report.latency_ps == 60 + 80);
}

// The inner loop runs 3 times in each of 4 outer trips. Its copy takes 10, of which its own work
// hides 4.
//   tick  0       | 1  | 2      | 3  | 4     5     | 6     | 7
//         entry   |    | entry  |    | work  use   | exit  | exit
TEST_CASE("loops: nested") {
  ProgramBuilder b;
  const BufferId p = b.Parameter("p", 10);
  b.BeginLoop("outer", 4);
  b.BeginBody();
  b.BeginLoop("inner", 3);
  b.BeginBody();
  b.Add({.name = "work", .cycles = {4}});
  b.Add({.name = "use"});
  b.EndLoop();
  b.EndLoop();
  const auto program = b.Build();
  const Hardware hardware = TestHardware(16);
  PlanBuilder plan(*program, hardware);
  plan.Prefetch(plan.Reside(p, 0, 4, 6), 4, 5);
  const Report report = Run(program, hardware, plan.plan);
  CHECK(report.compute_ps == 12 * 4);
  CHECK(report.stall_ps == 12 * 6);
  CHECK(report.prefetched_bytes == 120);
}

TEST_CASE("a plain copy that the plan takes over takes no time and leaves none") {
  ProgramBuilder b;
  const BufferId from = b.Parameter("from", 10), to = b.Result("to", 10);
  b.Add({.name = "work", .cycles = {6}});
  b.Add({.name = "copy",
         .reads = {from},
         .writes = {to},
         .cycles = {20, 20, 15, 15},
         .plain_copy = true});
  b.Add({.name = "look", .reads = {to}, .cycles = {10, 1}});
  const auto program = b.Build();
  const Hardware hardware = TestHardware(16);
  PlanBuilder plan(*program, hardware);
  const ResidenceId r = plan.Reside(to, 0, 0, 3);
  plan.Prefetch(r, 0, 2).replaces = 1;
  plan.ServeAll(r);
  const Report report = Run(program, hardware, plan.plan);
  CHECK(report.all_main_ps == 36);
  CHECK(report.compute_ps == 7);
  CHECK(report.stall_at_ps == std::vector<int64_t>{0, 0, 4});
  CHECK(report.exact_ps == 7);
}

TEST_CASE("copies are served in the plan's order, and a stall serves what is ahead") {
  ProgramBuilder b;
  const BufferId p = b.Parameter("p", 30), q = b.Parameter("q", 5);
  for (int i = 0; i < 3; ++i) b.Add({.name = "nothing"});
  const auto program = b.Build();
  const Hardware hardware = TestHardware(64);
  PlanBuilder plan(*program, hardware);
  plan.Prefetch(plan.Reside(p, 0, 0, 3), 0, 2);
  plan.Prefetch(plan.Reside(q, 32, 0, 3), 0, 1);
  CHECK(Run(program, hardware, plan.plan).stall_at_ps == std::vector<int64_t>{0, 35, 0});
  std::swap(plan.plan.copies[0], plan.plan.copies[1]);
  CHECK(Run(program, hardware, plan.plan).stall_at_ps == std::vector<int64_t>{0, 5, 30});
}

TEST_CASE("a plan that is not well formed, and totals beyond 64 bits, are refused") {
  const Looped l(5);
  const CostModel cost_model(l.program, l.hardware);
  Plan plan = AllMainPlan(*l.program, l.hardware);
  plan.served_by.clear();
  CHECK(Simulate(cost_model, plan).status().code() == absl::StatusCode::kInvalidArgument);

  ProgramBuilder b;
  b.BeginLoop("long", int64_t{1} << 40);
  b.BeginBody();
  b.Add({.name = "work", .cycles = {int64_t{1} << 30}});
  b.EndLoop();
  const auto program = b.Build();
  const auto report = Simulate(CostModel(program, l.hardware), AllMainPlan(*program, l.hardware));
  CHECK(report.status().code() == absl::StatusCode::kOutOfRange);
  CHECK_THAT(std::string(report.status().message()), Catch::Contains("exceeds"));
}

}  // namespace
}  // namespace mallocgame
