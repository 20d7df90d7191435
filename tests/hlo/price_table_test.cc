// Prices by instruction name, from modules after code generation and from profiles. A row is
// written {operand bits, output bits, cycles}; bit k is of operand or output k.
#include "mallocgame/hlo/cost/price_table.h"

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "mallocgame/hlo/module/hlo.pb.h"
#include "tests/catch.h"
#include "tests/hlo/module_text.h"

namespace mallocgame::hlo {
namespace {

using hlo_test::ModuleText;
using Rows = std::vector<CostRow>;

// sum = p + q, where `fast` names the instructions whose result is in memory space 1, and the
// compiler's estimate for sum is `cycles`.
ModuleText Sum(int64_t cycles, const std::vector<std::string>& fast = {}) {
  ModuleText m;
  m.Computation("main")
      .Add("p = f32[8] parameter()")
      .Add("q = f32[8] parameter()")
      .Add("sum = f32[8] add(p, q)");
  m.at("sum").set_backend_config(absl::StrCat(R"({"estimated_cycles":")", cycles, R"("})"));
  for (const std::string& name : fast)
    m.at(name).mutable_shape()->mutable_layout()->set_memory_space(1);
  return m;
}

TEST_CASE("a module's rows have a bit for each operand and output in fast memory") {
  const auto module = hlo_test::Parse(Sum(0));
  PriceTable table(*module);
  REQUIRE(table.AddModule(Sum(100).Bytes(), "off", 1).ok());
  REQUIRE(table.AddModule(Sum(60, {"q"}).Bytes(), "some", 1).ok());
  REQUIRE(table.AddModule(Sum(40, {"p", "q", "sum"}).Bytes(), "all", 1).ok());
  REQUIRE(table.AddModule(Sum(100).Bytes(), "off again", 1).ok());
  table.Finish();
  REQUIRE(table.instructions().size() == 1);
  const PricedInstruction& sum = table.instructions().at("sum");
  CHECK(sum.operands == 2);
  CHECK(sum.outputs == 1);
  CHECK(sum.rows == Rows{{0, 0, 100}, {2, 0, 60}, {3, 1, 40}});  // sorted; the repetition is gone
}

TEST_CASE("a profile adds rows in the same terms") {
  const auto module = hlo_test::Parse(Sum(0));
  PriceTable table(*module);
  REQUIRE(table.AddProfile(R"({"sum": [["01", "0", 60], ["10", "1", 50]], "gone": [["", "0", 1]]})")
              .ok());
  table.Finish();
  CHECK(table.instructions().at("sum").rows == Rows{{1, 1, 50}, {2, 0, 60}});
  // An instruction that the module does not have is kept, so that it can be counted, without rows.
  CHECK(table.instructions().at("gone").rows.empty());
  CHECK(table.instructions().at("gone").outputs == 1);
}

TEST_CASE("only instructions on the time axis have prices") {
  ModuleText m;
  m.Computation("fused", true).Add("fp = f32[8] parameter()").Add("inside = f32[8] negate(fp)");
  m.Computation("callee").Add("a = f32[8] parameter()").Add("b = f32[8] negate(a)");
  m.Computation("main")
      .Add("p = f32[8] parameter()")
      .Add("f = f32[8] fusion(p)", "", {"fused"})
      .Add("c = f32[8] call(f)", "", {"callee"});
  for (const char* name : {"inside", "b", "f"})
    m.at(name).set_backend_config(R"({"estimated_cycles":"5"})");
  const auto module = hlo_test::Parse(m);
  PriceTable table(*module);
  REQUIRE(table.AddModule(m.Bytes(), "priced", 1).ok());
  CHECK(table.instructions().size() == 2);
  CHECK(table.instructions().contains("b"));
  CHECK(table.instructions().contains("f"));
}

TEST_CASE("rows that contradict each other's form, or the hardware, are refused with their place") {
  const auto module = hlo_test::Parse(Sum(0));
  PriceTable table(*module);
  REQUIRE(table.AddProfile(R"({"sum": [["00", "0", 1]]})").ok());
  CHECK(absl::StrContains(
      table.AddProfile(R"({"sum": [["00", "0", 1], ["0", "0", 1]]})").message(),
      "profile: instruction 'sum' row 1: instruction 'sum' has 1 operands and 1 output arrays "
      "here, 2 and 1 before"));
  CHECK(absl::StrContains(table.AddProfile(R"({"sum": [["0x", "0", 1]]})").message(),
                          "strings of 0 and 1"));
  CHECK(absl::StrContains(table.AddProfile(R"({"sum": [["00", "0", 1000000000000001]]})").message(),
                          "cycles must be an integer from 0 to 1000000000000000"));
  // The module uses memory space 1, which is not the fast memory of hardware with space 3.
  CHECK(absl::StrContains(table.AddModule(Sum(1, {"p"}).Bytes(), "other", 3).message(),
                          "other: arrays lie in memory space S(1), the fast memory of tpu_v5p, "));
}

TEST_CASE("the estimate in a backend configuration") {
  CHECK(EstimatedCycles(R"({"a":{"estimated_cycles":"123"}})") == 123);
  CHECK(EstimatedCycles(R"({"estimated_cycles" : 7, "b": 1})") == 7);
  CHECK(EstimatedCycles(R"({"note":"\"estimated_cycles\":5"})") == std::nullopt);
  CHECK(EstimatedCycles(R"({"note":"estimated_cycles","estimated_cycles":"9"})") == 9);
  CHECK(EstimatedCycles(R"({"estimated_cycles":"-1"})") == std::nullopt);
  CHECK(EstimatedCycles(R"({"estimated_cycles":"99999999999999999999999"})") == std::nullopt);
  CHECK(EstimatedCycles(R"({"estimated_cycles":"9223372036854775807"})") == std::nullopt);
  CHECK(EstimatedCycles(R"({"estimated_cycles":"9223372036854770000"})") == std::nullopt);
  CHECK(EstimatedCycles(R"({"estimated_cycles)") == std::nullopt);
  CHECK(EstimatedCycles(R"("estimated_cycles":)") == std::nullopt);
  CHECK(EstimatedCycles("") == std::nullopt);
}

}  // namespace
}  // namespace mallocgame::hlo
