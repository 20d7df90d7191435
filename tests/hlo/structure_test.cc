// Which instructions have one structure.
#include "mallocgame/hlo/module/structure.h"

#include <string>

#include "mallocgame/hlo/module/hlo.pb.h"
#include "tests/catch.h"
#include "tests/hlo/module_text.h"

namespace mallocgame::hlo {
namespace {

using hlo_test::ModuleText;

bool Same(const ModuleText& text, const std::string& a, const std::string& b) {
  const auto module = hlo_test::Parse(text);
  Structures structures(*module);
  const int32_t of_a = structures.Of(hlo_test::Named(*module, a));
  const int32_t of_b = structures.Of(hlo_test::Named(*module, b));
  CHECK(of_a == structures.Of(hlo_test::Named(*module, a)));  // asked again, the same
  return of_a == of_b;
}

// x = fusion(p, q) and y = fusion(q, p) of two computations that are written alike.
ModuleText Twins() {
  ModuleText m;
  for (const std::string k : {"1", "2"}) {
    m.Computation("fused" + k, true)
        .Add("a" + k + " = f32[8,128] parameter()")
        .Add("b" + k + " = f32[8,128] parameter()")
        .Add("s" + k + " = f32[8,128] subtract(a" + k + ", b" + k + ")");
  }
  m.Computation("main")
      .Add("p = f32[8,128] parameter()")
      .Add("q = f32[8,128] parameter()")
      .Add("x = f32[8,128] fusion(p, q)", "fusion_kind: 'kLoop'", {"fused1"})
      .Add("y = f32[8,128] fusion(q, p)", "fusion_kind: 'kLoop'", {"fused2"});
  return m;
}

TEST_CASE("names, ids, memory spaces and backend configuration make no difference") {
  ModuleText m = Twins();
  CHECK(Same(m, "x", "y"));
  m.at("y").mutable_shape()->mutable_layout()->set_memory_space(1);
  m.at("b2").mutable_shape()->mutable_layout()->set_memory_space(1);
  m.at("y").set_backend_config("{}");
  m.at("y").set_channel_id(7);
  CHECK(Same(m, "x", "y"));
}

TEST_CASE("opcodes, shapes, layouts and attributes make one, also inside of what is called") {
  const auto differs = [](auto change) {
    ModuleText m = Twins();
    change(m);
    return !Same(m, "x", "y");
  };
  CHECK(differs([](ModuleText& m) { m.at("y").set_fusion_kind("kInput"); }));
  CHECK(differs([](ModuleText& m) { m.at("s2").set_opcode("add"); }));
  CHECK(differs([](ModuleText& m) { m.at("s2").add_dimensions(0); }));
  CHECK(differs([](ModuleText& m) { m.at("s2").mutable_shape()->set_dimensions(0, 9); }));
  CHECK(differs([](ModuleText& m) {
    m.at("y").mutable_shape()->mutable_layout()->mutable_minor_to_major()->SwapElements(0, 1);
  }));
  // a - b and b - a are the same instructions, with operands in another order.
  CHECK(differs([](ModuleText& m) { m.at("s2").mutable_operand_ids()->SwapElements(0, 1); }));
}

TEST_CASE("an operand that is given twice is not two operands") {
  ModuleText m;
  m.Computation("main")
      .Add("p = f32[8] parameter()")
      .Add("q = f32[8] parameter()")
      .Add("twice = f32[8] add(p, p)")
      .Add("again = f32[8] add(q, q)")
      .Add("two = f32[8] add(p, q)");
  CHECK(Same(m, "twice", "again"));
  CHECK_FALSE(Same(m, "twice", "two"));
}

TEST_CASE("neighbouring parts of a description are not mixed up") {
  ModuleText m;
  m.Computation("main")
      .Add("p = f32[8] parameter()")
      .Add("x = f32[8] reverse(p)", "dimensions: [0, 0] fft_length: 1")
      .Add("y = f32[8] reverse(p)", "dimensions: 0 dynamic_slice_sizes: 0 fft_length: 1")
      // If texts had no lengths before them, both of these would be an a and the numbers 0 0 1 0.
      .Add("z = f32[8] custom-call(p)", "custom_call_target: 'a' fft_length: 0")
      .Add("w = f32[8] custom-call(p)",
           R"(custom_call_target: 'a\000\000\000\000\000\000\000\000' fft_type: 1)");
  CHECK_FALSE(Same(m, "x", "y"));
  CHECK_FALSE(Same(m, "z", "w"));
}

TEST_CASE("how a tuple nests has no bearing") {
  ModuleText m;
  m.Computation("main")
      .Add("flat = (f32[8], f32[4], f32[2]) parameter()")
      .Add("deep = (f32[8], (f32[4], f32[2])) parameter()")
      .Add("other = (f32[8], f32[2], f32[4]) parameter()")
      .Add("x = f32[8] custom-call(flat)")
      .Add("y = f32[8] custom-call(deep)")
      .Add("z = f32[8] custom-call(other)");
  CHECK(Same(m, "x", "y"));
  CHECK_FALSE(Same(m, "x", "z"));
}

}  // namespace
}  // namespace mallocgame::hlo
