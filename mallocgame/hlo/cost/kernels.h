// Kernels: instructions whose code comes with the program, such as Pallas kernels. The compiler
// knows nothing of what they do but what their author says (jax.experimental.pallas.CostEstimate).
// Private to the folder.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace mallocgame::hlo {

class HloInstructionProto;

// True for the custom call tpu_custom_call, unless it is a placement hint.
bool IsKernel(const HloInstructionProto& instruction);

// True for a kernel that the compiler makes itself, of softmax(x) @ v (online-softmax). JAX says in
// which form it gives the code of a kernel, and the compiler doesn't.
bool IsMadeByCompiler(const HloInstructionProto& instruction);

// The work of a kernel as its author estimated it; no number is negative.
struct KernelEstimate {
  int64_t flops = 0;
  int64_t transcendentals = 0;
  int64_t bytes_accessed = 0;  // 0: not said
};

// What the configuration of a kernel says in `cost_estimate`. None: it says nothing, or not in
// numbers of 0 or more, or the instruction is no kernel.
std::optional<KernelEstimate> EstimateOf(const HloInstructionProto& instruction);

// An operand or the result of a kernel, or an array in one, that has to lie in a memory space while
// it runs.
struct RequiredSpace {
  std::optional<int32_t> operand;  // none: the result
  std::vector<int32_t> index;      // place of the array in a tuple, outermost first
  int64_t memory_space = 0;
};

// What the configuration of a kernel says in `input_memory_space_colors` and
// `output_memory_space_colors`. Its author wrote them (with_memory_space_constraint and the
// out_shape of a Pallas kernel), or behind assignment, on tpu7x, the compiler itself. Empty: it
// says nothing, or not in numbers of 0 or more, or the instruction is no kernel.
std::vector<RequiredSpace> RequiredSpacesOf(const HloInstructionProto& instruction);

// Shares `bytes` out to the arrays of a kernel, which hold so many bytes each. An estimate doesn't
// say which array it counts, so this is a rule:
// - As many as the arrays hold, or 0: each array moves once.
// - More: a kernel reads blocks of its operands again, and writes each result once. So the rest is
//   of the operands, in proportion to their sizes.
// - Fewer: a kernel leaves out parts of its largest arrays. So all arrays move the same number of
//   bytes, but for the smaller ones, which move whole.
void ShareOut(int64_t bytes, std::vector<int64_t>& read, std::vector<int64_t>& written);

}  // namespace mallocgame::hlo
