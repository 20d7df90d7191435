// What buffers are worth to XLA's allocator.
#include "mallocgame/solvers/xla/cost.h"

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "mallocgame/hardware/hardware.h"
#include "tests/catch.h"
#include "tests/support/programs.h"

namespace mallocgame {
namespace {

using testing::Op;
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
    return 1e12 * static_cast<double>(XlaCost(*b.Build(), hardware).Boundedness(a));  // in ps
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
  const XlaCost cost(*program, hardware);
  CHECK(cost.SavedPs(program->accesses_of(state)[0]) == 30);
  CHECK(1e12 * static_cast<double>(cost.Boundedness(state)) == Approx(1.5));
}

// A kernel that reads 400 bytes of 600 by its estimate, and writes 100 of each of its outputs.
std::shared_ptr<const Program> KernelProgram(int outputs, int64_t flops) {
  ProgramBuilder b("kernel");
  Op op = {.name = "kernel", .reads = {b.Parameter("in", 400)}, .flops = flops};
  for (int k = 0; k < outputs; ++k) op.writes.push_back(b.Result(absl::StrCat("out", k), 100));
  const Tick tick = b.Add(op);
  ProgramData data = b.Data();
  InstructionCost& cost = data.cost.instructions[tick];
  cost.kernel = true;
  cost.pool = -1;
  cost.operands[0].accessed_bytes = 600;
  return *Program::Create(std::move(data));
}

TEST_CASE("cost: an array of a kernel counts once, its time by the estimate or by its arrays") {
  const Hardware hardware = TestHardware(1000);
  const auto one = KernelProgram(1, 50), two = KernelProgram(2, 50), unknown = KernelProgram(1, 0);
  CHECK(XlaCost(*one, hardware).elapsed_ps()[0] == 700);
  CHECK(XlaCost(*one, hardware).SavedPs(AccessId(0)) == 200);
  CHECK(XlaCost(*one, hardware).AccessedBytes(AccessId(0)) == 400);
  // Without an estimate it takes a cycle, and saves nothing.
  CHECK(XlaCost(*unknown, hardware).elapsed_ps()[0] == 1);
  CHECK(XlaCost(*unknown, hardware).Boundedness(BufferId(0)) == 0);
  XlaOptions arrays;
  arrays.kernels_move_arrays = true;
  CHECK(XlaCost(*one, hardware, arrays).elapsed_ps()[0] == 500);
  CHECK(XlaCost(*unknown, hardware, arrays).elapsed_ps()[0] == 500);
  CHECK(XlaCost(*two, hardware, arrays).elapsed_ps()[0] ==
        400);  // The arrays of a tuple don't count.
}

TEST_CASE("cost: all that runs takes a cycle at least, but parameters, calls and loops take none") {
  ProgramBuilder b("floor", CostKind::kRoofline);
  b.Add({.name = "nothing"});
  b.BeginLoop("while", 3);
  b.BeginBody();
  b.Add({.name = "inside"});
  b.EndLoop();
  const auto program = b.Build();
  const XlaCost cost(*program, TestHardware(1000));
  for (Tick t = 0; t < program->ticks(); ++t) {
    CHECK(cost.elapsed_ps()[t] ==
          (program->instruction(t).kind == InstructionKind::kOrdinary ? 1 : 0));
  }
}

TEST_CASE("cost: what is bound by compute counts against a result, not against a parameter") {
  const Hardware hardware = TestHardware(1000);
  ProgramBuilder b("compute", CostKind::kRoofline);
  const BufferId in = b.Parameter("in", 16), made = b.Result("made", 16);
  b.Add({.name = "make", .reads = {in}, .writes = {made}, .flops = 100'000});
  b.Add({.name = "use", .reads = {made}, .flops = 100'000});
  const auto program = b.Build();
  const XlaCost cost(*program, hardware);
  CHECK(cost.Boundedness(in) == 0);
  CHECK(cost.Boundedness(made) < 0);
}

}  // namespace
}  // namespace mallocgame
