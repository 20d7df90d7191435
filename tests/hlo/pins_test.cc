// What kernels pin to a memory, and what the DMAs that they begin hold.
#include "mallocgame/hlo/import/pins.h"

#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "mallocgame/hlo/import/import.h"
#include "mallocgame/plan/pinned.h"
#include "mallocgame/plan/validate.h"
#include "tests/catch.h"
#include "tests/hlo/module_text.h"

namespace mallocgame::hlo {
namespace {

using hlo_test::ModuleText;
using hlo_test::UnitHardware;

constexpr char kArray[] = "f32[64,128]";  // 32 KiB

std::string KernelCall(const std::string& operands, const std::string& results = "") {
  return absl::StrCat("custom_call_target: 'tpu_custom_call' backend_config: '{",
                      "\"input_memory_space_colors\":[", operands,
                      "],\"output_memory_space_colors\":[", results, "]}'");
}

std::string Operand(int number, int space) {
  return absl::StrCat("{\"operand_index\":\"", number, "\",\"color\":\"", space,
                      "\",\"shape_index\":[]}");
}

absl::StatusOr<Imported> Import(const ModuleText& m, const Hardware& hardware = UnitHardware()) {
  const std::string bytes = m.Bytes();
  ImportInput input;
  input.module = bytes;
  return ImportHlo(input, hardware);
}

// "k: s fast, t main" for the accesses of an instruction that are pinned or held.
std::string PinsOf(const Program& program, const std::string& name) {
  std::string text;
  for (const Access& a : program.accesses()) {
    if (program.instruction(a.tick).name != name) continue;
    absl::StrAppend(&text, text.empty() ? "" : ", ", program.buffer(a.buffer).name,
                    a.pin == Pin::kFast   ? " fast"
                    : a.pin == Pin::kMain ? " main"
                                          : "");
    if (a.held_until > 0)
      absl::StrAppend(&text, " until ", program.instruction(a.held_until - 1).name);
  }
  return text;
}

TEST_CASE("a kernel pins its operands to either memory, and plans keep to it") {
  ModuleText m;
  m.Computation("main")
      .Add("p = f32[64,128] parameter()")
      .Add("s = f32[64,128] negate(p)")
      .Add("t = f32[64,128] cosine(p)")
      .Add("k = f32[64,128] custom-call(s, t, p)",
           KernelCall(absl::StrCat(Operand(0, 1), ",", Operand(1, 0), ",", Operand(2, 1))))
      .Add("r = f32[64,128] add(k, s)");
  const auto imported = Import(m);
  INFO(imported.status());
  REQUIRE(imported.ok());
  const Program& program = *imported->program;
  CHECK(PinsOf(program, "k") == "s fast, t main, p fast, k");
  CHECK_FALSE(program.data().has_dependences);
  const Hardware hardware = UnitHardware();
  const Plan plan = AllMainPlan(program, hardware);
  CHECK(Validate(program, hardware, plan).message == "");
  // s stays all its life; the parameter is copied for the kernel only.
  REQUIRE(plan.residences.size() == 2);
  REQUIRE(plan.copies.size() == 1);
  CHECK(plan.residences[plan.copies[0].residence.index()].buffer.value == 0);
  for (size_t a = 0; a < plan.served_by.size(); ++a) {
    if (program.accesses()[a].pin != Pin::kFast) continue;
    Plan moved = plan;
    moved.served_by[a] = ResidenceId();
    const Verdict verdict = Validate(program, hardware, moved);
    CHECK(verdict.rule == Rule::kEligible);
    CHECK(absl::StrContains(verdict.message, "and the kernel pins it to fast memory"));
  }
}

TEST_CASE("a result that is pinned to fast memory lies there all its life") {
  ModuleText m;
  const std::string fast = "f32[64,128]{1,0:S(1)}";
  m.Computation("main")
      .Add("p = f32[64,128] parameter()")
      .Add(absl::StrCat("k = ", fast, " custom-call(p)"),
           KernelCall("", "{\"color\":\"1\",\"shape_index\":[]}"))
      .Add("s = f32[64,128] negate(k)")
      .Add("r = f32[64,128] add(k, s)");
  const auto imported = Import(m);
  INFO(imported.status());
  REQUIRE(imported.ok());
  const Program& program = *imported->program;
  CHECK(PinsOf(program, "k") == "p, k fast");
  CHECK(PinsOf(program, "r") == "k fast, s, r");
  const Plan plan = AllMainPlan(program, UnitHardware());
  REQUIRE(plan.residences.size() == 1);
  CHECK(plan.residences[0] == Residence{program.accesses()[1].buffer, 0, 1, 4});
  CHECK(plan.copies.empty());

  m.at("k").set_custom_call_target("other");
  m.at("k").clear_backend_config();
  CHECK(Import(m).ok());  // the layout alone says as much
  m.at("k").set_opcode("sine");
  // No kernel: memory space assignment has put it there, and the import brings it back.
  CHECK(Import(m)->summary.unassigned_arrays == 1);
}

TEST_CASE("what can't be kept where it is pinned is refused") {
  ModuleText m;
  m.Computation("main")
      .Add("p = f32[64,128] parameter()")
      .Add("k = f32[64,128] custom-call(p, p)",
           KernelCall(absl::StrCat(Operand(0, 1), ",", Operand(1, 0))));
  CHECK(absl::StrContains(Import(m).status().message(),
                          "'k' of computation 'main': operand 1 is pinned to main memory and to "
                          "fast memory"));
  m.at("k").set_backend_config(
      absl::StrCat("{\"input_memory_space_colors\":[", Operand(0, 1), "]}"));
  CHECK(Import(m).ok());
  Hardware small = UnitHardware();
  small.fast_bytes = 16 << 10;
  CHECK(absl::StrContains(Import(m, small).status().message(), "needs 32768 bytes of it"));
  m.at("k").set_backend_config(
      R"({"output_memory_space_colors":[{"color":"1","shape_index":[]}]})");
  CHECK(absl::StrContains(Import(m).status().message(), "the program ends with it in main memory"));
}

TEST_CASE("a DMA that one kernel begins and another waits for holds what both have") {
  ModuleText m;
  m.Computation("main")
      .Add("p = f32[64,128] parameter()")
      .Add("x = f32[64,128] negate(p)")
      .Add("y = f32[64,128] cosine(p)")
      .Add("start = (f32[64,128], s32[]{:S(2)}) custom-call(x, y)", KernelCall(""))
      .Add("o = f32[64,128] get-tuple-element(start)")
      .Add("flag = s32[]{:S(2)} get-tuple-element(start)", "tuple_index: 1")
      .Add("w = f32[64,128] sine(p)")
      .Add("done = f32[64,128] custom-call(x, o, flag)", KernelCall(""))
      .Add("r = f32[64,128] add(done, w)");
  const auto imported = Import(m);
  INFO(imported.status());
  REQUIRE(imported.ok());
  CHECK(PinsOf(*imported->program, "start") == "x until done, y main, start{0} until done");
  CHECK(PinsOf(*imported->program, "done") == "x, start{0}, done");
}

}  // namespace
}  // namespace mallocgame::hlo
