// Kernels: what their authors estimate, which arrays that counts for, and the price that follows.
#include "mallocgame/hlo/cost/kernels.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "mallocgame/hlo/import/import.h"
#include "mallocgame/hlo/module/hlo.pb.h"
#include "mallocgame/plan/plan.h"
#include "mallocgame/program/cost_model.h"
#include "mallocgame/simulator/simulate.h"
#include "mallocgame/solvers/bounds.h"
#include "tests/catch.h"
#include "tests/hlo/module_text.h"

namespace mallocgame::hlo {
namespace {

using Bytes = std::vector<int64_t>;

HloInstructionProto Kernel(const std::string& config) {
  HloInstructionProto proto;
  proto.set_opcode("custom-call");
  proto.set_custom_call_target("tpu_custom_call");
  proto.set_backend_config(config);
  return proto;
}

std::string Estimate(const std::string& estimate) {
  return absl::StrCat(R"({"custom_call_config":{"body":"TUzv","cost_estimate":)", estimate,
                      R"(,"serialization_format":"1"}})");
}

Bytes Shared(int64_t bytes, Bytes read, Bytes written) {
  ShareOut(bytes, read, written);
  read.insert(read.end(), written.begin(), written.end());
  return read;
}

TEST_CASE("a kernel's estimate is read as XLA and JAX write it, and not if it is malformed") {
  const auto of = [](const std::string& text) { return EstimateOf(Kernel(Estimate(text))); };
  const auto found = of(R"({"flops":"8","transcendentals":"7","bytes_accessed":"6"})");
  REQUIRE(found);
  CHECK(found->flops == 8);
  CHECK(found->transcendentals == 7);
  CHECK(found->bytes_accessed == 6);
  CHECK(of(R"( {"flops": 8, "bytes_accessed": 6})")->flops == 8);
  CHECK(of("{}")->bytes_accessed == 0);
  CHECK(of(R"({"flops":"9223372036854775807"})")->flops == int64_t{1} << 60);
  for (const char* bad : {R"({"flops":"-1"})", R"({"flops":1.5})", R"({"flops":null})",
                          R"({"bytes_accessed":"many"})", "7", "[", R"({"flops":)"}) {
    INFO(bad);
    CHECK_FALSE(of(bad));
  }
  CHECK_FALSE(EstimateOf(Kernel(R"({"custom_call_config":{"body":"TUzv"}})")));
  HloInstructionProto other = Kernel(Estimate(R"({"flops":"8"})"));
  other.set_custom_call_target("Sharding");
  CHECK_FALSE(IsKernel(other));
  CHECK_FALSE(EstimateOf(other));
}

TEST_CASE("where a kernel requires its operands is read as XLA and JAX write it") {
  const auto of = [](const std::string& list) {
    return RequiredSpacesOf(Kernel(absl::StrCat(
        R"({"custom_call_config":{"body":"TUzv","input_memory_space_colors":)", list, "}}")));
  };
  const auto by_xla = of(R"([{"operand_index":"0","color":"0","shape_index":[]},)"
                         R"({"operand_index":"3","color":"1","shape_index":["2","0"]}])");
  REQUIRE(by_xla.size() == 2);
  CHECK((by_xla[0].operand == 0 && by_xla[0].memory_space == 0 && by_xla[0].index.empty()));
  CHECK((by_xla[1].operand == 3 && by_xla[1].memory_space == 1));
  CHECK(by_xla[1].index == std::vector<int32_t>{2, 0});
  const auto by_jax = of(R"( [{"operand_index":2,"color":1}])");
  REQUIRE(by_jax.size() == 1);
  CHECK((by_jax[0].operand == 2 && by_jax[0].memory_space == 1 && by_jax[0].index.empty()));
  for (const char* bad :
       {"[]", "", "[", "[[]", "7", R"([{"operand_index":"0"}])", R"([{"color":"fast"}])", "[7]",
        R"([{"operand_index":"-1","color":"1"}])", R"([{"operand_index":4294967296,"color":1}])",
        R"([{"color":"1","shape_index":["x"]}])", R"([{"color":"1","shape_index":[{}]}])"}) {
    INFO(bad);
    CHECK(of(bad).empty());
  }
  CHECK(RequiredSpacesOf(Kernel("")).empty());
  const auto both = RequiredSpacesOf(Kernel(
      R"({"output_memory_space_colors":[{"color":"1","shape_index":["1"]}],)"
      R"("input_memory_space_colors":[{"operand_index":"2","color":"0","shape_index":[]}]})"));
  REQUIRE(both.size() == 2);
  CHECK((both[0].operand == 2 && both[0].memory_space == 0));
  CHECK((!both[1].operand && both[1].memory_space == 1));
  CHECK(both[1].index == std::vector<int32_t>{1});
}

TEST_CASE("a kernel's bytes are shared out to its arrays") {
  CHECK(Shared(0, {100, 20}, {30}) == Bytes{100, 20, 30});
  CHECK(Shared(150, {100, 20}, {30}) == Bytes{100, 20, 30});
  // Operands are read again.
  CHECK(Shared(150 + 60, {100, 20}, {30}) == Bytes{150, 30, 30});
  CHECK(Shared(90, {}, {30}) == Bytes{30});
  // The largest are read in part.
  CHECK(Shared(100, {100, 20}, {30}) == Bytes{50, 20, 30});
  CHECK(Shared(45, {100, 20}, {30}) == Bytes{15, 15, 15});
  const int64_t most = int64_t{1} << 48;
  CHECK(Shared(most, {most, most}, {most}) == Bytes{most, most, most});
  CHECK(Shared(most, {1, 3}, {0}) == Bytes{most / 4, most / 4 * 3, 0});
}

constexpr char kCopyPrice[] = R"({"y": [["0", "0", 9]]})";

struct Made {
  Imported imported;
  Tick kernel = 0;
};

// A kernel of x (400 bytes) and y (40), which writes 200.
Made Make(const std::string& config, const std::string& profile = kCopyPrice) {
  hlo_test::ModuleText m;
  m.Computation("entry");
  m.Add("x = f32[100] parameter()");
  m.Add("p = f32[10] parameter()");
  m.Add("y = f32[10] copy(p)");
  m.Add("kernel = f32[50] custom-call(x, y)", "custom_call_target: 'tpu_custom_call'");
  m.Add("root = f32[50] copy(kernel)");
  m.at("kernel").set_backend_config(config);
  const std::string bytes = m.Bytes();
  ImportInput input;
  input.module = bytes;
  input.profile = profile;
  auto imported = ImportHlo(input, hlo_test::UnitHardware());
  INFO(imported.status());
  REQUIRE(imported.ok());
  Made made{*std::move(imported)};
  while (made.imported.program->instruction(made.kernel).name != "kernel") ++made.kernel;
  return made;
}

// The slots of the kernel whose arrays have these sizes.
uint64_t Slots(const Program& program, Tick tick, const Bytes& sizes) {
  uint64_t slots = 0;
  const Instruction& i = program.instruction(tick);
  for (int32_t s = 0; s < i.access_count; ++s) {
    const Access& access = program.accesses()[i.first_access + s];
    for (const int64_t size : sizes) {
      if (program.buffer(access.buffer).size_bytes == size) slots |= uint64_t{1} << s;
    }
  }
  return slots;
}

TEST_CASE("a kernel that the compiler makes multiplies a softmax, and lacks no estimate") {
  hlo_test::ModuleText m;
  m.Computation("entry");
  m.Add("x = f32[64,512] parameter()");
  m.Add("p = f32[512,128] parameter()");
  m.Add("y = f32[512,128] copy(p)");
  m.Add("root = f32[64,128] custom-call(x, y)", "custom_call_target: 'tpu_custom_call'");
  const auto made = [&m](const std::string& config) {
    m.at("root").set_backend_config(config);
    const std::string bytes = m.Bytes();
    ImportInput input;
    input.module = bytes;
    input.profile = kCopyPrice;
    return *ImportHlo(input, hlo_test::UnitHardware());
  };
  const Imported by_compiler =
      made(R"({"custom_call_config":{"body":"TUzv","needs_hlo_passes":false}})");
  CHECK(by_compiler.summary.kernels == 1);
  CHECK(by_compiler.summary.kernels_without_estimate == 0);
  const InstructionCost& cost = by_compiler.program->cost().instructions.back();
  CHECK(cost.flops == 2 * 64 * 512 * 128);
  CHECK(cost.transcendentals == 64 * 512);
  const Imported by_user = made(R"({"custom_call_config":{"body":"TUzv","needs_hlo_passes":false,)"
                                R"("serialization_format":"1"}})");
  CHECK(by_user.summary.kernels_without_estimate == 1);
  CHECK(by_user.program->cost().instructions.back().flops == 0);
}

TEST_CASE("a kernel has the roofline of its estimate, and what lies in fast memory changes it") {
  Hardware hardware = hlo_test::UnitHardware();
  hardware.fast_read_bytes_per_second = hardware.fast_write_bytes_per_second *= 10;
  const Made moves =
      Make(Estimate(R"({"flops":"300","transcendentals":"5","bytes_accessed":"1140"})"));
  const Program& program = *moves.imported.program;
  CHECK(moves.imported.summary.kernels == 1);
  CHECK(moves.imported.summary.kernels_without_estimate == 0);
  CHECK(moves.imported.summary.unpriced_instructions == 1);  // the root's copy
  CHECK(program.cost().instructions[moves.kernel].unpriced_bytes == 0);

  const CostModel model(moves.imported.program, hardware);
  const Price main = model.PriceOf(moves.kernel, 0);
  CHECK(main.source == PriceSource::kKernel);
  CHECK(main.time_ps <= 1140);
  CHECK(main.time_ps > 1137);  // Shares are rounded down.
  CHECK(main.idle_ps == 0);
  const int64_t x = program.cost().instructions[moves.kernel].operands[0].accessed_bytes;
  CHECK(x == 400 + 500 * 400 / 440);  // It is read again.
  const uint64_t all = Slots(program, moves.kernel, {400, 40, 200});
  const Price fast = model.PriceOf(moves.kernel, all);
  CHECK(fast.time_ps == 300);  // its flops
  CHECK(fast.idle_ps > 0);
  // A bound must know that.
  const auto prices = PricePlacements(model, 0);
  REQUIRE(prices.ok());
  for (const PlacementPrice& row : prices->rows) {
    if (row.tick == moves.kernel) CHECK(row.time_ps == 300);
  }

  const auto report = Simulate(model, AllMainPlan(program, hardware));
  REQUIRE(report.ok());
  CHECK(report->kernel_ps == main.time_ps);
  CHECK(report->modelled_ps == 0);
}

TEST_CASE("a kernel without an estimate moves its arrays once; the compiler's own price holds") {
  const Made without = Make(R"({"custom_call_config":{"body":"TUzv"}})");
  CHECK(without.imported.summary.kernels == 1);
  CHECK(without.imported.summary.kernels_without_estimate == 1);
  const CostModel model(without.imported.program, hlo_test::UnitHardware());
  const InstructionCost& cost = without.imported.program->cost().instructions[without.kernel];
  CHECK(cost.kernel);
  int64_t bytes = cost.outputs[0].accessed_bytes;
  for (const CostArray& array : cost.operands) bytes += array.accessed_bytes;
  CHECK(bytes == 400 + 40 + 200);
  CHECK(model.PriceOf(without.kernel, 0).time_ps == bytes);

  const Made priced = Make(Estimate(R"({"flops":"300"})"), R"({"kernel": [["00", "0", 77]]})");
  CHECK(priced.imported.summary.kernels == 0);
  CHECK_FALSE(priced.imported.program->cost().instructions[priced.kernel].kernel);
  const CostModel own(priced.imported.program, hlo_test::UnitHardware());
  CHECK(own.PriceOf(priced.kernel, 0).source == PriceSource::kExact);
  CHECK(own.PriceOf(priced.kernel, 0).time_ps == 77);

  const Made roofline = Make(Estimate(R"({"flops":"3000"})"), "");
  const CostModel unpriced(roofline.imported.program, hlo_test::UnitHardware());
  CHECK(unpriced.PriceOf(roofline.kernel, 0).source == PriceSource::kRoofline);
  CHECK(unpriced.PriceOf(roofline.kernel, 0).time_ps == 3000);
}

TEST_CASE("a kernel's scratch takes fast memory where assignment gives it its bytes") {
  const Made made =
      Make(R"({"scoped_memory_configs":[{"memory_space":"1","offset":"0","size":"8192"}],)"
           R"("custom_call_config":{"body":"TUzv"}})");
  CHECK(made.imported.program->instruction(made.kernel).reserved_bytes == 8192);
  // What code generation used in the end lies outside of what assignment may use.
  const Made outside =
      Make(R"({"used_scoped_memory_configs":[{"memory_space":"1","offset":"0","size":"8192"}]})");
  CHECK(outside.imported.program->instruction(outside.kernel).reserved_bytes == 0);
}

}  // namespace
}  // namespace mallocgame::hlo
