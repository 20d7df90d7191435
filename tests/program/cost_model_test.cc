// The price of an instruction: which row of a profile answers, what is predicted when none does,
// and XLA's roofline.
#include "mallocgame/program/cost_model.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "mallocgame/base/rng.h"
#include "tests/catch.h"
#include "tests/support/programs.h"

namespace mallocgame {
namespace {

using testing::ProgramBuilder;
using testing::TestHardware;

constexpr int64_t kKiB = 1024;
constexpr int64_t kSecond = 1'000'000'000'000;  // in picoseconds

CostArray Movable(int64_t size_bytes, int32_t slot) { return {size_bytes, size_bytes, slot, true}; }
CostArray Fixed(int64_t size_bytes, bool in_main = true) {
  return {size_bytes, size_bytes, -1, in_main};
}

InstructionCost Cost(std::vector<CostArray> operands, std::vector<CostArray> outputs = {},
                     int64_t flops = 0, int64_t transcendentals = 0) {
  InstructionCost cost;
  cost.operands = std::move(operands);
  cost.outputs = std::move(outputs);
  cost.flops = flops;
  cost.transcendentals = transcendentals;
  return cost;
}

// Returns a program of one instruction that reads `reads` buffers of `size_bytes`, with this cost.
std::shared_ptr<const Program> OneInstruction(InstructionCost cost, std::vector<CostPool> pools,
                                              CostKind kind, int slots) {
  ProgramBuilder builder("one", kind);
  std::vector<BufferId> reads;
  for (int i = 0; i < slots; ++i) reads.push_back(builder.Parameter(absl::StrCat("p", i), 4));
  testing::Op op;
  op.name = "x";
  op.reads = reads;
  builder.Add(op);
  ProgramData data = builder.Data();
  data.cost.kind = kind;
  data.cost.instructions.back() = std::move(cost);
  data.cost.pools = std::move(pools);
  const auto program = Program::Create(std::move(data));
  INFO(program.status());
  REQUIRE(program.ok());
  return *program;
}

// Rates of the conformance cases of the XLA reference 3.7: 1 flop, 1 byte of main memory, 2 of fast
// memory a second.
Hardware OneByteASecond() {
  Hardware hardware = TestHardware(1 << 20);
  hardware.main_bytes_per_second = 1;
  hardware.fast_read_bytes_per_second = hardware.fast_write_bytes_per_second = 2;
  hardware.flops_per_second = hardware.transcendentals_per_second = 1;
  return hardware;
}

Price Roofline(const InstructionCost& cost, uint64_t fast_slots, const Hardware& hardware) {
  return CostModel(OneInstruction(cost, {}, CostKind::kRoofline, 2), hardware)
      .PriceOf(0, fast_slots);
}

TEST_CASE("A row of the same placement is the price") {
  const InstructionCost cost =
      Cost({Movable(kKiB, 0), Movable(64 * kKiB, 1)}, {Movable(64 * kKiB, 2)});
  const std::vector<CostRow> rows = {{0, 0, 100}, {0, 1, 90}, {1, 0, 101}, {2, 0, 50}, {3, 1, 120}};
  for (const CostRow& row : rows) {
    const PredictedCycles found = PredictCycles(cost, rows, row.operands, row.outputs);
    CHECK(found.cycles == row.cycles);  // also where fast memory is slower
    CHECK(found.exact);
  }
}

TEST_CASE("With caution a placement without a price gains nothing over those with one") {
  InstructionCost cost = Cost({Movable(64 * kKiB, 0), Movable(64 * kKiB, 1)});
  cost.pool = 0;
  CostPool pool;
  pool.rows = {{0b00, 0, 1000}, {0b01, 0, 800}, {0b11, 0, 100}};
  const auto predicted = OneInstruction(cost, {pool}, CostKind::kProfile, 2);
  const auto cautious = Program::WithCaution(*predicted, 0.25);
  CHECK(cautious->fingerprint() == predicted->fingerprint());
  Hardware hardware = TestHardware(1 << 20);
  hardware.main_bytes_per_second = int64_t{1} << 60;  // prices alone count
  const auto price = [&](const auto& program, uint64_t fast) {
    return CostModel(program, hardware).PriceOf(0, fast);
  };
  for (const uint64_t known : {0b00, 0b01, 0b11}) {
    CHECK(price(cautious, known).time_ps == price(predicted, known).time_ps);
    CHECK(price(cautious, known).source == PriceSource::kExact);
  }
  CHECK(price(predicted, 0b10).time_ps < hardware.CyclesToPs(1000));
  CHECK(price(cautious, 0b10).time_ps == hardware.CyclesToPs(1000) * 5 / 4);
  CHECK(price(cautious, 0b10).source == PriceSource::kPredicted);
}

TEST_CASE("Bits of arrays that never move do not matter, and rows without them come first") {
  const InstructionCost cost = Cost({Fixed(64 * kKiB), Movable(64 * kKiB, 0), Fixed(64 * kKiB)});
  const std::vector<CostRow> rows = {{0b011, 0, 7}, {0b010, 1, 8}, {0b110, 0, 9}, {0b111, 0, 6}};
  CHECK(PredictCycles(cost, rows, 0b010, 0).cycles == 7);  // the first of those with one such bit
  const std::vector<CostRow> better = {{0b011, 0, 7}, {0b010, 0, 5}};
  CHECK(PredictCycles(cost, better, 0b010, 0).cycles == 5);
  CHECK(PredictCycles(cost, better, 0b010, 0).exact);
}

TEST_CASE("Without its own row, a placement takes one that differs in arrays under 16 KiB only") {
  const InstructionCost cost = Cost(
      {Movable(kKiB, 0), Movable(3 * kKiB, 1), Movable(16 * kKiB - 1, 2), Movable(16 * kKiB, 3)});
  const std::vector<CostRow> rows = {
      {0b0000, 0, 10}, {0b0010, 0, 20}, {0b1000, 0, 30}, {0b1100, 0, 40}};
  PredictedCycles found = PredictCycles(cost, rows, 0b0011, 0);
  CHECK(found.cycles == 20);  // 1 KiB away; the row of 10 is 4 KiB away
  CHECK_FALSE(found.exact);
  CHECK(PredictCycles(cost, rows, 0b1010, 0).cycles == 30);  // 3 KiB away, the row of 40 is further
  CHECK(PredictCycles(cost, rows, 0b1110, 0).cycles == 40);

  const std::vector<CostRow> tie = {{0b0001, 0, 1}, {0b0010, 0, 2}};
  const InstructionCost equal = Cost({Movable(kKiB, 0), Movable(kKiB, 1)});
  CHECK(PredictCycles(equal, tie, 0b0011, 0).cycles == 1);  // as near as the other: the first
}

TEST_CASE("An array of 16 KiB is not ignored: rows count the more the more bytes lie as in them") {
  const InstructionCost cost = Cost({Movable(32 * kKiB, 0)}, {Movable(192 * kKiB, 1)});
  const std::vector<CostRow> rows = {{0, 0, 1000}, {1, 1, 403}};
  // Operand fast, output in main: 1/4 from the first row, 3/4 from the second, which are 1 apart,
  // outputs counting half. Likeness 4 / (4 + distance) gives the first a share of 1/2 + (16/17 -
  // 16/19) / 2 / (1 - 4/5) = 0.74768.
  const PredictedCycles found = PredictCycles(cost, rows, 1, 0);
  CHECK(found.cycles == 849);  // 403 + 0.74768 * 597 = 849.4
  CHECK_FALSE(found.exact);
  CHECK(PredictCycles(cost, rows, 0, 1).cycles == 554);  // 403 + 0.25232 * 597 = 553.6

  const InstructionCost least = Cost({Movable(16 * kKiB, 0), Movable(16 * kKiB, 1)});
  const std::vector<CostRow> apart = {{0b00, 0, 10}, {0b11, 0, 30}};
  CHECK(PredictCycles(least, apart, 0b01, 0).cycles == 20);  // not the 10 of the first

  const std::vector<CostRow> single = {{0, 0, 77}};
  CHECK(PredictCycles(cost, single, 1, 1).cycles == 77);
}

TEST_CASE("Rows that tell the same count as one, and no more rows count than the nearest") {
  const InstructionCost cost = Cost({Movable(64 * kKiB, 0), Movable(64 * kKiB, 1), Fixed(kKiB)});
  const std::vector<CostRow> rows = {{0b000, 0, 100}, {0b011, 0, 40}};
  // The third array never moves.
  const std::vector<CostRow> twice = {{0b000, 0, 100}, {0b011, 0, 40}, {0b111, 0, 40}};
  CHECK(PredictCycles(cost, rows, 0b001, 0).cycles == 70);
  CHECK(PredictCycles(cost, twice, 0b001, 0).cycles == 70);

  InstructionCost wide;
  for (int32_t i = 0; i < 20; ++i) wide.operands.push_back(Movable(64 * kKiB, i));
  std::vector<CostRow> near = {{0, 0, 5000}};  // all but one array elsewhere
  for (uint64_t i = 0; i < 19; ++i)
    near.push_back({0xFFFFF ^ (uint64_t{3} << i), 0, 50 + static_cast<int64_t>(i)});
  const int64_t with_far = PredictCycles(wide, near, 0xFFFFF, 0).cycles;
  near.erase(near.begin());
  CHECK(PredictCycles(wide, near, 0xFFFFF, 0).cycles == with_far);
}

TEST_CASE("A prediction lies between the rows it is made of, up to the largest counts of cycles") {
  Rng rng(3);
  for (int round = 0; round < 200; ++round) {
    InstructionCost cost;
    for (int32_t i = 0; i < 64; ++i)
      cost.operands.push_back(Movable(16 * kKiB << rng.Below(20), i));
    std::vector<CostRow> rows;
    const int64_t most = round % 2 == 0 ? 1000 : int64_t{1} << 60;
    for (int i = 0; i < 5; ++i) {
      rows.push_back(
          {rng.Next(), 0, static_cast<int64_t>(rng.Uniform() * static_cast<double>(most))});
    }
    int64_t least = most, largest = 0;
    for (const CostRow& row : rows)
      least = std::min(least, row.cycles), largest = std::max(largest, row.cycles);
    const int64_t cycles = PredictCycles(cost, rows, rng.Next(), 0).cycles;
    CHECK(cycles >= least - 1024);  // doubles near 2^60 are 256 apart
    CHECK(cycles <= largest + 1024);
  }
}

TEST_CASE(
    "A profile price: cycles of the placement, and idle time beside its arrays in main memory") {
  // Slot 0 is read by two operands; 100 and 40 bytes never move, the latter outside main memory.
  InstructionCost cost =
      Cost({Movable(200, 0), Movable(200, 0), Fixed(100), Fixed(40, false)}, {Movable(300, 1)});
  cost.pool = 0;
  const std::vector<CostPool> pools = {{{{0b0000, 0, 900}, {0b0000, 1, 700}, {0b0011, 0, 450}}}};
  // 1 byte = 1 ps
  const CostModel model(OneInstruction(cost, pools, CostKind::kProfile, 2), TestHardware(1 << 20));
  const Price main = model.PriceOf(0, 0b00);
  CHECK(main.time_ps == 900);
  CHECK(main.idle_ps == 900 - (200 + 200 + 100 + 300));  // an operand counts as often as it is one
  CHECK(main.source == PriceSource::kExact);
  const Price output_fast = model.PriceOf(0, 0b10);
  CHECK(output_fast.time_ps == 700);
  CHECK(output_fast.idle_ps == 200);
  const Price operand_fast = model.PriceOf(0, 0b01);
  CHECK(operand_fast.time_ps == 450);
  CHECK(operand_fast.idle_ps == 50);
  const Price both = model.PriceOf(0, 0b11);
  CHECK(both.source == PriceSource::kPredicted);
  CHECK(both.time_ps == 450);  // 300 bytes from the last row, 400 from the second
}

TEST_CASE("A predicted price is not below the time of the bytes moved in main memory") {
  // 1 byte = 1 ps. Of the last operand a tenth is read.
  const auto array = [](int32_t slot, int64_t accessed) {
    CostArray movable = Movable(100 * kKiB, slot);
    movable.accessed_bytes = accessed;
    return movable;
  };
  InstructionCost cost = Cost({array(0, 100 * kKiB), array(1, 10 * kKiB)}, {array(2, 100 * kKiB)});
  cost.pool = 0;
  CHECK(FloorPs(cost, 0b00, 0, TestHardware(1 << 20)) == 210 * kKiB);
  CHECK(FloorPs(cost, 0b01, 0, TestHardware(1 << 20)) == 110 * kKiB);
  CHECK(FloorPs(cost, 0b11, 1, TestHardware(1 << 20)) == 0);
  const auto price = [&](const std::vector<CostRow>& rows, uint64_t fast_slots) {
    const CostModel model(OneInstruction(cost, {{rows}}, CostKind::kProfile, 3),
                          TestHardware(1 << 20));
    return model.PriceOf(0, fast_slots);
  };
  const std::vector<CostRow> rows = {{0b01, 0, 120 * kKiB}, {0b11, 1, 90 * kKiB}};
  CHECK(price(rows, 0b000).time_ps == 210 * kKiB);  // predicted as at most 120 KiB
  CHECK(price(rows, 0b000).source == PriceSource::kPredicted);
  CHECK(price(rows, 0b001).time_ps == 120 * kKiB);
  CHECK(price(rows, 0b011).time_ps < 120 * kKiB);
  // A price of the compiler's own that is lower shows that the bytes are counted too high.
  const std::vector<CostRow> doubtful = {{0b01, 0, 100 * kKiB}, {0b11, 1, 90 * kKiB}};
  CHECK(price(doubtful, 0b000).time_ps <= 100 * kKiB);
  CHECK(price(doubtful, 0b001).time_ps == 100 * kKiB);
}

TEST_CASE("An instruction that uses all the bandwidth and more leaves none idle") {
  InstructionCost cost = Cost({Movable(5000, 0)});
  cost.pool = 0;
  const CostModel model(OneInstruction(cost, {{{{0, 0, 10}}}}, CostKind::kProfile, 1),
                        TestHardware(1 << 20));
  CHECK(model.PriceOf(0, 0).time_ps == 10);
  CHECK(model.PriceOf(0, 0).idle_ps == 0);
  CHECK(model.PriceOf(0, 1).idle_ps == 10);
}

TEST_CASE(
    "Instructions the compiler did not price cost twice the bytes they move, wherever these lie") {
  InstructionCost cost = Cost({Movable(1000, 0)}, {Movable(1000, 1)});
  cost.unpriced_bytes = 70;
  const CostModel model(OneInstruction(cost, {}, CostKind::kProfile, 2), TestHardware(1 << 20));
  for (const uint64_t slots : {0, 3}) {
    const Price price = model.PriceOf(0, slots);
    CHECK(price.time_ps == 140);
    CHECK(price.idle_ps == 0);
    CHECK(price.source == PriceSource::kUnpriced);
  }
}

TEST_CASE("What neither moves nor computes is free") {
  for (const CostKind kind : {CostKind::kProfile, CostKind::kRoofline}) {
    const CostModel model(OneInstruction({}, {}, kind, 1), TestHardware(1 << 20));
    const Price price = model.PriceOf(0, 0);
    CHECK(price.time_ps == 0);
    CHECK(price.idle_ps == 0);
    CHECK(price.source == PriceSource::kFree);
  }
}

TEST_CASE("XLA's conformance cases for one instruction (reference 3.7)") {
  const Hardware hardware = OneByteASecond();
  const InstructionCost negate32 = Cost({Movable(128, 0)}, {Movable(128, 1)}, 32);
  const Price p5 = Roofline(negate32, 0, hardware);
  CHECK(p5.time_ps == 256 * kSecond);
  CHECK(p5.idle_ps == 0);
  CHECK(p5.source == PriceSource::kRoofline);
  const Price p6 = Roofline(negate32, 0b01, hardware);
  CHECK(p6.time_ps == 192 * kSecond);
  CHECK(p6.idle_ps == 64 * kSecond);
  const InstructionCost negate128 = Cost({Movable(512, 0)}, {Movable(512, 1)}, 128);
  CHECK(Roofline(negate128, 0, hardware).time_ps == 1024 * kSecond);  // P8
  const InstructionCost negate2 = Cost({Movable(8, 0)}, {Movable(8, 1)}, 2);
  CHECK(Roofline(negate2, 0, hardware).time_ps == 16 * kSecond);  // in T4
  const InstructionCost add = Cost({Movable(256, 0), Movable(256, 1)}, {Movable(256, 1)}, 64);
  const Price t6 = Roofline(add, 0b11, hardware);
  CHECK(t6.time_ps == 384 * kSecond);
  CHECK(t6.idle_ps == 384 * kSecond);
}

TEST_CASE("The worked example of placements (reference 3.6, 1)") {
  Hardware hardware = OneByteASecond();
  hardware.main_bytes_per_second = 10;
  hardware.fast_read_bytes_per_second = hardware.fast_write_bytes_per_second = 40;
  const InstructionCost x = Cost({Movable(400, 0)}, {Movable(200, 1)}, 30);
  // by placement: elapsed, idle
  const int64_t expected[4][2] = {{60, 0}, {30, 10}, {45, 5}, {30, 30}};
  for (uint64_t slots = 0; slots < 4; ++slots) {
    CHECK(Roofline(x, slots, hardware).time_ps == expected[slots][0] * kSecond);
    CHECK(Roofline(x, slots, hardware).idle_ps == expected[slots][1] * kSecond);
  }
}

TEST_CASE("Compute bounds the roofline: flops or transcendentals, whichever takes longer") {
  Hardware hardware = OneByteASecond();
  hardware.flops_per_second = 4;
  InstructionCost cost = Cost({Movable(10, 0)}, {}, 400, 90);
  CHECK(Roofline(cost, 0, hardware).time_ps == 100 * kSecond);
  CHECK(Roofline(cost, 0, hardware).idle_ps == 90 * kSecond);
  cost.transcendentals = 110;
  CHECK(Roofline(cost, 0, hardware).time_ps == 110 * kSecond);
}

TEST_CASE("The roofline counts the bytes accessed, not whole arrays") {
  InstructionCost update = Cost({Movable(4000, 0), Fixed(20, false)}, {Movable(4000, 0)});
  update.operands[0].accessed_bytes = 0;
  update.outputs[0].accessed_bytes = 16;
  const Hardware hardware = OneByteASecond();
  // What is in scalar memory is moved at the same rate.
  CHECK(Roofline(update, 0, hardware).time_ps == 36 * kSecond);
  CHECK(Roofline(update, 0, hardware).idle_ps == 20 * kSecond);  // but beside the channel
  CHECK(Roofline(update, 1, hardware).time_ps == 28 * kSecond);
}

TEST_CASE("Times too long for 64 bits stop at the largest") {
  Hardware hardware = OneByteASecond();
  const InstructionCost cost = Cost({Movable(int64_t{1} << 48, 0)}, {}, int64_t{1} << 60);
  const Price price = Roofline(cost, 0, hardware);
  CHECK(price.time_ps == INT64_MAX);
  CHECK(price.idle_ps >= 0);
}

TEST_CASE("On random programs a price is sound whatever the placement") {
  Rng rng(11);
  for (int round = 0; round < 40; ++round) {
    const bool roofline = round % 2 == 1;
    testing::RandomProgramOptions options;
    options.roofline = roofline;
    const std::shared_ptr<const Program> program = testing::RandomProgram(rng, options);
    const CostModel model(program, TestHardware(64));
    for (Tick tick = 0; tick < program->ticks(); ++tick) {
      const int slots = program->instruction(tick).access_count;
      const uint64_t placement = slots == 0 ? 0 : rng.Next() & ((uint64_t{1} << slots) - 1);
      const Price price = model.PriceOf(tick, placement);
      CHECK(price.idle_ps >= 0);
      CHECK(price.idle_ps <= price.time_ps);
      if (!roofline || slots == 0) continue;
      // By the roofline, one more array in the faster memory never costs time.
      CHECK(model.PriceOf(tick, placement | 1).time_ps <= price.time_ps);
    }
  }
}

}  // namespace
}  // namespace mallocgame
