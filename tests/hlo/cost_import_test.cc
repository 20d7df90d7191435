// What BuildCost makes of small modules: bytes and flops by instruction (XLA reference 2.1).
#include "mallocgame/hlo/import/cost_import.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "mallocgame/hlo/import/import.h"
#include "mallocgame/program/cost_model.h"
#include "tests/catch.h"
#include "tests/hlo/imported_costs.h"
#include "tests/hlo/module_text.h"

namespace mallocgame::hlo {
namespace {

using hlo_test::Accessed;
using hlo_test::CostOf;
using hlo_test::Dims;
using hlo_test::ImportPriced;
using hlo_test::ModuleText;
using hlo_test::MustImport;
using hlo_test::TickOf;
using hlo_test::TotalPs;
using hlo_test::UnitHardware;

// Adds a computation that applies `opcode` to two scalars.
void Scalars(ModuleText& m, const std::string& name, const std::string& opcode) {
  m.Computation(name, /*fused=*/true);
  m.Add(name + ".a = f32[] parameter()");
  m.Add(name + ".b = f32[] parameter()");
  m.Add(absl::StrCat(name, ".c = f32[] ", opcode, "(", name, ".a, ", name, ".b)"));
}

// T1 is a while over (s32[]) that counts from 0 by 1 while 42 > count. `around` puts it into the
// body of another loop of 27 trips, which is T2.
ModuleText CountingLoops(bool around) {
  ModuleText m;
  const auto literal = [](const std::string& value) {
    return "literal { shape { element_type: S32 } s32s: " + value + " }";
  };
  const auto loop = [&](const std::string& p, const std::string& limit, bool with_inner) {
    m.Computation(p + "body");
    m.Add(p + "bp = (s32[]) parameter()");
    m.Add(absl::StrCat(p, "bi = s32[] get-tuple-element(", p, "bp)"), "tuple_index: 0");
    if (with_inner) {
      m.Add("inner.zero = s32[] constant()", literal("0"));
      m.Add("inner.init = (s32[]) tuple(inner.zero)");
      m.Add("inner.while = (s32[]) while(inner.init)", "", {"inner.body", "inner.condition"});
    }
    m.Add(p + "one = s32[] constant()", literal("1"));
    m.Add(absl::StrCat(p, "add = s32[] add(", p, "bi, ", p, "one)"));
    m.Add(absl::StrCat(p, "out = (s32[]) tuple(", p, "add)"));
    m.Computation(p + "condition");
    m.Add(p + "cp = (s32[]) parameter()");
    m.Add(absl::StrCat(p, "ci = s32[] get-tuple-element(", p, "cp)"), "tuple_index: 0");
    m.Add(p + "limit = s32[] constant()", literal(limit));
    m.Add(absl::StrCat(p, "compare = pred[] compare(", p, "limit, ", p, "ci)"),
          "comparison_direction: 'GT'");
  };
  loop("inner.", "42", false);
  if (around) loop("outer.", "27", true);
  const std::string last = around ? "outer." : "inner.";
  m.Computation("entry");
  m.Add("zero = s32[] constant()", literal("0"));
  m.Add("init = (s32[]) tuple(zero)");
  m.Add("loop = (s32[]) while(init)", "", {last + "body", last + "condition"});
  return m;
}

TEST_CASE("XLA's conformance cases T1 and T2: loops cost what their instructions cost") {
  const Imported t1 = MustImport(CountingLoops(false));
  const CostModel model(t1.program, UnitHardware());
  CHECK(model.PriceOf(TickOf(*t1.program, "inner.add"), 0).time_ps == 12);
  CHECK(model.PriceOf(TickOf(*t1.program, "inner.compare"), 0).time_ps == 9);
  CHECK(model.PriceOf(TickOf(*t1.program, "inner.out"), 0).time_ps == 8);
  CHECK(TotalPs(*t1.program) == 1226);
  CHECK(TotalPs(*MustImport(CountingLoops(true)).program) == 33893);
}

TEST_CASE("Bytes accessed by instructions that touch a part of their arrays") {
  ModuleText m;
  Scalars(m, "sum", "add");
  m.Computation("entry");
  m.Add("table = f32[1000,16] parameter()");
  m.Add("i = s32[] parameter()");
  m.Add("j = s32[] parameter()");
  m.Add("rows = s32[5] parameter()");
  m.Add("update = f32[2,16] parameter()");
  m.Add("updates = f32[5,16] parameter()");
  m.Add("slice = f32[3,16] slice(table)",
        "slice_dimensions { start: 0 limit: 3 stride: 1 } slice_dimensions { start: 0 limit: 16 "
        "stride: 1 }");
  m.Add("dynamic_slice = f32[2,16] dynamic-slice(table, i, j)", "dynamic_slice_sizes: [2, 16]");
  m.Add("gather = f32[5,16] gather(table, rows)",
        "gather_slice_sizes: [1, 16] gather_dimension_numbers { offset_dims: 1 }");
  m.Add("copy = f32[1000,16] copy(table)");
  m.Add("dus = f32[1000,16] dynamic-update-slice(copy, update, i, j)");
  m.Add("scatter = f32[1000,16] scatter(dus, rows, updates)",
        "scatter_dimension_numbers { update_window_dims: 1 inserted_window_dims: 0 }", {"sum"});
  m.Add(
      "tuple = (f32[3,16], f32[2,16], f32[5,16], f32[1000,16]) tuple(slice, dynamic_slice, gather, "
      "scatter)");
  const Imported imported = MustImport(m);
  const Program& program = *imported.program;
  CHECK(program.cost().kind == CostKind::kRoofline);
  CHECK(Accessed(CostOf(program, "slice").operands) == Dims{192});
  CHECK(Accessed(CostOf(program, "slice").outputs) == Dims{192});
  CHECK(CostOf(program, "slice").operands[0].size_bytes == 64000);
  CHECK(Accessed(CostOf(program, "dynamic_slice").operands) == Dims{128, 4, 4});
  CHECK(Accessed(CostOf(program, "dynamic_slice").outputs) == Dims{128});
  CHECK(Accessed(CostOf(program, "gather").operands) == Dims{320, 20});
  CHECK(Accessed(CostOf(program, "copy").operands) == Dims{64000});
  CHECK(Accessed(CostOf(program, "copy").outputs) == Dims{64000});
  CHECK(CostOf(program, "copy").flops == 0);
  CHECK(Accessed(CostOf(program, "dus").operands) == Dims{0, 128, 4, 4});
  CHECK(Accessed(CostOf(program, "dus").outputs) == Dims{128});
  CHECK(Accessed(CostOf(program, "scatter").operands) == Dims{320, 20, 320});
  CHECK(Accessed(CostOf(program, "scatter").outputs) == Dims{320});
  CHECK(CostOf(program, "scatter").flops == 80);
  CHECK(Accessed(CostOf(program, "tuple").outputs) == Dims{32});
  CHECK(CostOf(program, "table") == InstructionCost{});
}

TEST_CASE("Flops of dots, convolutions, reductions and elementwise instructions") {
  ModuleText m;
  Scalars(m, "sum", "add");
  m.Computation("entry");
  m.Add("a = f32[8,32] parameter()");
  m.Add("b = f32[32,4] parameter()");
  m.Add("image = f32[2,10,10,3] parameter()");
  m.Add("kernel = f32[3,3,3,7] parameter()");
  m.Add("dot = f32[8,4] dot(a, b)",
        "dot_dimension_numbers { lhs_contracting_dimensions: 1 rhs_contracting_dimensions: 0 }");
  const std::string labels =
      "convolution_dimension_numbers { input_batch_dimension: 0 input_spatial_dimensions: [1, 2] "
      "input_feature_dimension: 3 "
      "kernel_spatial_dimensions: [0, 1] kernel_input_feature_dimension: 2 "
      "kernel_output_feature_dimension: 3 "
      "output_batch_dimension: 0 output_spatial_dimensions: [1, 2] output_feature_dimension: 3 } "
      "feature_group_count: 1 "
      "batch_group_count: 1 ";
  const auto window = [](const std::string& d) {
    return absl::StrCat("window { dimensions { ", d, " } dimensions { ", d, " } }");
  };
  m.Add("valid = f32[2,8,8,7] convolution(image, kernel)",
        labels + window("size: 3 stride: 1 window_dilation: 1 base_dilation: 1"));
  m.Add("same = f32[2,10,10,7] convolution(image, kernel)",
        labels + window("size: 3 stride: 1 padding_low: 1 padding_high: 1 window_dilation: 1 "
                        "base_dilation: 1"));
  m.Add("strided = f32[2,5,5,7] convolution(image, kernel)",
        labels + window("size: 3 stride: 2 padding_low: 1 window_dilation: 1 base_dilation: 1"));
  m.Add("holes = f32[2,19,19,7] convolution(image, kernel)",
        labels + window("size: 3 stride: 1 padding_low: 1 padding_high: 1 window_dilation: 1 "
                        "base_dilation: 2"));
  m.Add("zero = f32[] constant()");
  m.Add("reduce = f32[8] reduce(a, zero)", "dimensions: 1", {"sum"});
  m.Add("tanh = f32[8,32] tanh(a)");
  m.Add("negate = f32[8,32] negate(tanh)");
  m.Add("broadcast = f32[8,32] broadcast(zero)");
  m.Add("sort = f32[8,32] sort(a)", "dimensions: 1", {"sum"});
  m.Add("root = (f32[8]) tuple(reduce)");
  const Imported imported = MustImport(m);
  const auto flops = [&](const std::string& name) { return CostOf(*imported.program, name).flops; };
  CHECK(flops("dot") == 2 * 8 * 4 * 32);
  CHECK(flops("valid") == 2 * 2 * 3 * 7 * (3 * 8) * (3 * 8));
  CHECK(flops("same") == 2 * 2 * 3 * 7 * 28 * 28);     // 30 positions, less one at each border
  CHECK(flops("strided") == 2 * 2 * 3 * 7 * 14 * 14);  // 15 less one
  // The kernel positions hit 9 + 10 + 9 values, and no holes.
  CHECK(flops("holes") == 2 * 2 * 3 * 7 * 28 * 28);
  CHECK(flops("reduce") == 8 * 31);
  CHECK(flops("negate") == 256);
  CHECK(flops("tanh") == 0);
  CHECK(CostOf(*imported.program, "tanh").transcendentals == 256);
  CHECK(flops("broadcast") == 0);
  CHECK(flops("sort") == 256 * 8);
}

TEST_CASE("A fusion reads and writes what its instructions do, nested ones and bitcasts included") {
  ModuleText m;
  m.Computation("inner", true);
  m.Add("inner.p = f32[1000,16] parameter()");
  m.Add("inner.slice = f32[2,16] slice(inner.p)");
  m.Add("inner.exp = f32[2,16] exponential(inner.slice)");
  m.Computation("fused", true);
  m.Add("f.cache = f32[1000,16] parameter()");
  m.Add("f.table = f32[1000,16] parameter()");
  m.Add("f.i = s32[] parameter()");
  m.Add("f.scale = f32[16] parameter()");
  m.Add("f.unused = f32[500] parameter()");
  m.Add("f.nested = f32[2,16] fusion(f.table)", "fusion_kind: 'kLoop'", {"inner"});
  m.Add("f.broadcast = f32[2,16] broadcast(f.scale)", "dimensions: 1");
  m.Add("f.square = f32[16] multiply(f.scale, f.scale)");
  m.Add("f.sum = f32[2,16] add(f.nested, f.broadcast)");
  m.Add("f.view = f32[1000,16] bitcast(f.cache)");
  m.Add("f.dus = f32[1000,16] dynamic-update-slice(f.view, f.sum, f.i, f.i)");
  m.Add("f.back = f32[1000,16] bitcast(f.dus)");
  m.Add("f.root = (f32[1000,16], f32[16]) tuple(f.back, f.square)");
  m.Computation("entry");
  m.Add("cache = f32[1000,16] parameter()");
  m.Add("table = f32[1000,16] parameter()");
  m.Add("i = s32[] parameter()");
  m.Add("scale = f32[16] parameter()");
  m.Add("unused = f32[500] parameter()");
  m.Add("mine = f32[1000,16] copy(cache)");
  m.Add("fusion = (f32[1000,16], f32[16]) fusion(mine, table, i, scale, unused)",
        "fusion_kind: 'kLoop'", {"fused"});
  const Imported imported = MustImport(m);
  const InstructionCost& cost = CostOf(*imported.program, "fusion");
  // scale is read once by the broadcast, and once by the rest.
  CHECK(Accessed(cost.operands) == Dims{0, 128, 4, 128, 0});
  CHECK(Accessed(cost.outputs) == Dims{128, 64});
  CHECK(cost.flops == 16 + 32);
  CHECK(cost.transcendentals == 32);
}

TEST_CASE(
    "A fusion that ends in an update in place, under a bitcast or not, writes the update only") {
  ModuleText m;
  m.Computation("fused", true);
  m.Add("f.cache = f32[100] parameter()");
  m.Add("f.update = f32[10] parameter()");
  m.Add("f.i = s32[] parameter()");
  m.Add("f.dus = f32[100] dynamic-update-slice(f.cache, f.update, f.i)");
  m.Add("f.root = f32[10,10] bitcast(f.dus)");
  m.Computation("entry");
  m.Add("p = f32[100] parameter()");
  m.Add("update = f32[10] parameter()");
  m.Add("i = s32[] parameter()");
  m.Add("cache = f32[100] copy(p)");
  m.Add("fusion = f32[10,10] fusion(cache, update, i)", "fusion_kind: 'kLoop'", {"fused"});
  const InstructionCost roofline = CostOf(*MustImport(m).program, "fusion");
  CHECK(Accessed(roofline.operands) == Dims{0, 40, 4});
  CHECK(Accessed(roofline.outputs) == Dims{40});
  CHECK(CostOf(*MustImport(m, {}, R"({"cache": [["0", "0", 9]]})").program, "fusion")
            .unpriced_bytes == 40);
}

TEST_CASE(
    "A custom call moves its arrays whole and computes nothing; storage set aside costs nothing") {
  ModuleText m;
  m.Computation("entry");
  m.Add("p = f32[100] parameter()");
  m.Add("storage = f32[100] custom-call()", "custom_call_target: 'AllocateBuffer'");
  m.Add("call = f32[50] custom-call(p, storage)", "custom_call_target: 'Mystery'");
  const Imported imported = MustImport(m);
  CHECK(Accessed(CostOf(*imported.program, "call").operands) == Dims{400, 400});
  CHECK(Accessed(CostOf(*imported.program, "call").outputs) == Dims{200});
  CHECK(CostOf(*imported.program, "call").flops == 0);
  CHECK(CostOf(*imported.program, "storage") == InstructionCost{});
}

TEST_CASE("Absurd dimensions end at the largest amount of work, quickly") {
  ModuleText m;
  m.Computation("entry");
  m.Add("image = f32[1,1073741824,1,1] parameter()");
  m.Add("kernel = f32[1073741824,1,1,1] parameter()");
  m.Add("conv = f32[1,1073741824,1,1] convolution(image, kernel)",
        "convolution_dimension_numbers { input_spatial_dimensions: 1 kernel_spatial_dimensions: 0 "
        "output_spatial_dimensions: 1 input_feature_dimension: 99 output_feature_dimension: -5 } "
        "window { dimensions { size: -3 stride: -9223372036854775808 padding_low: "
        "9223372036854775807 "
        "base_dilation: 9223372036854775807 } }");
  const absl::StatusOr<Imported> imported = ImportPriced(m);
  REQUIRE(imported.ok());
  CHECK(CostOf(*imported->program, "conv").flops == int64_t{1} << 60);
}

}  // namespace
}  // namespace mallocgame::hlo
