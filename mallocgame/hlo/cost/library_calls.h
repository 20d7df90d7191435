// Custom calls of the libraries that other back ends of XLA use: cuBLAS and cuDNN. Private to the
// folder.
#pragma once

#include <cstdint>
#include <optional>

#include "mallocgame/hlo/module/module.h"

namespace mallocgame::hlo {

class DotDimensionNumbers;

enum class LibraryCall : uint8_t {
  kOther,
  kMatmul,             // __cublas$gemm, __cublas$lt$matmul ...
  kConvolution,        // __cudnn$convForward, __cudnn$convBiasActivationForward ...
  kConvolutionInput,   // __cudnn$convBackwardInput: the gradient of the input
  kConvolutionFilter,  // __cudnn$convBackwardFilter: that of the kernel
};

LibraryCall LibraryCallOf(const HloInstructionProto& instruction);

// What a matmul contracts, as its configuration says it; none if that says nothing.
std::optional<DotDimensionNumbers> MatmulDimensions(const HloInstructionProto& instruction);

// Whether array `k` of the result of such a call is a workspace, which holds no result.
bool IsWorkspace(const Module& module, int32_t instruction, size_t k);

// Whether a custom call only gives its operand another name, place or layout.
bool OnlyMoves(const HloInstructionProto& custom_call);

}  // namespace mallocgame::hlo
