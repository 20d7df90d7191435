// Counts the work of each opcode: opcodes.cc says which compute something.
#include "mallocgame/hlo/cost/arithmetic.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "absl/algorithm/container.h"
#include "mallocgame/hlo/cost/cost_analysis.h"
#include "mallocgame/hlo/cost/kernels.h"
#include "mallocgame/hlo/cost/library_calls.h"
#include "mallocgame/hlo/module/hlo.pb.h"
#include "mallocgame/hlo/module/opcodes.h"

namespace mallocgame::hlo {
namespace {

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

// Of a dot with `results` elements.
int64_t DotFlops(const ShapeProto& lhs, int64_t results, const DotDimensionNumbers& dims) {
  int64_t flops = Times(2, results);
  for (const int64_t d : dims.lhs_contracting_dimensions()) flops = Times(flops, Extent(lhs, d));
  return flops;
}

int64_t DotFlops(const Module& module, int32_t instruction) {
  const ShapeProto* lhs = OperandShape(module, instruction, 0);
  if (lhs == nullptr) return 0;
  return DotFlops(*lhs, Elements(module, instruction),
                  module.instruction(instruction).proto->dot_dimension_numbers());
}

// Where the groups part a contracted dimension, the result has a matrix for each group, as its
// first dimension, but each row and column is multiplied within its group only.
int64_t RaggedDotFlops(const Module& module, int32_t instruction) {
  const ShapeProto* lhs = OperandShape(module, instruction, 0);
  if (lhs == nullptr || module.arrays(instruction).size() != 1) return 0;
  const RaggedDotDimensionNumbers& ragged =
      module.instruction(instruction).proto->ragged_dot_dimension_numbers();
  const DotDimensionNumbers& dims = ragged.dot_dimension_numbers();
  const bool contracted =
      !ragged.lhs_ragged_dimensions().empty() &&
      absl::c_linear_search(dims.lhs_contracting_dimensions(), ragged.lhs_ragged_dimensions(0));
  ShapeProto result = *module.arrays(instruction)[0].shape;
  if (contracted && result.dimensions_size() > 0) result.set_dimensions(0, 1);
  return DotFlops(*lhs, Elements(result), dims);
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

// Of a convolution of `lhs` with `rhs` to `out`, which the instruction does, or of which it makes a
// gradient: that takes as many. 0: a shape isn't known.
int64_t ConvolutionFlops(const HloInstructionProto& p, const ShapeProto* lhs, const ShapeProto* rhs,
                         const ShapeProto* result) {
  if (lhs == nullptr || rhs == nullptr || result == nullptr) return 0;
  const ShapeProto& out = *result;
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

// None: nothing tells them.
std::optional<int64_t> CustomCallFlops(const Module& module, int32_t instruction) {
  const HloInstructionProto& p = *module.instruction(instruction).proto;
  const ShapeProto *first = OperandShape(module, instruction, 0),
                   *second = OperandShape(module, instruction, 1);
  const absl::Span<const Array> arrays = module.arrays(instruction);
  if (first == nullptr || second == nullptr || arrays.empty()) return std::nullopt;
  const ShapeProto* result = arrays[0].shape;
  switch (LibraryCallOf(p)) {
    case LibraryCall::kOther: return std::nullopt;
    case LibraryCall::kMatmul: {
      const std::optional<DotDimensionNumbers> dims = MatmulDimensions(p);
      if (!dims) return std::nullopt;
      return DotFlops(*first, Elements(*result), *dims);
    }
    case LibraryCall::kConvolution: return ConvolutionFlops(p, first, second, result);
    case LibraryCall::kConvolutionInput: return ConvolutionFlops(p, result, second, first);
    case LibraryCall::kConvolutionFilter: return ConvolutionFlops(p, first, result, second);
  }
  return std::nullopt;
}

int64_t SortFlops(const Module& module, int32_t instruction) {
  const ShapeProto* keys = OperandShape(module, instruction, 0);
  if (keys == nullptr) return 0;
  const int64_t n = Elements(*keys);
  return n < 2 ? 0 : Times(n, std::bit_width(static_cast<uint64_t>(n - 1)));
}

int64_t FftFlops(const Module& module, int32_t instruction) {
  constexpr int64_t kEach = 2 * 4;  // a multiplication of complex numbers is four of real ones
  const ShapeProto* input = OperandShape(module, instruction, 0);
  if (input == nullptr) return 0;
  int64_t flops = Times(kEach, Elements(*input));
  for (const int64_t length : module.instruction(instruction).proto->fft_length())
    flops = Times(flops, length < 1 ? 0 : std::bit_width(static_cast<uint64_t>(length)) - 1);
  return flops;
}

// A product of the elements of operand `k` and the last extent of the first operand, a matrix.
int64_t TimesOrder(const Module& module, int32_t instruction, size_t k) {
  const ShapeProto *matrix = OperandShape(module, instruction, 0),
                   *times = OperandShape(module, instruction, k);
  if (matrix == nullptr || times == nullptr) return 0;
  return Times(Elements(*times), Extent(*matrix, matrix->dimensions_size() - 1));
}

int64_t AllElements(const Module& module, int32_t instruction) {
  int64_t sum = 0;
  for (const Array& array : module.arrays(instruction))
    sum = AddUpTo(sum, Elements(*array.shape), kMaxWork);
  return sum;
}

int64_t WindowSize(const Window& window) {
  int64_t n = 1;
  for (const WindowDimension& d : window.dimensions()) n = Times(n, std::max<int64_t>(0, d.size()));
  return n;
}

// How often a reduce-window combines two values.
int64_t WindowReductions(const Module& module, int32_t instruction) {
  const Window& window = module.instruction(instruction).proto->window();
  const int64_t out = Elements(module, instruction);
  const int64_t each = Times(out, std::max<int64_t>(0, WindowSize(window) - 1));
  // A window that reaches all of one dimension from everywhere in it makes one value of it, which
  // the result repeats.
  if (module.instruction(instruction).proto->shape().element_type() == TUPLE) return each;
  int reduced = 0, padded = 0;
  int64_t extent = 0;
  for (int d = 0; d < window.dimensions_size(); ++d) {
    const WindowDimension& w = window.dimensions(d);
    reduced += w.size() != 1 ? 1 : 0;
    padded += w.padding_low() != 0 || w.padding_high() != 0 ? 1 : 0;
    const int64_t reach = w.padding_low();
    if (w.size() == 1 || reach < 1 || reach != w.padding_high() || w.size() / 2 != reach ||
        w.size() % 2 == 0)
      continue;
    const int64_t result = Extent(*module.arrays(instruction)[0].shape, d);
    if (reach == result - 1) extent = result;
  }
  return reduced == 1 && padded == 1 && extent > 0 ? out / extent + extent - 1 : each;
}

// How often the instruction runs the computations that it calls.
std::array<int64_t, 2> Applications(const Module& module, int32_t instruction) {
  const HloInstructionProto& p = *module.instruction(instruction).proto;
  const Opcode opcode = module.opcode(instruction);
  if (opcode == kFusion || RunsComputations(opcode)) return {1, 1};
  const int64_t out = Elements(module, instruction);
  if (opcode == kMap) return {out, 0};
  if (opcode == kReduceWindow) return {WindowReductions(module, instruction), 0};
  const size_t operands = module.operands(instruction).size();
  const size_t counted = opcode == kScatter            ? operands / 2 + 1  // its updates
                         : opcode == kSelectAndScatter ? 1
                                                       : 0;
  const ShapeProto* shape = OperandShape(module, instruction, counted);
  if (shape == nullptr) return {0, 0};
  const int64_t in = Elements(*shape);
  if (opcode == kReduce) return {std::max<int64_t>(0, in - out), 0};
  if (opcode == kScan) return {p.dimensions_size() > 0 ? Extent(*shape, p.dimensions(0)) : 0, 0};
  if (opcode == kScatter) return {in, 0};
  if (opcode == kSelectAndScatter)
    return {Times(in, std::max<int64_t>(0, WindowSize(p.window()) - 1)), in};
  return {0, 0};
}

// Of softmax(x) @ v, whose operands these are. The softmax counts an exponential for each element.
Arithmetic SoftmaxProduct(const Module& module, int32_t instruction) {
  const ShapeProto *x = OperandShape(module, instruction, 0),
                   *v = OperandShape(module, instruction, 1);
  if (x == nullptr || v == nullptr) return {};
  const int64_t contracted = Extent(*x, x->dimensions_size() - 1);
  if (!absl::c_linear_search(v->dimensions(), contracted)) return {};
  return {Times(Times(2, Elements(module, instruction)), contracted), Elements(*x)};
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
  const HloInstructionProto& proto = *module.instruction(instruction).proto;
  const Opcode opcode = module.opcode(instruction);
  switch (WhatComputes(opcode)) {
    case Computes::kNothing: return {};
    case Computes::kOperation: return {Elements(module, instruction), 0};
    case Computes::kTranscendental: return {0, Elements(module, instruction)};
    case Computes::kByItsOwnRule: break;
  }
  if (opcode == kDot || opcode == kScaledDot) return {DotFlops(module, instruction), 0};
  if (opcode == kRaggedDot) return {RaggedDotFlops(module, instruction), 0};
  if (opcode == kConvolution) {
    if (module.arrays(instruction).size() != 1) return {};
    return {
        ConvolutionFlops(proto, OperandShape(module, instruction, 0),
                         OperandShape(module, instruction, 1), module.arrays(instruction)[0].shape),
        0};
  }
  if (opcode == kSort) return {SortFlops(module, instruction), 0};
  if (opcode == kFft) return {FftFlops(module, instruction), 0};
  if (opcode == kTriangularSolve) return {Times(2, TimesOrder(module, instruction, 1)), 0};
  if (opcode == kCholesky) return {TimesOrder(module, instruction, 0) / 3, 0};
  if (opcode == kRngBitGenerator) return {0, AllElements(module, instruction)};
  if (opcode == kCustomCall) {
    const auto kernel = EstimateOf(proto);
    if (kernel) return {kernel->flops, kernel->transcendentals};
    if (IsMadeByCompiler(proto)) return SoftmaxProduct(module, instruction);
    return {CustomCallFlops(module, instruction).value_or(0), 0};
  }
  return {0, 0, Applications(module, instruction)};
}

bool IsOpaque(const Module& module, int32_t instruction) {
  const HloInstructionProto& proto = *module.instruction(instruction).proto;
  return module.opcode(instruction) == kCustomCall &&
         !MovesNothing(module.instruction(instruction)) && !OnlyMoves(proto) && !IsKernel(proto) &&
         !CustomCallFlops(module, instruction);
}

}  // namespace mallocgame::hlo
