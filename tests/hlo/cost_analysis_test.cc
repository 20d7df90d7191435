// Bytes and operations of instructions. Arrays of f32[n] have 4 n bytes.
#include "mallocgame/hlo/cost_analysis.h"

#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/hlo/module_text.h"

namespace mallocgame::hlo {
namespace {

using hlo_test::ModuleText;
using Bytes = std::vector<int64_t>;

Work WorkOf(const ModuleText& text, const std::string& name) {
  const auto module = hlo_test::Parse(text);
  return CostAnalysis(*module).Of(hlo_test::Named(*module, name));
}
int64_t MovedBytes(const ModuleText& text, const std::string& name) {
  const auto module = hlo_test::Parse(text);
  return CostAnalysis(*module).MovedBytes(hlo_test::Named(*module, name));
}

ModuleText Inputs() {
  ModuleText m;
  m.Computation("main")
      .Add("p = f32[100] parameter()")
      .Add("q = f32[100] parameter()")
      .Add("u = f32[10] parameter()")
      .Add("i = s32[] parameter()");
  return m;
}

TEST_CASE("an instruction reads its operands and writes its result") {
  ModuleText m = Inputs();
  m.Add("sum = f32[100] add(p, q)").Add("pair = (f32[100], f32[10]) tuple(sum, u)");
  CHECK(WorkOf(m, "sum").read == Bytes{400, 400});
  CHECK(WorkOf(m, "sum").written == Bytes{400});
  CHECK(WorkOf(m, "sum").operations.flops == 100);
  CHECK(WorkOf(m, "pair").read == Bytes{0, 0});
}

TEST_CASE("slices and updates touch a part of their first operand") {
  ModuleText m = Inputs();
  m.Add("part = f32[7] dynamic-slice(p, i)").Add("put = f32[100] dynamic-update-slice(p, u, i)");
  CHECK(WorkOf(m, "part").read == Bytes{28, 4});
  CHECK(WorkOf(m, "part").written == Bytes{28});
  CHECK(WorkOf(m, "put").read == Bytes{0, 40, 4});
  CHECK(WorkOf(m, "put").written == Bytes{40});
  CHECK(MovedBytes(m, "put") == 40);
  CHECK(MovedBytes(m, "part") == 28);
}

TEST_CASE("a fusion reads of each parameter what its instructions read of it") {
  ModuleText m;
  m.Computation("fused", true)
      .Add("fp = f32[100] parameter()")
      .Add("fq = f32[100] parameter()")
      .Add("fu = f32[10] parameter()")
      .Add("fi = s32[] parameter()")
      .Add("head = f32[3] slice(fp)")
      .Add("tail = f32[5] slice(fp)")
      .Add("wide = f32[10,10] broadcast(fu)")
      .Add("log = f32[10] log(fu)")
      .Add("put = f32[100] dynamic-update-slice(fq, fu, fi)")
      .Add("r = (f32[100], f32[3]) tuple(put, head)");
  m.Computation("main")
      .Add("p = f32[100] parameter()")
      .Add("q = f32[100] parameter()")
      .Add("u = f32[10] parameter()")
      .Add("i = s32[] parameter()")
      .Add("f = (f32[100], f32[3]) fusion(p, q, u, i)", "", {"fused"});
  const Work work = WorkOf(m, "f");
  // p: two slices. q: only written to. u: whole for the log and the update together, and once more
  // for the broadcast.
  CHECK(work.read == Bytes{4 * (3 + 5), 0, 40 + 40, 4});
  CHECK(work.written == Bytes{40, 12});
  CHECK(work.operations.transcendentals == 10);
  CHECK(MovedBytes(m, "f") == 52);
}

TEST_CASE("a reduction runs its computation, whose work is added") {
  ModuleText m;
  m.Computation("distance", true)
      .Add("a = f32[] parameter()")
      .Add("b = f32[] parameter()")
      .Add("d = f32[] subtract(a, b)")
      .Add("e = f32[] exponential(d)");
  m.Computation("main")
      .Add("p = f32[100] parameter()")
      .Add("zero = f32[] constant()")
      .Add("r = f32[] reduce(p, zero)", "dimensions: 0", {"distance"});
  // 99 runs, each with one flop and one transcendental operation.
  CHECK(WorkOf(m, "r").operations.flops == 99);
  CHECK(WorkOf(m, "r").operations.transcendentals == 99);
}

TEST_CASE("a call itself does nothing: what it runs is on the time axis") {
  ModuleText m;
  m.Computation("callee").Add("a = f32[100] parameter()").Add("b = f32[100] negate(a)");
  m.Computation("main").Add("p = f32[100] parameter()").Add("c = f32[100] call(p)", "", {"callee"});
  const Work work = WorkOf(m, "c");
  CHECK(work.read == Bytes{0});
  CHECK(work.written == Bytes{0});
  CHECK(work.operations.flops == 0);
}

TEST_CASE("an instruction moves at most what its arrays hold") {
  ModuleText m = Inputs();
  // An update that is larger than what it updates is no valid HLO, but must not cost more.
  m.Add("put = f32[5] dynamic-update-slice(p, q, i)");
  CHECK(WorkOf(m, "put").written == Bytes{400});
  CHECK(MovedBytes(m, "put") == 20);
}

}  // namespace
}  // namespace mallocgame::hlo
