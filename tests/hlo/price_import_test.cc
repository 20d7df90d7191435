// The compiler's prices in imported programs: pooled by structure, dropped or kept, and refused
// where they are malformed or of another program.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "mallocgame/hlo/import/cost_import.h"
#include "mallocgame/hlo/import/import.h"
#include "mallocgame/program/cost_model.h"
#include "tests/catch.h"
#include "tests/hlo/imported_costs.h"
#include "tests/hlo/module_text.h"

namespace mallocgame::hlo {
namespace {

using hlo_test::CostOf;
using hlo_test::ImportPriced;
using hlo_test::ModuleText;
using hlo_test::MustImport;
using hlo_test::TotalPs;

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
  constexpr int64_t kOtherArray =
      64 * 64 * 4;  // bytes, and picoseconds: the chip moves one in each
  const auto rows = [](const std::string& profile, int64_t too_low) {
    const Imported imported = MustImport(Layers(), {}, profile);
    CHECK(imported.summary.too_low_rows == too_low);
    REQUIRE(imported.program->cost().pools.size() == 1);
    return imported.program->cost().pools[0].rows;
  };
  const std::string exactly =
      R"({"layer1": [["0", "0", 32768], ["1", "0", 16384], ["1", "1", 1]]})";
  CHECK(rows(exactly, 0) ==
        std::vector<CostRow>{{0, 0, 2 * kOtherArray}, {1, 0, kOtherArray}, {1, 1, 1}});
  const std::string below =
      R"({"layer1": [["0", "0", 32767], ["1", "0", 16384]],
          "layer2": [["0", "1", 16383], ["0", "1", 16383]]})";
  CHECK(rows(below, 2) == std::vector<CostRow>{{1, 0, kOtherArray}});
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
    const absl::StatusOr<Imported> imported = ImportPriced(Layers(), {}, profile);
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
  CHECK(absl::StrContains(ImportPriced(Layers(), {Layers().Bytes(), "garbage"}).status().message(),
                          "priced module 1"));
  ModuleText other = Layers();
  SetCycles(other, "layer1", 1);
  const std::string bytes = other.Bytes();
  // Cut anywhere, it gives an error or fewer prices, and never ends the process.
  for (size_t size = 0; size < bytes.size(); size += 7) {
    const absl::StatusOr<Imported> imported = ImportPriced(Layers(), {bytes.substr(0, size)});
    if (!imported.ok()) CHECK(imported.status().code() == absl::StatusCode::kInvalidArgument);
  }
}

TEST_CASE("Prices of another program or of other hardware are refused") {
  const auto refusal = [](const std::vector<std::string>& priced, const std::string& profile) {
    return std::string(ImportPriced(Layers(), priced, profile).status().message());
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

}  // namespace
}  // namespace mallocgame::hlo
