// Modules that are damaged, contradictory or absurd are refused, saying what is wrong and where.
// None of them ends the process.
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "mallocgame/base/rng.h"
#include "mallocgame/hlo/import/import.h"
#include "tests/catch.h"
#include "tests/hlo/module_text.h"

namespace mallocgame {
namespace {

using hlo_test::ModuleText;
using hlo_test::UnitHardware;

// A loop, a fusion that updates in place, and tuples.
ModuleText Mixed() {
  ModuleText m;
  m.Computation("fused", true)
      .Add("fx = f32[4,128] parameter()")
      .Add("fu = f32[1,128] parameter()")
      .Add("fk = s32[] constant()")
      .Add("fr = f32[4,128] dynamic-update-slice(fx, fu, fk, fk)");
  m.Computation("condition")
      .Add("c = (s32[], f32[4,128]) parameter()")
      .Add("ci = s32[] get-tuple-element(c)")
      .Add("limit = s32[] constant()", "literal { shape { element_type: S32 } s32s: 3 }")
      .Add("go = pred[] compare(ci, limit)", "comparison_direction: 'LT'");
  m.Computation("body")
      .Add("b = (s32[], f32[4,128]) parameter()")
      .Add("bi = s32[] get-tuple-element(b)")
      .Add("bx = f32[4,128] get-tuple-element(b)", "tuple_index: 1")
      .Add("bs = f32[1,128] slice(bx)",
           "slice_dimensions { limit: 1 stride: 1 } slice_dimensions { limit: 128 stride: 1 }")
      .Add("bf = f32[4,128] fusion(bx, bs)", "", {"fused"})
      .Add("one = s32[] constant()", "literal { shape { element_type: S32 } s32s: 1 }")
      .Add("next = s32[] add(bi, one)")
      .Add("br = (s32[], f32[4,128]) tuple(next, bf)");
  m.Computation("main")
      .Add("p = f32[4,128] parameter()")
      .Add("zero = s32[] constant()", "literal { shape { element_type: S32 } s32s: 0 }")
      .Add("start = s32[] copy(zero)")
      .Add("x = f32[4,128] copy(p)")
      .Add("init = (s32[], f32[4,128]) tuple(start, x)")
      .Add("loop = (s32[], f32[4,128]) while(init)", "", {"body", "condition"})
      .Add("r = f32[4,128] get-tuple-element(loop)", "tuple_index: 1");
  return m;
}

absl::Status Refusal(const std::string& bytes) {
  ImportInput input;
  input.module = bytes;
  return ImportHlo(input, UnitHardware()).status();
}

TEST_CASE("the module itself is fine") { CHECK(Refusal(Mixed().Bytes()).ok()); }

TEST_CASE("many uses of a large tuple are refused before they take long") {
  constexpr int kArrays = 20'000;
  ModuleText m;
  m.Computation("main")
      .Add("p = f32[4,128] parameter()")
      .Add("t = (f32[4,128]) tuple(p)")
      .Add("r = f32[4,128] copy(p)");
  for (int k = 1; k < kArrays; ++k) {
    m.at("t").add_operand_ids(m.at("p").id());
    *m.at("t").mutable_shape()->add_tuple_shapes() = m.at("p").shape();
    m.at("r").add_operand_ids(m.at("t").id());
  }
  const absl::Status status = Refusal(m.Bytes());
  CHECK(status.code() == absl::StatusCode::kInvalidArgument);
  CHECK(absl::StrContains(status.message(), "'r' of computation 'main': operands of more than"));
}

TEST_CASE("contradictions are named") {
  using Edit = std::function<void(ModuleText&)>;
  const auto sequence = [](ModuleText& m, int64_t computation) {
    return &(*m.proto().mutable_hlo_module()->mutable_schedule()->mutable_sequences())[computation];
  };
  const std::vector<std::pair<std::string, Edit>> cases = {
      {"no computations",
       [](ModuleText& m) { m.proto().mutable_hlo_module()->clear_computations(); }},
      {"the entry's id 99",
       [](ModuleText& m) { m.proto().mutable_hlo_module()->set_entry_computation_id(99); }},
      {"'bf' of computation 'body': operand id 77",
       [](ModuleText& m) { m.at("bf").set_operand_ids(0, 77); }},
      {"'bx' of computation 'body': operand id",
       [](ModuleText& m) { m.at("bx").set_operand_ids(0, m.at("br").id()); }},
      {"'bf' of computation 'body': operand id",
       [](ModuleText& m) { m.at("bf").set_operand_ids(0, m.at("c").id()); }},
      {"another instruction's too", [](ModuleText& m) { m.at("bf").set_id(m.at("bx").id()); }},
      {"another instruction has its name", [](ModuleText& m) { m.at("bf").set_name("bx"); }},
      {"called computation id 5",
       [](ModuleText& m) { m.at("bf").set_called_computation_ids(0, 5); }},
      {"called computation id 3",
       [](ModuleText& m) { m.at("bf").set_called_computation_ids(0, 3); }},
      {"instructions, the computation has",
       [=](ModuleText& m) { sequence(m, 4)->clear_instruction_ids(); }},
      {"is no instruction of it",
       [=](ModuleText& m) { sequence(m, 3)->set_instruction_ids(1, 12345); }},
      {"stands there twice",
       [=](ModuleText& m) {
         sequence(m, 3)->set_instruction_ids(1, sequence(m, 3)->instruction_ids(0));
       }},
      {"stands before its operand",
       [=](ModuleText& m) { sequence(m, 3)->mutable_instruction_ids()->SwapElements(1, 4); }},
      {"9 instructions, the computation has 8",
       [=](ModuleText& m) { sequence(m, 3)->add_instruction_ids(1); }},
      {"a dimension of -4",
       [](ModuleText& m) { m.at("bf").mutable_shape()->set_dimensions(0, -4); }},
      {"more than",
       [](ModuleText& m) { m.at("bf").mutable_shape()->set_dimensions(0, INT64_MAX); }},
      {"no shape at index {9}", [](ModuleText& m) { m.at("bx").set_tuple_index(9); }},
      {"no shape at index {-1}", [](ModuleText& m) { m.at("bx").set_tuple_index(-1); }},
      {"calls two computations",
       [](ModuleText& m) { m.at("loop").mutable_called_computation_ids()->RemoveLast(); }},
      {"its condition gives 2 arrays",
       [](ModuleText& m) {
         m.at("loop").set_called_computation_ids(1, m.at("loop").called_computation_ids(0));
       }},
      {"1 arrays against 2",
       [](ModuleText& m) { *m.at("loop").mutable_shape() = hlo_test::ParseShape("(s32[])"); }},
      {"make a tuple of", [](ModuleText& m) { m.at("init").mutable_operand_ids()->RemoveLast(); }},
      {"parameter number 0 is missing", [](ModuleText& m) { m.at("b").set_parameter_number(5); }},
      {"parameter number -5", [](ModuleText& m) { m.at("b").set_parameter_number(-5); }},
      {"no parameter 6", [](ModuleText& m) { m.Donate(0, 6); }},
      {"instruction 1 of computation 'body': its name or its opcode is not UTF-8",
       [](ModuleText& m) { m.at("bi").set_name("\xff"); }},
      {"instruction 4 of computation 'body': its name or its opcode is not UTF-8",
       [](ModuleText& m) { m.at("bf").set_opcode("fus\xc0ion"); }},
      {"computation 2: its name is not UTF-8",
       [](ModuleText& m) {
         m.proto().mutable_hlo_module()->mutable_computations(2)->set_name("\xed\xa0\x80");
       }},
      {"hlo_module: its name is not UTF-8",
       [](ModuleText& m) { m.proto().mutable_hlo_module()->set_name("a\xf5"); }},
  };
  for (const auto& [message, edit] : cases) {
    ModuleText module = Mixed();
    edit(module);
    const absl::Status status = Refusal(module.Bytes());
    INFO("wanted: " << message << "\nfound: " << status);
    CHECK(status.code() == absl::StatusCode::kInvalidArgument);
    CHECK(absl::StrContains(status.message(), message));
  }
}

TEST_CASE("computations that nest too deeply") {
  ModuleText m;
  m.Computation("f0", true).Add("x0 = f32[4] parameter()");
  for (int k = 1; k < 500; ++k) {
    m.Computation(absl::StrCat("f", k), true)
        .Add(absl::StrCat("x", k, " = f32[4] parameter()"))
        .Add(absl::StrCat("y", k, " = f32[4] fusion(x", k, ")"), "", {absl::StrCat("f", k - 1)});
  }
  m.Computation("main").Add("p = f32[4] parameter()").Add("r = f32[4] fusion(p)", "", {"f499"});
  CHECK(absl::StrContains(Refusal(m.Bytes()).message(), "nest more than"));
}

TEST_CASE("fused computations shared by many cost no more for it") {
  ModuleText m;
  m.Computation("f0", true)
      .Add("x0 = f32[4,128] parameter()")
      .Add("u0 = f32[1,128] parameter()")
      .Add("k0 = s32[] constant()")
      .Add("y0 = f32[4,128] dynamic-update-slice(x0, u0, k0, k0)");
  for (int k = 1; k < 60; ++k) {
    const std::string below = absl::StrCat("f", k - 1);
    m.Computation(absl::StrCat("f", k), true)
        .Add(absl::StrCat("x", k, " = f32[4,128] parameter()"))
        .Add(absl::StrCat("u", k, " = f32[1,128] parameter()"))
        .Add(absl::StrCat("v", k, " = f32[4,128] fusion(x", k, ", u", k, ")"), "", {below})
        .Add(absl::StrCat("y", k, " = f32[4,128] fusion(v", k, ", u", k, ")"), "", {below});
  }
  m.Computation("main")
      .Add("p = f32[4,128] parameter()")
      .Add("u = f32[1,128] parameter()")
      .Add("r = f32[4,128] fusion(p, u)", "", {"f59"});
  const std::string bytes = m.Bytes();
  ImportInput input;
  input.module = bytes;
  const auto imported = ImportHlo(input, UnitHardware());
  INFO(imported.status());
  REQUIRE(imported.ok());
  CHECK(imported->program->accesses()[1].kind == AccessKind::kUpdate);
}

TEST_CASE("shapes that nest too deeply") {
  ModuleText m;
  m.Computation("main").Add("p = f32[4] parameter()");
  hlo::ShapeProto* shape = m.at("p").mutable_shape();
  for (int k = 0; k < 5000; ++k) {
    shape->set_element_type(hlo::TUPLE);
    shape = shape->add_tuple_shapes();
  }
  CHECK(Refusal(m.Bytes()).code() == absl::StatusCode::kInvalidArgument);
}

TEST_CASE("bytes cut short") {
  const std::string bytes = Mixed().Bytes();
  for (size_t size = 0; size < bytes.size(); ++size) {
    const absl::Status status = Refusal(bytes.substr(0, size));
    REQUIRE((status.ok() || status.code() == absl::StatusCode::kInvalidArgument));
  }
  CHECK_FALSE(Refusal(bytes.substr(0, bytes.size() / 2)).ok());
  CHECK_FALSE(Refusal("").ok());
  CHECK_FALSE(Refusal(std::string(1000, '\xff')).ok());
}

TEST_CASE("bytes changed at random") {
  const std::string bytes = Mixed().Bytes();
  Rng rng(7);
  int refused = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string changed = bytes;
    for (uint32_t k = 1 + rng.Below(3); k > 0; --k) {
      changed[rng.Below(bytes.size())] = static_cast<char>(rng.Below(256));
    }
    const absl::Status status = Refusal(changed);
    REQUIRE((status.ok() || status.code() == absl::StatusCode::kInvalidArgument));
    refused += !status.ok();
  }
  CHECK(refused > 500);
  CHECK(refused < 3000);
}

}  // namespace
}  // namespace mallocgame
