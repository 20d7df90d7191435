// What buffers are worth to XLA's allocator.
#include "mallocgame/solvers/xla/cost.h"

#include <cstdint>

#include "mallocgame/hardware/hardware.h"
#include "tests/catch.h"
#include "tests/support/programs.h"

namespace mallocgame {
namespace {

using testing::ProgramBuilder;
using testing::TestHardware;

TEST_CASE("cost: the reference's example of memory boundedness") {
  Hardware hardware = TestHardware(1000);
  hardware.main_bytes_per_second = 10'000'000'000'000;  // 10 bytes a ps
  hardware.fast_read_bytes_per_second = hardware.fast_write_bytes_per_second = 40'000'000'000'000;
  const auto boundedness = [&hardware](int64_t flops, bool in_loop) {
    ProgramBuilder b("bound", CostKind::kRoofline);
    const BufferId in = b.Parameter("in", 200), a = b.Result("a", 400), out = b.Result("out", 200);
    b.Add({.name = "P", .reads = {in}, .writes = {a}, .flops = 10});
    if (in_loop) b.BeginLoop("while", 3);
    if (in_loop) b.BeginBody();
    b.Add({.name = "X", .reads = {a}, .writes = {out}, .flops = flops});
    if (in_loop) b.EndLoop();
    return 1e12 * static_cast<double>(XlaCost(*b.Build(), hardware, 5).Boundedness(a));  // in ps
  };
  CHECK(boundedness(30, false) == Approx(3.0));
  CHECK(boundedness(70, false) == Approx(1.5));
  CHECK(boundedness(30, true) == Approx(9.0));
}

TEST_CASE("cost: an update counts what it reads, for its result is another value") {
  Hardware hardware = TestHardware(1000);
  hardware.main_bytes_per_second = 10'000'000'000'000;
  hardware.fast_read_bytes_per_second = hardware.fast_write_bytes_per_second = 40'000'000'000'000;
  ProgramBuilder b("update", CostKind::kRoofline);
  const BufferId state = b.Parameter("state", 400);
  b.Add({.name = "step", .updates = {state}});
  const auto program = b.Build();
  const XlaCost cost(*program, hardware, 5);
  CHECK(cost.SavedPs(program->accesses_of(state)[0]) == 30);
  CHECK(1e12 * static_cast<double>(cost.Boundedness(state)) == Approx(1.5));
}

TEST_CASE("cost: what is bound by compute counts against a result, not against a parameter") {
  const Hardware hardware = TestHardware(1000);
  ProgramBuilder b("compute", CostKind::kRoofline);
  const BufferId in = b.Parameter("in", 16), made = b.Result("made", 16);
  b.Add({.name = "make", .reads = {in}, .writes = {made}, .flops = 100'000});
  b.Add({.name = "use", .reads = {made}, .flops = 100'000});
  const auto program = b.Build();
  const XlaCost cost(*program, hardware, 5);
  CHECK(cost.Boundedness(in) == 0);
  CHECK(cost.Boundedness(made) < 0);
}

}  // namespace
}  // namespace mallocgame
