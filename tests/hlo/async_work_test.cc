// Work that runs beside the program, and what isn't known of what an instruction computes.
#include "mallocgame/hlo/cost/async_work.h"

#include <string>
#include <vector>

#include "mallocgame/hlo/import/import.h"
#include "tests/catch.h"
#include "tests/hlo/module_text.h"

namespace mallocgame::hlo {
namespace {

using hlo_test::ModuleText;
using hlo_test::UnitHardware;

constexpr int64_t kArrayBytes = int64_t{300} * 1024 * 4;  // of x, y and so on

std::vector<AsyncWork> AsyncWorkIn(const ModuleText& text) {
  const auto module = hlo_test::Parse(text);
  return AsyncWorkOf(*module, *Flatten(*module), CostAnalysis(*module));
}

Imported ImportedWhole(const ModuleText& text) {
  const std::string bytes = text.Bytes();
  ImportInput input;
  input.module = bytes;
  auto imported = ImportHlo(input, UnitHardware());
  REQUIRE(imported.ok());
  return *std::move(imported);
}

// Two instructions, behind a call.
ModuleText WithWrapped() {
  ModuleText m;
  m.Computation("callee")
      .Add("u = f32[300,1024] parameter()")
      .Add("v = f32[300,1024] parameter()")
      .Add("s = f32[300,1024] add(u, v)")
      .Add("e = f32[300,1024] exponential(s)");
  m.Computation("wrapped")
      .Add("u.w = f32[300,1024] parameter()")
      .Add("v.w = f32[300,1024] parameter()")
      .Add("c = f32[300,1024] call(u.w, v.w)", "", {"callee"});
  m.Computation("main").Add("x = f32[300,1024] parameter()").Add("y = f32[300,1024] parameter()");
  return m;
}

TEST_CASE("what an async-start wraps takes the time of its instructions until its end") {
  ModuleText m = WithWrapped();
  m.Add("start = ((f32[300,1024], f32[300,1024]), f32[300,1024], u32[]) async-start(x, y)", "",
        {"wrapped"})
      .Add("a = f32[300,1024] negate(x)")
      .Add("done = f32[300,1024] async-done(start)")
      .Add("r = f32[300,1024] add(a, done)");
  const std::vector<AsyncWork> work = AsyncWorkIn(m);
  REQUIRE(work.size() == 1);
  CHECK(work[0].begin == 2);
  CHECK(work[0].end == 4);
  CHECK(work[0].bytes == 5 * kArrayBytes);
  CHECK(work[0].operations.flops == kArrayBytes / 4);
  CHECK(work[0].operations.transcendentals == kArrayBytes / 4);
  const Imported imported = ImportedWhole(m);
  CHECK(imported.summary.async_computations == 1);
  // The negation hides its own arithmetic, and no more is certain.
  CHECK(imported.program->cost().instructions[4].link_ps == 5 * kArrayBytes - kArrayBytes / 4);
}

TEST_CASE("an async-update may bring what the computation needs to begin") {
  ModuleText m = WithWrapped();
  m.Add("start = ((), f32[300,1024], u32[]) async-start()", "", {"wrapped"})
      .Add("a = f32[300,1024] negate(x)")
      .Add("go = ((f32[300,1024], f32[300,1024]), f32[300,1024], u32[]) async-update(start, a, y)")
      .Add("done = f32[300,1024] async-done(go)");
  const std::vector<AsyncWork> work = AsyncWorkIn(m);
  REQUIRE(work.size() == 1);
  CHECK(work[0].begin == 4);
  CHECK(work[0].end == 5);
}

TEST_CASE("a copy within main memory reads and writes it, beside the program") {
  ModuleText m;
  m.Computation("main")
      .Add("x = f32[300,1024] parameter()")
      .Add("start = (f32[300,1024], f32[300,1024], u32[]) copy-start(x)")
      .Add("done = f32[300,1024] copy-done(start)");
  const std::vector<AsyncWork> work = AsyncWorkIn(m);
  REQUIRE(work.size() == 1);
  CHECK(work[0].bytes == 2 * kArrayBytes);
  CHECK(ImportedWhole(m).program->cost().instructions[2].link_ps == 2 * kArrayBytes);
}

TEST_CASE("a collective over links that nothing is known of moves its arrays, and is told") {
  ModuleText m;
  m.Computation("main")
      .Add("x = f32[300,1024] parameter()")
      .Add("start = (f32[300,1024], f32[600,1024]) all-gather-start(x)")
      .Add("done = f32[600,1024] all-gather-done(start)");
  const Imported imported = ImportedWhole(m);
  CHECK(imported.summary.linkless_collectives == 1);
  CHECK(imported.program->cost().instructions[2].link_ps == 3 * kArrayBytes);
}

TEST_CASE("calls of cuBLAS and cuDNN have flops, other custom calls are told") {
  ModuleText m;
  m.Computation("main")
      .Add("x = f32[64,128] parameter()")
      .Add("w = f32[32,128] parameter()")
      .Add("g = (f32[64,32], s8[99]) custom-call(x, w)",
           R"(custom_call_target: "__cublas$lt$matmul" backend_config: )"
           R"('{"gemm_backend_config":{"dot_dimension_numbers":{)"
           R"("lhs_contracting_dimensions":["1"],"rhs_contracting_dimensions":["1"]}}}')")
      .Add("i = f32[1,8,8,4] parameter()")
      .Add("k = f32[3,3,4,16] parameter()");
  const std::string dims =
      "window { dimensions { size: 3 stride: 1 window_dilation: 1 base_dilation: 1 } "
      "dimensions { size: 3 stride: 1 window_dilation: 1 base_dilation: 1 } } "
      "convolution_dimension_numbers { input_batch_dimension: 0 input_feature_dimension: 3 "
      "input_spatial_dimensions: [1, 2] kernel_input_feature_dimension: 2 "
      "kernel_output_feature_dimension: 3 kernel_spatial_dimensions: [0, 1] "
      "output_batch_dimension: 0 output_feature_dimension: 3 output_spatial_dimensions: [1, 2] } ";
  m.Add("c = (f32[1,6,6,16], u8[1000]) custom-call(i, k)",
        dims + R"(custom_call_target: "__cudnn$convForward")")
      .Add("o = f32[1,6,6,16] get-tuple-element(c)")
      .Add("d = (f32[1,8,8,4], u8[1000]) custom-call(o, k)",
           dims + R"(custom_call_target: "__cudnn$convBackwardInput")")
      .Add("f = (f32[3,3,4,16], u8[1000]) custom-call(i, o)",
           dims + R"(custom_call_target: "__cudnn$convBackwardFilter")")
      .Add("any = f32[64,128] custom-call(x)", R"(custom_call_target: "ping")");
  const Imported imported = ImportedWhole(m);
  const auto& cost = imported.program->cost().instructions;
  CHECK(cost[2].flops == 2 * 64 * 32 * 128);
  constexpr int64_t kConvolution = int64_t{2} * 4 * 16 * 9 * 36;
  CHECK(cost[5].flops == kConvolution);
  CHECK(cost[7].flops == kConvolution);
  CHECK(cost[8].flops == kConvolution);
  CHECK(cost[5].outputs.at(0).accessed_bytes == 6 * 6 * 16 * 4);
  CHECK(cost[5].outputs.at(1).accessed_bytes == 0);  // a workspace
  CHECK(cost[9].flops == 0);
  CHECK(imported.summary.opaque_calls == 1);
}

}  // namespace
}  // namespace mallocgame::hlo
