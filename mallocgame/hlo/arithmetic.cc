// Counts the work of dot, convolution, sort, reductions, elementwise instructions and kernels. All
// others compute nothing.
#include "mallocgame/hlo/arithmetic.h"

#include <algorithm>
#include <bit>
#include <iterator>

#include "absl/strings/string_view.h"
#include "mallocgame/hlo/cost_analysis.h"
#include "mallocgame/hlo/hlo.pb.h"
#include "mallocgame/hlo/kernels.h"

namespace mallocgame::hlo {
namespace {

constexpr absl::string_view kElementwise[] = {"abs",
                                              "add",
                                              "and",
                                              "bitcast-convert",
                                              "ceil",
                                              "clamp",
                                              "compare",
                                              "complex",
                                              "convert",
                                              "count-leading-zeros",
                                              "divide",
                                              "floor",
                                              "imag",
                                              "iota",
                                              "is-finite",
                                              "maximum",
                                              "minimum",
                                              "multiply",
                                              "negate",
                                              "not",
                                              "or",
                                              "popcnt",
                                              "real",
                                              "reduce-precision",
                                              "remainder",
                                              "select",
                                              "shift-left",
                                              "sign",
                                              "round-nearest-afz",
                                              "round-nearest-even",
                                              "subtract",
                                              "xor",
                                              "shift-right-arithmetic",
                                              "shift-right-logical",
                                              "stochastic-convert"};

constexpr absl::string_view kTranscendental[] = {
    "atan2", "cbrt",         "cosine",   "erf",   "exponential", "exponential-minus-one",
    "log",   "log-plus-one", "logistic", "power", "rsqrt",       "sine",
    "sqrt",  "tan",          "tanh"};

template <size_t kSize>
bool Contains(const absl::string_view (&list)[kSize], absl::string_view opcode) {
  return std::find(std::begin(list), std::end(list), opcode) != std::end(list);
}

int64_t Times(int64_t a, int64_t b) { return TimesUpTo(a, b, kMaxWork); }

// The extent of dimension `d` of a shape; 1 if it has no such dimension.
int64_t Extent(const ShapeProto& shape, int64_t d) {
  return d >= 0 && d < shape.dimensions_size() ? shape.dimensions(static_cast<int>(d)) : 1;
}

int64_t Elements(const ShapeProto& shape) {
  int64_t n = 1;
  for (const int64_t d : shape.dimensions()) n = Times(n, d);
  return n;
}

// The elements of the first array; 0 if there is none.
int64_t Elements(const Module& module, int32_t instruction) {
  const absl::Span<const Array> arrays = module.arrays(instruction);
  return arrays.empty() ? 0 : Elements(*arrays[0].shape);
}

const ShapeProto* OperandShape(const Module& module, int32_t instruction, size_t k) {
  const absl::Span<const int32_t> operands = module.operands(instruction);
  if (k >= operands.size() || module.arrays(operands[k]).size() != 1) return nullptr;
  return module.arrays(operands[k])[0].shape;
}

int64_t DotFlops(const Module& module, int32_t instruction) {
  const ShapeProto* lhs = OperandShape(module, instruction, 0);
  if (lhs == nullptr) return 0;
  int64_t flops = Times(2, Elements(module, instruction));
  for (const int64_t d : module.instruction(instruction)
                             .proto->dot_dimension_numbers()
                             .lhs_contracting_dimensions()) {
    flops = Times(flops, Extent(*lhs, d));
  }
  return flops;
}

int64_t FloorDivide(int64_t a, int64_t b) { return a / b - (a % b != 0 && a < 0 ? 1 : 0); }

// The number of pairs (kernel position, output position) of one spatial dimension that meet a value
// of the input, and neither padding nor a dilation hole.
int64_t ValidPositions(const WindowDimension& w, int64_t kernel, int64_t input, int64_t output) {
  constexpr int64_t kMaxSteps = 1 << 12;   // beyond it, padding counts as values
  constexpr int64_t kMaxExtent = 1 << 30;  // keeps the products below in range
  const int64_t stride = std::max<int64_t>(1, w.stride()),
                base = std::max<int64_t>(1, w.base_dilation()),
                dilation = std::max<int64_t>(1, w.window_dilation());
  const bool dense = base == 1;
  const int64_t largest =
      std::max({stride, base, dilation, kernel, input, output, w.padding_low(), ~w.padding_low()});
  if (largest >= kMaxExtent || Times(kernel, dense ? 1 : output) > kMaxSteps)
    return Times(kernel, output);
  // the last position of the dilated input; -1 or less if it is empty
  const int64_t last = (input - 1) * base;
  int64_t valid = 0;
  for (int64_t k = 0; k < kernel; ++k) {
    // output position o meets input position o * stride + shift
    const int64_t shift = k * dilation - w.padding_low();
    if (dense) {
      const int64_t begin = std::max<int64_t>(0, -FloorDivide(shift, stride));
      valid +=
          std::max<int64_t>(0, std::min(output, FloorDivide(last - shift, stride) + 1) - begin);
      continue;
    }
    for (int64_t o = 0; o < output; ++o) {
      const int64_t at = o * stride + shift;
      valid += at >= 0 && at <= last && at % base == 0;
    }
  }
  return valid;
}

int64_t ConvolutionFlops(const Module& module, int32_t instruction) {
  const HloInstructionProto& p = *module.instruction(instruction).proto;
  const ShapeProto *lhs = OperandShape(module, instruction, 0),
                   *rhs = OperandShape(module, instruction, 1);
  if (lhs == nullptr || rhs == nullptr || module.arrays(instruction).size() != 1) return 0;
  const ShapeProto& out = *module.arrays(instruction)[0].shape;
  const ConvolutionDimensionNumbers& dims = p.convolution_dimension_numbers();
  int64_t flops = Times(2, Extent(*lhs, dims.input_feature_dimension()) /
                               std::max<int64_t>(1, p.feature_group_count()));
  flops = Times(flops, Extent(out, dims.output_feature_dimension()));
  flops = Times(flops, Extent(*lhs, dims.input_batch_dimension()) /
                           std::max<int64_t>(1, p.batch_group_count()));
  constexpr int kMaxSpatial = 8;
  const int spatial =
      std::min({kMaxSpatial, p.window().dimensions_size(), dims.input_spatial_dimensions_size(),
                dims.kernel_spatial_dimensions_size(), dims.output_spatial_dimensions_size()});
  for (int d = 0; d < spatial; ++d) {
    flops = Times(flops, ValidPositions(p.window().dimensions(d),
                                        Extent(*rhs, dims.kernel_spatial_dimensions(d)),
                                        Extent(*lhs, dims.input_spatial_dimensions(d)),
                                        Extent(out, dims.output_spatial_dimensions(d))));
  }
  return flops;
}

int64_t SortFlops(const Module& module, int32_t instruction) {
  const ShapeProto* keys = OperandShape(module, instruction, 0);
  if (keys == nullptr) return 0;
  const int64_t n = Elements(*keys);
  return n < 2 ? 0 : Times(n, std::bit_width(static_cast<uint64_t>(n - 1)));
}

int64_t WindowSize(const Window& window) {
  int64_t n = 1;
  for (const WindowDimension& d : window.dimensions()) n = Times(n, std::max<int64_t>(0, d.size()));
  return n;
}

// How often the instruction runs the computation that it calls.
int64_t Applications(const Module& module, int32_t instruction) {
  const HloInstructionProto& p = *module.instruction(instruction).proto;
  const size_t operands = module.operands(instruction).size();
  const int64_t out = Elements(module, instruction);
  if (p.opcode() == "map") return out;
  if (p.opcode() == "reduce") {
    const ShapeProto* in = OperandShape(module, instruction, 0);
    return in == nullptr ? 0 : std::max<int64_t>(0, Elements(*in) - out);
  }
  if (p.opcode() == "reduce-window")
    return Times(out, std::max<int64_t>(0, WindowSize(p.window()) - 1));
  if (p.opcode() == "scatter" || p.opcode() == "select-and-scatter") {
    const ShapeProto* updates =
        OperandShape(module, instruction, p.opcode() == "scatter" ? operands / 2 + 1 : 1);
    if (updates == nullptr) return 0;
    return p.opcode() == "scatter" ? Elements(*updates)
                                   : Times(Elements(*updates), WindowSize(p.window()));
  }
  return 0;
}

}  // namespace

int64_t AddUpTo(int64_t a, int64_t b, int64_t most) {
  return a > most - std::min(b, most) ? most : a + b;
}

int64_t TimesUpTo(int64_t a, int64_t b, int64_t most) {
  int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) || product > most ? most : product;
}

Arithmetic ArithmeticOf(const Module& module, int32_t instruction) {
  const std::string& opcode = module.instruction(instruction).proto->opcode();
  if (opcode == "dot") return {DotFlops(module, instruction), 0, 0};
  if (opcode == "convolution") return {ConvolutionFlops(module, instruction), 0, 0};
  if (opcode == "sort") return {SortFlops(module, instruction), 0, 0};
  if (opcode == "custom-call") {
    const auto kernel = EstimateOf(*module.instruction(instruction).proto);
    if (kernel) return {kernel->flops, kernel->transcendentals, 0};
  }
  if (Contains(kElementwise, opcode)) return {Elements(module, instruction), 0, 0};
  if (Contains(kTranscendental, opcode)) return {0, Elements(module, instruction), 0};
  return {0, 0, Applications(module, instruction)};
}

}  // namespace mallocgame::hlo
