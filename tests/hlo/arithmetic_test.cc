// Operations from shapes. The expected numbers are products written out.
#include "mallocgame/hlo/arithmetic.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/catch.h"
#include "tests/hlo/module_text.h"

namespace mallocgame::hlo {
namespace {

using hlo_test::ModuleText;

TEST_CASE("sums and products stop at their limit, also where an int64 would overflow") {
  CHECK(AddUpTo(3, 4, 10) == 7);
  CHECK(AddUpTo(6, 4, 10) == 10);
  CHECK(AddUpTo(7, 4, 10) == 10);
  CHECK(AddUpTo(INT64_MAX, INT64_MAX, INT64_MAX) == INT64_MAX);
  CHECK(TimesUpTo(3, 3, 10) == 9);
  CHECK(TimesUpTo(3, 4, 10) == 10);
  CHECK(TimesUpTo(INT64_MAX, 2, 10) == 10);
  CHECK(TimesUpTo(INT64_MAX, 0, 10) == 0);
}

ModuleText Arrays() {
  ModuleText m;
  m.Computation("sum", true)
      .Add("l = f32[] parameter()")
      .Add("r = f32[] parameter()")
      .Add("s = f32[] add(l, r)");
  m.Computation("main")
      .Add("a = f32[8,32] parameter()")
      .Add("b = f32[32,4] parameter()")
      .Add("zero = f32[] parameter()")
      .Add("line = f32[1,4,2] parameter()")  // batch, position, feature
      .Add("taps = f32[3,2,5] parameter()")  // position, feature in, feature out
      .Add("rows = s32[3] parameter()")
      .Add("updates = f32[3,32] parameter()");
  return m;
}

Arithmetic Of(ModuleText m, const std::string& line, const std::string& extra = "",
              const std::string& called = "") {
  m.Add(absl::StrCat("x = ", line), extra,
        called.empty() ? std::vector<std::string>{} : std::vector<std::string>{called});
  const auto module = hlo_test::Parse(m);
  return ArithmeticOf(*module, hlo_test::Named(*module, "x"));
}

TEST_CASE("elementwise instructions do one operation for each element") {
  CHECK(Of(Arrays(), "f32[8,32] negate(a)").flops == 8 * 32);
  CHECK(Of(Arrays(), "f32[8,32] negate(a)").transcendentals == 0);
  CHECK(Of(Arrays(), "f32[8,32] tanh(a)").flops == 0);
  CHECK(Of(Arrays(), "f32[8,32] tanh(a)").transcendentals == 8 * 32);
  CHECK(Of(Arrays(), "f32[8,32] copy(a)").flops == 0);
}

TEST_CASE("a dot multiplies and adds once for each output and contracted position") {
  CHECK(Of(Arrays(), "f32[8,4] dot(a, b)",
           "dot_dimension_numbers { lhs_contracting_dimensions: 1 rhs_contracting_dimensions: 0 }")
            .flops == 2 * (8 * 4) * 32);
}

// A convolution over one spatial dimension.
int64_t ConvolutionFlops(const std::string& output, const std::string& window) {
  return Of(Arrays(), absl::StrCat("f32[1,", output, ",5] convolution(line, taps)"),
            absl::StrCat("convolution_dimension_numbers { input_batch_dimension: 0 "
                         "input_spatial_dimensions: 1 input_feature_dimension: 2 "
                         "kernel_spatial_dimensions: 0 kernel_input_feature_dimension: 1 "
                         "kernel_output_feature_dimension: 2 output_batch_dimension: 0 "
                         "output_spatial_dimensions: 1 output_feature_dimension: 2 } window { "
                         "dimensions { size: 3 ",
                         window, " } }"))
      .flops;
}

TEST_CASE("a convolution counts the kernel positions that meet a value") {
  constexpr int64_t kEach = 2 * 2 * 5;  // multiply and add, for each feature in and out
  // 4 positions under a kernel of 3: two outputs, all taps meet values.
  CHECK(ConvolutionFlops("2", "stride: 1") == kEach * 6);
  // Padding of one on both sides: the outermost tap of the first and the last output meets padding.
  CHECK(ConvolutionFlops("4", "stride: 1 padding_low: 1 padding_high: 1") == kEach * (3 * 4 - 2));
  // Stride 2 with padding of one before: outputs at -1 and 1, so only the first tap meets padding.
  CHECK(ConvolutionFlops("2", "stride: 2 padding_low: 1") == kEach * 5);
  // The input dilated by two is v.v.v.v, 7 positions and 5 outputs. Those at even positions meet
  // two values, those at odd positions one: 2 + 1 + 2 + 1 + 2.
  CHECK(ConvolutionFlops("5", "stride: 1 base_dilation: 2") == kEach * 8);
  // The kernel dilated by two reaches over 5 positions, so two outputs need padding of one on both
  // sides: each has one tap in the padding.
  CHECK(ConvolutionFlops("2", "stride: 1 window_dilation: 2 padding_low: 1 padding_high: 1") ==
        kEach * 4);
}

TEST_CASE("a sort compares each element once for each level") {
  CHECK(Of(Arrays(), "f32[8,32] sort(a)", "", "sum").flops == 256 * 8);  // 2^8 elements
  CHECK(Of(Arrays(), "s32[3] sort(rows)", "", "sum").flops == 3 * 2);
  CHECK(Of(Arrays(), "f32[] sort(zero)", "", "sum").flops == 0);
}

TEST_CASE("reductions, maps and scatters run the computation that they call") {
  // From 8 x 32 numbers to 8 takes 8 x 31 additions.
  CHECK(Of(Arrays(), "f32[8] reduce(a, zero)", "dimensions: 1", "sum").applications == 8 * 31);
  CHECK(Of(Arrays(), "f32[8,32] map(a, a)", "", "sum").applications == 8 * 32);
  // Each of the outputs reduces a window of 2 x 4, which takes 7 additions.
  CHECK(Of(Arrays(), "f32[4,8] reduce-window(a, zero)",
           "window { dimensions { size: 2 stride: 2 } dimensions { size: 4 stride: 4 } }", "sum")
            .applications == 4 * 8 * 7);
  CHECK(Of(Arrays(), "f32[8,32] scatter(a, rows, updates)", "", "sum").applications == 3 * 32);
  // What it runs is counted by the caller, not here.
  CHECK(Of(Arrays(), "f32[8] reduce(a, zero)", "dimensions: 1", "sum").flops == 0);
}

}  // namespace
}  // namespace mallocgame::hlo
