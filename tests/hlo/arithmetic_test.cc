// Operations from shapes. The expected numbers are products written out.
#include "mallocgame/hlo/cost/arithmetic.h"

#include <string>
#include <vector>

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

// `more` are instructions too.
ModuleText Arrays(const std::vector<std::string>& more = {}) {
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
  for (const std::string& line : more) m.Add(line);
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

// How often the first and the second called computation run: "3 0".
std::string Runs(const std::string& line, const std::string& extra = "") {
  const Arithmetic arithmetic = Of(Arrays(), line, extra, "sum");
  // What they run is counted by the caller, not here.
  CHECK(arithmetic.flops == 0);
  CHECK(arithmetic.transcendentals == 0);
  return absl::StrCat(arithmetic.applications[0], " ", arithmetic.applications[1]);
}

TEST_CASE("reductions, maps and scatters run the computation that they call") {
  // From 8 x 32 numbers to 8 takes 8 x 31 additions.
  CHECK(Runs("f32[8] reduce(a, zero)", "dimensions: 1") == absl::StrCat(8 * 31, " 0"));
  CHECK(Runs("f32[8,32] map(a, a)") == absl::StrCat(8 * 32, " 0"));
  CHECK(Runs("f32[8,32] scatter(a, rows, updates)") == absl::StrCat(3 * 32, " 0"));
  // A scan over the eight rows runs its computation for each.
  CHECK(Runs("(f32[8,32], f32[]) scan(a, zero)", "dimensions: 0") == "8 0");
  // Of each window of 2 x 4 one value is selected by 7 comparisons, and one update added to it.
  CHECK(Runs("f32[8,32] select-and-scatter(a, updates, zero)",
             "window { dimensions { size: 2 stride: 2 } dimensions { size: 4 stride: 4 } }") ==
        absl::StrCat(3 * 32 * 7, " ", 3 * 32));
  CHECK(Runs("f32[8,32] fusion(a)") == "1 1");
}

TEST_CASE("a reduce-window combines what is in each window") {
  // Each of the outputs reduces a window of 2 x 4, which takes 7 additions.
  CHECK(Runs("f32[4,8] reduce-window(a, zero)",
             "window { dimensions { size: 2 stride: 2 } dimensions { size: 4 stride: 4 } }") ==
        absl::StrCat(4 * 8 * 7, " 0"));
  // A running sum of each row: the window reaches back over all 32 columns.
  CHECK(Runs("f32[8,32] reduce-window(a, zero)",
             "window { dimensions { size: 1 stride: 1 } dimensions { size: 32 stride: 1 "
             "padding_low: 31 } }") == absl::StrCat(8 * 32 * 31, " 0"));
  // If it reaches forth as well, then all windows of a row have one value. XLA counts so.
  CHECK(Runs("f32[8,32] reduce-window(a, zero)",
             "window { dimensions { size: 1 stride: 1 } dimensions { size: 63 stride: 1 "
             "padding_low: 31 padding_high: 31 } }") == absl::StrCat(8 + 31, " 0"));
}

TEST_CASE("a dot of groups does what a dot of one group does") {
  const auto arrays = [] { return Arrays({"stack = f32[3,32,4] parameter()"}); };
  const std::string dims =
      "dot_dimension_numbers { lhs_contracting_dimensions: 1 rhs_contracting_dimensions: ";
  // Each of the 8 rows is multiplied by one of three matrices.
  CHECK(Of(arrays(), "f32[8,4] ragged-dot(a, stack, rows)",
           absl::StrCat("ragged_dot_dimension_numbers { ", dims,
                        "1 } lhs_ragged_dimensions: 0 rhs_group_dimensions: 0 }"))
            .flops == 2 * (8 * 4) * 32);
  // The 32 columns are of three groups, and the result has a matrix for each.
  CHECK(Of(arrays(), "f32[3,8,4] ragged-dot(a, b, rows)",
           absl::StrCat("ragged_dot_dimension_numbers { ", dims, "0 } lhs_ragged_dimensions: 1 }"))
            .flops == 2 * (8 * 4) * 32);
  CHECK(Of(arrays(), "f32[8,4] scaled-dot(a, b, a, b)", absl::StrCat(dims, "0 }")).flops ==
        2 * (8 * 4) * 32);
}

TEST_CASE("transforms, solvers and random numbers have costs of their own") {
  // Eight transforms of 32 values: 5 levels, each with a multiplication of complex numbers.
  CHECK(Of(Arrays(), "c64[8,17] fft(a)", "fft_length: 32").flops == 2 * 4 * 5 * (8 * 32));
  CHECK(Of(Arrays(), "f32[8,32] fft(a)", "fft_length: 8 fft_length: 32").flops ==
        2 * 4 * (3 * 5) * (8 * 32));
  const auto arrays = [] {
    return Arrays({"square = f32[2,6,6] parameter()", "right = f32[2,6,5] parameter()"});
  };
  CHECK(Of(arrays(), "f32[2,6,5] triangular-solve(square, right)").flops == 2 * 6 * (2 * 6 * 5));
  CHECK(Of(arrays(), "f32[2,6,6] cholesky(square)").flops == 6 * (2 * 6 * 6) / 3);
  CHECK(Of(arrays(), "f32[2,5] rng(zero, zero)").transcendentals == 2 * 5);
  CHECK(Of(arrays(), "(u32[2], u32[2,5]) rng-bit-generator(rows)").transcendentals == 2 + 2 * 5);
  CHECK(Of(arrays(), "f32[8,32] acosh(a)").transcendentals == 8 * 32);
  CHECK(Of(arrays(), "s32[3] mulhi(rows, rows)").flops == 3);
}

}  // namespace
}  // namespace mallocgame::hlo
