// What kind of work instructions do, and how wide it is.
#include "mallocgame/hlo/cost/work_class.h"

#include <memory>
#include <string>

#include "tests/catch.h"
#include "tests/hlo/module_text.h"

namespace mallocgame::hlo {
namespace {

using hlo_test::ModuleText;

TEST_CASE("instructions are of the class of all that they compute, and of its width") {
  ModuleText m;
  m.Computation("sum", /*fused=*/true)
      .Add("sum.a = f32[] parameter()")
      .Add("sum.b = f32[] parameter()")
      .Add("sum.c = f32[] add(sum.a, sum.b)");
  m.Computation("product", /*fused=*/true)
      .Add("product.a = bf16[64,64] parameter()")
      .Add("product.b = bf16[64,64] parameter()")
      .Add("product.c = f32[64,64] dot(product.a, product.b)",
           "dot_dimension_numbers { lhs_contracting_dimensions: 1 rhs_contracting_dimensions: 0 }")
      .Add("product.d = f32[64,64] tanh(product.c)");
  m.Computation("moves", /*fused=*/true)
      .Add("moves.a = bf16[64,64] parameter()")
      .Add("moves.b = bf16[64,64] copy(moves.a)");
  m.Computation("entry")
      .Add("a = bf16[64,64] parameter()")
      .Add("b = bf16[64,64] parameter()")
      .Add("zero = f32[] constant()")
      .Add("matmul = f32[64,64] fusion(a, b)", "fusion_kind: 'kOutput'", {"product"})
      .Add("reduction = f32[64] reduce(matmul, zero)", "dimensions: 1", {"sum"})
      .Add("moved = bf16[64,64] fusion(a)", "fusion_kind: 'kLoop'", {"moves"})
      .Add("vector = bf16[64,64] add(moved, b)")
      .Add("kernel = bf16[64,64] custom-call(vector)", "custom_call_target: 'Mystery'")
      .Add("root = (f32[64], bf16[64,64]) tuple(reduction, kernel)");
  const auto parsed = Module::Parse(m.Bytes(), "module");
  REQUIRE(parsed.ok());
  const Module& module = **parsed;
  const WorkClasses classes(module);
  const auto work = [&](const std::string& name) { return classes.Of(*module.FindByName(name)); };
  CHECK(work("matmul") == WorkClass::kMatmul);
  CHECK(work("reduction") == WorkClass::kReduction);
  CHECK(work("moved") == WorkClass::kCopy);
  CHECK(work("vector") == WorkClass::kVector);
  CHECK(work("kernel") == WorkClass::kKernel);
  const auto bits = [&](const std::string& name) {
    return WidestElementBits(module, *module.FindByName(name));
  };
  // A third of the elements is f32, and nearly all that is reduced.
  CHECK(bits("matmul") == 32);
  CHECK(bits("reduction") == 32);
  CHECK(bits("vector") == 16);
}

}  // namespace
}  // namespace mallocgame::hlo
