// What BuildCost makes of small modules: bytes and flops by instruction (XLA reference 2.1), the
// compiler's prices pooled by structure, and the refusal of prices that are malformed or of another
// program.
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
#include "tests/hlo/module_text.h"

namespace mallocgame::hlo {
namespace {

using hlo_test::ModuleText;
using hlo_test::UnitHardware;

using Dims = std::vector<int64_t>;

absl::StatusOr<Imported> Import(const ModuleText& module,
                                const std::vector<std::string>& priced = {},
                                const std::string& profile = "") {
  const std::string bytes = module.Bytes();
  ImportInput input;
  input.module = bytes;
  input.priced.assign(priced.begin(), priced.end());
  input.profile = profile;
  return ImportHlo(input, UnitHardware());
}

Imported MustImport(const ModuleText& module, const std::vector<std::string>& priced = {},
                    const std::string& profile = "") {
  absl::StatusOr<Imported> imported = Import(module, priced, profile);
  INFO(imported.status());
  REQUIRE(imported.ok());
  return *std::move(imported);
}

Tick TickOf(const Program& program, const std::string& name) {
  for (Tick tick = 0; tick < program.ticks(); ++tick) {
    if (program.instruction(tick).name == name &&
        program.instruction(tick).kind != InstructionKind::kLoopEntry)
      return tick;
  }
  FAIL("no instruction " << name);
  return 0;
}
const InstructionCost& CostOf(const Program& program, const std::string& name) {
  return program.cost().instructions[TickOf(program, name)];
}
Dims Accessed(const std::vector<CostArray>& arrays) {
  Dims bytes;
  for (const CostArray& array : arrays) bytes.push_back(array.accessed_bytes);
  return bytes;
}
int64_t TotalPs(const Program& program) {
  const CostModel model(std::shared_ptr<const Program>(&program, [](const Program*) {}),
                        UnitHardware());
  int64_t total = 0;
  for (Tick tick = 0; tick < program.ticks(); ++tick)
    total += model.PriceOf(tick, 0).time_ps * program.trips(tick);
  return total;
}

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

// Two layers of the same structure under different names, and one of another shape.
ModuleText Layers(const std::string& x = "f32[64,64]", const std::string& out = "f32[64,64]") {
  ModuleText m;
  const auto body = [&](const std::string& layer, const std::string& from, const std::string& to) {
    m.Computation("fused" + layer, /*fused=*/true);
    m.Add(absl::StrCat("f", layer, " = ", from, " parameter()"));
    m.Add(absl::StrCat("t", layer, " = ", to, " tanh(f", layer, ")"));
  };
  body("1", x, out);
  body("2", x, out);
  body("3", "f32[64,32]", "f32[64,32]");
  m.Computation("entry");
  m.Add(absl::StrCat("x = ", x, " parameter()"));
  m.Add("y = f32[64,32] parameter()");
  m.Add(absl::StrCat("layer1 = ", out, " fusion(x)"), "fusion_kind: 'kLoop'", {"fused1"});
  m.Add("layer2 = f32[64,64] fusion(layer1)", "fusion_kind: 'kLoop'", {"fused2"});
  m.Add("layer3 = f32[64,32] fusion(y)", "fusion_kind: 'kLoop'", {"fused3"});
  m.Add("root = (f32[64,64], f32[64,32]) tuple(layer2, layer3)");
  return m;
}
void SetCycles(ModuleText& m, const std::string& name, int64_t cycles) {
  m.at(name).set_backend_config(
      absl::StrCat(R"({"flags":[],"window_config":{"estimated_cycles":")", cycles, R"(","x":1}})"));
}

TEST_CASE("Prices of modules after code generation are pooled over equal structures") {
  const std::string fast = "f32[64,64]{1,0:S(1)}";
  ModuleText off = Layers(), on = Layers(fast, fast);
  SetCycles(off, "layer1", 100'000);
  SetCycles(off, "layer2", 100'000);
  SetCycles(on, "layer1", 40'000);
  SetCycles(on, "layer2", 60'000);
  const Imported imported = MustImport(Layers(), {off.Bytes(), on.Bytes()});
  const Program& program = *imported.program;
  REQUIRE(program.cost().kind == CostKind::kProfile);
  REQUIRE(program.cost().pools.size() == 1);
  CHECK(CostOf(program, "layer1").pool == 0);
  CHECK(CostOf(program, "layer2").pool == 0);
  CHECK(program.cost().pools[0].rows ==
        std::vector<CostRow>{{0, 0, 100'000}, {1, 0, 60'000}, {1, 1, 40'000}});
  CHECK(program.cost().pools[0].work == WorkClass::kVector);
  CHECK(program.cost().pools[0].element_bits == 32);
  CHECK(imported.summary.priced_instructions == 2);
  CHECK(imported.summary.rows == 3);
  CHECK(imported.summary.pools == 1);
  CHECK(imported.summary.conflicting_rows == 0);
  CHECK(imported.summary.profile_names_unmatched == 0);
  // Another shape is another structure. It has no price, so the bytes that it writes count.
  CHECK(CostOf(program, "layer3").pool == -1);
  CHECK(CostOf(program, "layer3").unpriced_bytes == 64 * 32 * 4);
  CHECK(imported.summary.unpriced_instructions == 1);
  // The roofline is filled in all the same.
  CHECK(CostOf(program, "layer1").transcendentals == 64 * 64);
  CHECK(imported.summary.too_low_rows == 0);
  CHECK(TotalPs(program) == 100'000 + 100'000 + 2 * 64 * 32 * 4);
}

TEST_CASE("What tells structures apart") {
  const auto pools = [](const ModuleText& m) {
    return MustImport(m, {}, R"({"layer1": [["0", "0", 10]], "layer2": [["0", "0", 20]]})")
        .summary.pools;
  };
  CHECK(pools(Layers()) == 1);
  ModuleText opcode = Layers(), config = Layers(), layout = Layers(), space = Layers(),
             attribute = Layers();
  opcode.at("t2").set_opcode("negate");
  CHECK(pools(opcode) == 2);
  config.at("layer2").set_backend_config(R"({"anything":1})");
  CHECK(pools(config) == 1);
  for (const char* name : {"f2", "t2", "layer2"}) {
    layout.at(name).mutable_shape()->mutable_layout()->mutable_minor_to_major()->SwapElements(0, 1);
  }
  CHECK(pools(layout) == 2);
  space.at("f2").mutable_shape()->mutable_layout()->set_memory_space(1);
  CHECK(pools(space) == 1);
  attribute.at("t2").add_dimensions(1);
  CHECK(pools(attribute) == 2);

  // Reading one array twice is not reading two.
  ModuleText m;
  m.Computation("entry");
  m.Add("a = f32[64] parameter()");
  m.Add("b = f32[64] parameter()");
  m.Add("square = f32[64] add(a, a)");
  m.Add("sum = f32[64] add(a, b)");
  m.Add("other = f32[64] add(b, square)");
  m.Add("root = (f32[64], f32[64]) tuple(sum, other)");
  const Imported imported =
      MustImport(m, {}, R"({"square": [["00", "0", 1]], "sum": [["00", "0", 2]]})");
  CHECK(imported.summary.pools == 2);
  CHECK(CostOf(*imported.program, "other").pool == CostOf(*imported.program, "sum").pool);
}

TEST_CASE(
    "A profile table adds rows; repetitions count once, contradictions become their lower median") {
  ModuleText off = Layers();
  SetCycles(off, "layer1", 100'000);
  const std::string profile =
      R"({"layer1": [["0", "0", 100000], ["1", "0", 70000]],
          "layer2": [["0", "1", 94000], ["0", "0", 104000], ["0", "1", 90000], ["0", "0", 108000]],
          "gone": [["0", "0", 5]]})";
  const Imported imported = MustImport(Layers(), {off.Bytes()}, profile);
  REQUIRE(imported.program->cost().pools.size() == 1);
  CHECK(imported.program->cost().pools[0].rows ==
        std::vector<CostRow>{{0, 0, 104'000}, {0, 1, 90'000}, {1, 0, 70'000}});
  CHECK(imported.summary.conflicting_rows == 3);
  CHECK(imported.summary.profile_names_unmatched == 1);
}

TEST_CASE("A price below the time of the bytes in main memory is dropped where there are others") {
  constexpr int64_t kArray = 64 * 64 * 4;  // bytes, and picoseconds: the chip moves one in each
  const auto rows = [](const std::string& profile, int64_t too_low) {
    const Imported imported = MustImport(Layers(), {}, profile);
    CHECK(imported.summary.too_low_rows == too_low);
    REQUIRE(imported.program->cost().pools.size() == 1);
    return imported.program->cost().pools[0].rows;
  };
  const std::string exactly =
      R"({"layer1": [["0", "0", 32768], ["1", "0", 16384], ["1", "1", 1]]})";
  CHECK(rows(exactly, 0) == std::vector<CostRow>{{0, 0, 2 * kArray}, {1, 0, kArray}, {1, 1, 1}});
  const std::string below =
      R"({"layer1": [["0", "0", 32767], ["1", "0", 16384]],
          "layer2": [["0", "1", 16383], ["0", "1", 16383]]})";
  CHECK(rows(below, 2) == std::vector<CostRow>{{1, 0, kArray}});
  CHECK(rows(R"({"layer1": [["0", "0", 9]]})", 0) == std::vector<CostRow>{{0, 0, 9}});
}

TEST_CASE("An unpriced update in place moves the update only; async halves and iota are free") {
  ModuleText m;
  m.Computation("entry");
  m.Add("p = f32[1000] parameter()");
  m.Add("update = f32[10] parameter()");
  m.Add("i = s32[] parameter()");
  m.Add("copy = f32[1000] copy(p)");
  m.Add("dus = f32[1000] dynamic-update-slice(copy, update, i)");
  m.Add("iota = s32[50] iota()");
  m.Add("root = (f32[1000], s32[50]) tuple(dus, iota)");
  const Imported imported = MustImport(m, {}, R"({"copy": [["0", "0", 9]]})");
  CHECK(CostOf(*imported.program, "dus").unpriced_bytes == 40);
  CHECK(CostOf(*imported.program, "iota").unpriced_bytes == 0);
  CHECK(imported.summary.unpriced_instructions == 1);
  CHECK(imported.summary.priced_instructions == 1);
  CHECK(TotalPs(*imported.program) == 9 + 80);
}

// A fusion with these operands, of which it reads the first and the last.
ModuleText Wide(const std::vector<std::string>& shapes) {
  ModuleText m;
  std::vector<std::string> operands;
  m.Computation("fused", true);
  for (size_t i = 0; i < shapes.size(); ++i)
    m.Add(absl::StrCat("f", i, " = ", shapes[i], " parameter()"));
  m.Add(absl::StrCat("froot = ", shapes[0], " add(f0, f", shapes.size() - 1, ")"));
  m.Computation("entry");
  for (size_t i = 0; i < shapes.size(); ++i) {
    operands.push_back(absl::StrCat("p", i));
    m.Add(absl::StrCat("p", i, " = ", shapes[i], " parameter()"));
  }
  m.Add(absl::StrCat("wide = ", shapes[0], " fusion(", absl::StrJoin(operands, ", "), ")"),
        "fusion_kind: 'kLoop'", {"fused"});
  return m;
}

std::string OneOf(size_t size, size_t at) {
  std::string bits(size, '0');
  bits[at] = '1';
  return bits;
}

TEST_CASE(
    "Of more than 64 operands the largest have bits of their own, and the price of one of them "
    "survives") {
  std::vector<std::string> shapes(70, "f32[8]");
  shapes[66] = "f32[8000]";  // 32,000 bytes
  const std::string profile =
      absl::StrCat(R"({"wide": [[")", std::string(70, '0'), R"(","0",9],[")", OneOf(70, 0),
                   R"(","0",8],[")", OneOf(70, 66), R"(","0",5]]})");
  const Imported imported = MustImport(Wide(shapes), {}, profile);
  const Program& program = *imported.program;
  const InstructionCost& cost = CostOf(program, "wide");
  REQUIRE(cost.operands.size() == 64);
  // First come operands 0 to 61 and the large one, in order; then the seven that share a bit.
  CHECK(cost.operands[61].size_bytes == 32);
  CHECK(cost.operands[62].size_bytes == 32000);
  CHECK(cost.operands[62].slot >= 0);
  CHECK(cost.operands[63].size_bytes == 7 * 32);
  CHECK(cost.operands[63].accessed_bytes == 32);  // only the last of the seven is read
  CHECK(cost.operands[63].slot == -1);
  CHECK(program.cost().pools[0].rows ==
        std::vector<CostRow>{{0, 0, 9}, {1, 0, 8}, {uint64_t{1} << 62, 0, 5}});
  // Only buffers beyond 64 accesses are lost, and those are the smallest.
  for (const Buffer& buffer : program.buffers())
    CHECK((buffer.eligible || buffer.size_bytes == 32));
  CHECK(program.eligible_count() == 64);
}

TEST_CASE(
    "Rows in which a large array without a bit of its own was fast are left out; small ones are "
    "overlooked") {
  std::vector<std::string> shapes(70, "f32[8000]");
  shapes[69] = "f32[8]";
  const std::string profile =
      absl::StrCat(R"({"wide": [[")", OneOf(70, 1), R"(","0",9],[")", OneOf(70, 68),
                   R"(","0",8],[")", OneOf(70, 69), R"(","0",7]]})");
  const Imported imported = MustImport(Wide(shapes), {}, profile);
  CHECK(imported.program->cost().pools[0].rows == std::vector<CostRow>{{0, 0, 7}, {2, 0, 9}});
}

TEST_CASE("Profiles that are not what they should be are refused, saying where") {
  const std::pair<const char*, const char*> bad[] = {
      {"", nullptr},  // none given: a roofline
      {"not json", "profile"},
      {"[]", "profile"},
      {R"({"layer1": 3})", "layer1"},
      {R"({"layer1": [["0", "0"]]})", "row 0"},
      {R"({"layer1": [["0", "0", 1], ["0", "2", 1]]})", "row 1"},
      {R"({"layer1": [["0", "0", -1]]})", "cycles"},
      {R"({"layer1": [["0", "0", 1.5]]})", "cycles"},
      {R"({"layer1": [["0", "0", "7"]]})", "cycles"},
      {R"({"layer1": [["0", "0", 18446744073709551615]]})", "cycles"},
      {R"({"layer1": [["00", "0", 1]]})", "1 operands"},
      {R"({"layer1": [["0", "0", 1], ["0", "00", 1]]})", "output arrays"},
  };
  for (const auto& [profile, message] : bad) {
    const absl::StatusOr<Imported> imported = Import(Layers(), {}, profile);
    INFO(profile << ": " << imported.status());
    if (message == nullptr) {
      CHECK(imported.ok());
      continue;
    }
    CHECK(imported.status().code() == absl::StatusCode::kInvalidArgument);
    CHECK(absl::StrContains(imported.status().message(), message));
  }
}

TEST_CASE("Priced modules that are not what they should be are refused, saying which") {
  CHECK(absl::StrContains(Import(Layers(), {Layers().Bytes(), "garbage"}).status().message(),
                          "priced module 1"));
  ModuleText other = Layers();
  SetCycles(other, "layer1", 1);
  const std::string bytes = other.Bytes();
  // Cut anywhere, it gives an error or fewer prices, and never ends the process.
  for (size_t size = 0; size < bytes.size(); size += 7) {
    const absl::StatusOr<Imported> imported = Import(Layers(), {bytes.substr(0, size)});
    if (!imported.ok()) CHECK(imported.status().code() == absl::StatusCode::kInvalidArgument);
  }
}

TEST_CASE("Prices of another program or of other hardware are refused") {
  const auto refusal = [](const std::vector<std::string>& priced, const std::string& profile) {
    return std::string(Import(Layers(), priced, profile).status().message());
  };
  const std::string own = R"("layer1": [["0", "0", 1]], "layer2": [["0", "0", 1]])";
  CHECK(refusal({}, absl::StrCat("{", own, R"(, "u": [["0", "0", 1]], "v": [["0", "0", 1]]})"))
            .empty());
  CHECK(refusal({}, R"({"layer1": [["0", "0", 1]], "u": [["0", "0", 1]], "v": [["0", "0", 1]]})") ==
        "prices: of 3 instructions that have some the module has 1: they are of another program");
  ModuleText other = Layers("f32[64,64]{1,0:S(3)}");
  SetCycles(other, "layer1", 1);
  CHECK(absl::StartsWith(refusal({other.Bytes()}, ""),
                         "priced module 0: arrays lie in memory space S(3), the fast memory of"));
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
  const absl::StatusOr<Imported> imported = Import(m);
  REQUIRE(imported.ok());
  CHECK(CostOf(*imported->program, "conv").flops == int64_t{1} << 60);
}

}  // namespace
}  // namespace mallocgame::hlo
