// Programs as messages: the tables of a small one by hand, and tables that do not fit together.
#include <string>
#include <vector>

#include "mallocgame/base/rng.h"
#include "mallocgame/replay/replay.pb.h"
#include "mallocgame/replay/wire.h"
#include "tests/catch.h"
#include "tests/replay/sample.h"

namespace mallocgame::replay {
namespace {

template <class Field>
std::vector<int64_t> Stored(const Field& field) {
  return {field.begin(), field.end()};
}
using Column = std::vector<int64_t>;

// first(input; hidden), second(weights, hidden;), third(weights; output), with four prices each.
Program SampleWire() {
  Program wire;
  ToWire(testing::SampleBuilder().Data(), &wire);
  return wire;
}

TEST_CASE("each table of a program is stored by column") {
  const Program wire = SampleWire();
  CHECK(wire.name() == "sample");
  CHECK(wire.instructions().name(1) == "second");
  // Differences: 0 2 4, and 2 2 2.
  CHECK(Stored(wire.instructions().first_access()) == Column{0, 2, 2});
  CHECK(Stored(wire.instructions().access_count()) == Column{2, 0, 0});
  CHECK(wire.buffers().name(0) == "weights");
  CHECK(Stored(wire.buffers().size_bytes()) == Column{16, -8, 0, 0});
  CHECK(Stored(wire.buffers().is_output()) == Column{0, 0, 0, 1});
  CHECK(Stored(wire.accesses().tick()) == Column{0, 0, 1, 0, 1, 0});
}

TEST_CASE("the arrays and prices of all instructions are one table each") {
  const Cost cost = SampleWire().cost();
  // Operands 1 2 1, outputs 1 0 1, so the arrays are two, two and two of:
  CHECK(Stored(cost.instructions().operand_count()) == Column{1, 1, -1});
  CHECK(Stored(cost.instructions().output_count()) == Column{1, -1, 1});
  // input 8, hidden 8; weights 16, hidden 8; weights 16, output 8
  CHECK(Stored(cost.arrays().size_bytes()) == Column{8, 0, 8, -8, 8, -8});
  CHECK(Stored(cost.instructions().pool()) == Column{0, 1, 1});
  CHECK(Stored(cost.pool_rows()) == Column{4, 0, 0});
  REQUIRE(cost.rows().cycles_size() == 12);
  CHECK(cost.rows().cycles(0) == 40);
}

TEST_CASE("a program comes back as it was") {
  CHECK(*ProgramFromWire(SampleWire()) == testing::SampleBuilder().Data());
  Rng rng(3);
  for (int i = 0; i < 50; ++i) {
    const auto program =
        testing::RandomProgram(rng, {.constrained = i % 4 > 1, .roofline = i % 2 == 1});
    Program wire;
    ToWire(program->data(), &wire);
    REQUIRE(*ProgramFromWire(wire) == program->data());
  }
}

TEST_CASE("names in the source are stored if an instruction has one") {
  ProgramData data = testing::SampleBuilder().Data();
  CHECK(SampleWire().instructions().op_name().empty());
  data.instructions[1].op_name = "jit(step)/layer_3/dot_general";
  Program wire;
  ToWire(data, &wire);
  CHECK(wire.instructions().op_name_size() == 3);
  CHECK(*ProgramFromWire(wire) == data);
}

TEST_CASE("tables that do not fit together are refused") {
  const auto refusal = [](auto change) {
    Program wire = SampleWire();
    change(wire);
    return std::string(ProgramFromWire(wire).status().message());
  };
  CHECK(refusal([](Program& p) { p.mutable_cost()->set_kind(3); }) ==
        "cost: kind 3 is out of range");
  // Of the six arrays the first takes two; the second asks for nine operands.
  CHECK(refusal([](Program& p) {
          p.mutable_cost()->mutable_instructions()->set_operand_count(1, 8);
        }) == "instruction costs: row 1 has 9 operands and 0 outputs, but 4 arrays are left");
  // The second takes its two operands, but only the two arrays of the third are left for outputs.
  CHECK(refusal([](Program& p) {
          p.mutable_cost()->mutable_instructions()->set_output_count(1, 2);
        }) == "instruction costs: row 1 has 2 operands and 3 outputs, but 2 arrays are left");
  CHECK(refusal([](Program& p) {
          p.mutable_cost()->mutable_instructions()->set_operand_count(0, -1);
        }) == "instruction costs: row 0 has -1 operands and 1 outputs, but 6 arrays are left");
  CHECK(refusal([](Program& p) { p.mutable_cost()->set_pool_rows(2, 1); }) ==
        "pools: pool 2 has 5 rows, but 4 are left");
  CHECK(refusal([](Program& p) { p.mutable_cost()->set_pool_rows(2, -2); }) ==
        "cost: 0 arrays and 2 rows belong to nothing");
  CHECK(refusal([](Program& p) { p.mutable_accesses()->add_tick(0); }) ==
        "accesses: column buffer has 6 rows, the first column has 7");
  CHECK(refusal([](Program& p) { p.mutable_regions()->set_kind(0, 99); }) ==
        "regions: column kind, row 0: 99 is out of range");
}

}  // namespace
}  // namespace mallocgame::replay
