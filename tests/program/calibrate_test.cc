// What the law makes of rows worked out on paper, which programs it refuses, and that more in fast
// memory is never dearer.
#include "mallocgame/program/calibrate.h"

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "mallocgame/base/rng.h"
#include "mallocgame/hardware/price_law.h"
#include "mallocgame/program/cost_model.h"
#include "tests/catch.h"
#include "tests/support/programs.h"

namespace mallocgame {
namespace {

using testing::ProgramBuilder;
using testing::TestHardware;

// A program of one instruction that reads `a` and writes `b`, of 1,000 bytes each.
ProgramData OneInstruction(std::vector<CostRow> rows, WorkClass work, int32_t element_bits) {
  ProgramBuilder builder("one");
  testing::Op op;
  op.name = "x";
  op.reads = {builder.Parameter("a", 1000)};
  op.writes = {builder.Result("b", 1000)};
  op.cycles = {1};
  builder.Add(op);
  ProgramData data = builder.Data();
  data.cost.pools = {{std::move(rows), work, element_bits}};
  return data;
}

Calibrated MustCalibrate(ProgramData data, const PriceLaw& law) {
  const auto program = Program::Create(std::move(data));
  INFO(program.status());
  REQUIRE(program.ok());
  auto calibrated = CalibratePrices(**program, TestHardware(1 << 20), law);
  INFO(calibrated.status());
  REQUIRE(calibrated.ok());
  return *std::move(calibrated);
}

std::vector<int64_t> Cycles(const Program& program) {
  std::vector<int64_t> cycles;
  for (const CostRow& row : program.cost().pools[0].rows) cycles.push_back(row.cycles);
  return cycles;
}

// Half of the bandwidth, half of the price.
constexpr PriceLaw kHalf = {.main_share = 0.5, .copy_latency_ps = 7, .speed = 0.5, .kernel = 0.25};
// Rows in the order of their bits: all in main memory, the result fast, the operand fast, both.
const std::vector<CostRow> kRows = {{0, 0, 3000}, {0, 1, 2600}, {1, 0, 2500}, {1, 1, 2700}};

TEST_CASE("Work that overlaps its transfer costs the larger of the two") {
  // After transfers of 2000, 1000, 1000 and 0 the rows leave 1000, 1600, 1500 and 2700.
  const Calibrated wide = MustCalibrate(OneInstruction(kRows, WorkClass::kVector, 32), kHalf);
  CHECK(Cycles(*wide.program) == std::vector<int64_t>{4000, 2000, 2000, 500});
  const Calibrated narrow = MustCalibrate(OneInstruction(kRows, WorkClass::kReduction, 16), kHalf);
  CHECK(Cycles(*narrow.program) == std::vector<int64_t>{4000, 2000, 2000, 250});
  const Calibrated widest = MustCalibrate(OneInstruction(kRows, WorkClass::kCopy, 64), kHalf);
  CHECK(Cycles(*widest.program) == std::vector<int64_t>{4000, 2000, 2000, 500});
}

TEST_CASE("A matmul keeps its price, but for the floor and for dearer fast memory") {
  const std::vector<CostRow> rows = {{0, 0, 3000}, {0, 1, 9000}, {1, 0, 5000}, {1, 1, 5200}};
  const Calibrated made = MustCalibrate(OneInstruction(rows, WorkClass::kMatmul, 16), kHalf);
  CHECK(Cycles(*made.program) == std::vector<int64_t>{4000, 4000, 2500, 2500});
}

TEST_CASE("A matmul is not faster than the chip's peak, unless the compiler says so") {
  // A flop takes a cycle.
  const PriceLaw law = {.main_share = 1, .speed = 0.25};
  ProgramData data = OneInstruction({{0, 0, 9000}, {1, 1, 4000}}, WorkClass::kMatmul, 16);
  data.cost.instructions[0].flops = 5000;
  CHECK(Cycles(*MustCalibrate(data, law).program) == std::vector<int64_t>{5000, 4000});
  data.cost.pools[0].work = WorkClass::kVector;
  CHECK(Cycles(*MustCalibrate(data, law).program) == std::vector<int64_t>{2000, 500});
}

TEST_CASE("Calibrated hardware has what the law says, and the program another fingerprint") {
  const ProgramData data = OneInstruction(kRows, WorkClass::kVector, 32);
  const Calibrated made = MustCalibrate(data, kHalf);
  const Hardware own = TestHardware(1 << 20);
  CHECK(made.hardware.name == own.name);
  CHECK(made.hardware.main_bytes_per_second == own.main_bytes_per_second / 2);
  CHECK(made.hardware.flops_per_second == own.flops_per_second / 4);
  CHECK(made.hardware.CopyPs(100) == 2 * 100 + 7);
  CHECK(made.hardware.CopyPs(0) == 0);
  CHECK(made.program->fingerprint() != (*Program::Create(data))->fingerprint());
  CHECK(made.program->cost().kind == CostKind::kCalibrated);
}

TEST_CASE("A predicted price keeps to the floor and to rows with more and less in fast memory") {
  // Kriging alone would say something between 4000 and 500 for each of the two others.
  const std::vector<CostRow> rows = {{0, 0, 3000}, {1, 1, 2700}};
  const Calibrated made =
      MustCalibrate(OneInstruction(rows, WorkClass::kMatmul, 32), {.main_share = 0.9, .speed = 1});
  const CostModel model(made.program, made.hardware);
  const int64_t main = model.PriceOf(0, 0).time_ps, fast = model.PriceOf(0, 3).time_ps;
  CHECK(main == 3000);
  CHECK(fast == 2700);
  for (const uint64_t slots : {1, 2}) {
    CHECK(model.PriceOf(0, slots).time_ps <= main);
    CHECK(model.PriceOf(0, slots).time_ps >= fast);
  }
}

TEST_CASE("More in fast memory is never dearer at calibrated prices") {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    Rng rng(seed);
    ProgramData data = testing::RandomProgram(rng)->data();
    int next = 0;
    for (CostPool& pool : data.cost.pools) {
      pool.work = next % 2 == 0 ? WorkClass::kMatmul : WorkClass::kVector;
      pool.element_bits = next % 3 == 0 ? 16 : 32;
      ++next;
    }
    const Calibrated made = MustCalibrate(std::move(data), kHalf);
    const CostModel model(made.program, made.hardware);
    for (Tick tick = 0; tick < made.program->ticks(); ++tick) {
      const int32_t slots = made.program->instruction(tick).access_count;
      for (uint64_t fast = 0; fast < uint64_t{1} << slots; ++fast) {
        for (int32_t slot = 0; slot < slots; ++slot) {
          INFO("seed " << seed << " tick " << tick << " fast " << fast << " and " << slot);
          CHECK(model.PriceOf(tick, fast | uint64_t{1} << slot).time_ps <=
                model.PriceOf(tick, fast).time_ps);
        }
      }
    }
  }
}

TEST_CASE("Programs without classes of work or without prices can't be calibrated") {
  const Hardware hardware = TestHardware(1 << 20);
  const auto refusal = [&](const ProgramData& data) {
    const auto program = Program::Create(data);
    REQUIRE(program.ok());
    return std::string(CalibratePrices(**program, hardware, kHalf).status().message());
  };
  ProgramData data = OneInstruction(kRows, WorkClass::kUnknown, 0);
  CHECK(absl::StrContains(refusal(data), "importing or capturing it again"));
  data = OneInstruction(kRows, WorkClass::kVector, 32);
  data.cost.kind = CostKind::kCalibrated;
  CHECK(absl::StrContains(refusal(data), "has them already"));
  data.cost.kind = CostKind::kRoofline;
  CHECK(absl::StrContains(refusal(data), "without prices"));
  const auto program = Program::Create(OneInstruction(kRows, WorkClass::kVector, 32));
  REQUIRE(program.ok());
  Hardware slow = hardware;
  slow.copy_latency_ps = 1;
  CHECK(absl::StrContains(CalibratePrices(**program, slow, kHalf).status().message(),
                          "copy_latency_ps is 1, allowed is 0"));
  CHECK(absl::StrContains(CalibratePrices(**program, hardware, {.speed = 0}).status().message(),
                          "speed is 0"));
}

TEST_CASE("Every preset has a law, and each of its figures a source") {
  for (const std::string& name : HardwarePresetNames()) {
    INFO(name);
    const auto law = PriceLawOf(name);
    REQUIRE(law.ok());
    CHECK(ValidatePriceLaw(*law).ok());
    CHECK(*PriceLawOf(name + "_16mib") == *law);
    const auto sources = PriceLawSources(name);
    REQUIRE(sources.ok());
    for (const LawSource& one : *sources) CHECK(!one.source.empty());
  }
  CHECK(absl::StrContains(PriceLawOf("gpu").status().message(), "tpu_v4_megacore"));
}

}  // namespace
}  // namespace mallocgame
