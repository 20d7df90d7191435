// Bytes and operations of instructions. Arrays of f32[n] have 4 n bytes.
#include "mallocgame/hlo/cost/cost_analysis.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
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

TEST_CASE("a solver reads a triangle of its matrix, and a transpose may move nothing") {
  ModuleText m;
  m.Computation("main")
      .Add("a = f32[6,6] parameter()")
      .Add("b = f32[6,5] parameter()")
      .Add("root = f32[6,6] cholesky(a)")
      .Add("x = f32[6,5] triangular-solve(a, b)")
      .Add("turned = f32[5,6] transpose(b)", "dimensions: [1, 0]")
      .Add("renamed = f32[5,6]{0,1} transpose(b)", "dimensions: [1, 0]");
  CHECK(WorkOf(m, "root").read == Bytes{72});
  CHECK(WorkOf(m, "root").written == Bytes{72});
  CHECK(WorkOf(m, "x").read == Bytes{72, 120});
  CHECK(WorkOf(m, "x").written == Bytes{120});
  CHECK(WorkOf(m, "turned").written == Bytes{120});
  // b is stored by rows, and `renamed` by columns, which are the same bytes in the same order.
  CHECK(WorkOf(m, "renamed").read == Bytes{0});
  CHECK(WorkOf(m, "renamed").written == Bytes{0});
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

TEST_CASE("a gather and a scatter move whole tiles, a reshape that pads counts what it writes") {
  ModuleText m;
  m.Computation("main");
  m.Add("table = f32[1000,256]{1,0:T(8,128)} parameter()");
  m.Add("rows = s32[5] parameter()");
  m.Add("gather = f32[5,256]{1,0:T(8,128)} gather(table, rows)",
        "gather_slice_sizes: [1, 256] gather_dimension_numbers { offset_dims: 1 }");
  m.Add("places = s32[16,2]{1,0:T(8,128)} parameter()");
  m.Add("elements = f32[16]{0:T(128)} gather(table, places)", "gather_slice_sizes: [1, 1]");
  m.Add("updates = f32[5,256]{1,0:T(8,128)} parameter()");
  m.Add("mine = f32[1000,256]{1,0:T(8,128)} copy(table)");
  m.Add("scatter = f32[1000,256]{1,0:T(8,128)} scatter(mine, rows, updates)",
        "scatter_dimension_numbers { update_window_dims: 1 inserted_window_dims: 0 }");
  m.Add("column = s32[5,1]{1,0:T(8,128)} reshape(rows)");
  m.Add("flat = s32[5] reshape(column)");
  m.Add(
      "out = (f32[5,256]{1,0:T(8,128)}, s32[5], f32[16]{0:T(128)}, "
      "f32[1000,256]{1,0:T(8,128)}) tuple(gather, flat, elements, scatter)");
  // Each row lies in tiles with seven others, and with the padding eight rows are gathered.
  constexpr int64_t kRows = int64_t{8} * 8 * 256 * 4, kTile = int64_t{8} * 128 * 4;
  CHECK(WorkOf(m, "gather").read == Bytes{kRows, 20});
  CHECK(WorkOf(m, "elements").read == Bytes{128 * kTile, 2 * kTile});
  CHECK(WorkOf(m, "scatter").read == Bytes{kRows, 20, 2 * kTile});
  CHECK(WorkOf(m, "scatter").written == Bytes{kRows});
  CHECK(MovedBytes(m, "scatter") == 2 * kTile);  // the updates
  CHECK(WorkOf(m, "column").read == Bytes{kTile});
  CHECK(WorkOf(m, "flat").read == Bytes{kTile});
}

TEST_CASE("a custom fusion at the root of another reads and writes what it does by itself") {
  for (const char* const kind : {"kCustom", "kLoop"}) {
    ModuleText m;
    m.Computation("inner", true);
    m.Add("i.p = f32[100] parameter()");
    m.Add("i.update = f32[10] parameter()");
    m.Add("i.at = s32[] parameter()");
    m.Add("i.dus = f32[100] dynamic-update-slice(i.p, i.update, i.at)");
    m.Computation("outer", true);
    m.Add("o.p = f32[100] parameter()");
    m.Add("o.update = f32[10] parameter()");
    m.Add("o.at = s32[] parameter()");
    m.Add("o.root = f32[100] fusion(o.p, o.update, o.at)",
          absl::StrCat("fusion_kind: '", kind, "'"), {"inner"});
    m.Computation("main");
    m.Add("p = f32[100] parameter()");
    m.Add("update = f32[10] parameter()");
    m.Add("at = s32[] parameter()");
    m.Add("mine = f32[100] copy(p)");
    m.Add("fusion = f32[100] fusion(mine, update, at)", "fusion_kind: 'kCustom'", {"outer"});
    CHECK(WorkOf(m, "fusion").read == Bytes{0, 40, 4});
    CHECK(WorkOf(m, "fusion").written == Bytes{40});
    CHECK(MovedBytes(m, "fusion") == 40);
  }
}

TEST_CASE("without a price a scatter to few places reads all of its updates") {
  ModuleText m;
  m.Computation("main")
      .Add("p = f32[100] parameter()")
      .Add("at = s32[10000] parameter()")
      .Add("updates = f32[10000] parameter()")
      .Add("mine = f32[100] copy(p)")
      .Add("s = f32[100] scatter(mine, at, updates)");
  CHECK(MovedBytes(m, "s") == (40000 + 40000 + 400) / 2);
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
