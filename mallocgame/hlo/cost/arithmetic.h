// Flops and transcendental operations of one instruction, from its shapes alone (XLA reference
// 2.1). Private to the folder.
#pragma once

#include <array>
#include <cstdint>

#include "mallocgame/hlo/module/module.h"

namespace mallocgame::hlo {

// Sums and products of non-negative numbers that stop at `most`.
int64_t AddUpTo(int64_t a, int64_t b, int64_t most);
int64_t TimesUpTo(int64_t a, int64_t b, int64_t most);

struct Arithmetic {
  int64_t flops = 0;
  int64_t transcendentals = 0;
  // How often the computations run that the instruction calls (reduce, map, scatter ...), in their
  // order. Their work is not in the above.
  std::array<int64_t, 2> applications = {0, 0};
};

// By the rules of XLA's HloCostAnalysis, but for the following:
// - A fusion, a call and a while run what they call once. What is on the time axis counts itself.
// - An iota makes each element by an operation, where XLA counts none.
// - An all-reduce adds nothing here: its time is that of the links.
// - A ragged-dot multiplies each row by the matrix of its group, so it does what a dot of one group
//   would. XLA leaves the first dimension of the result out if there are groups.
// - A scan runs its computation for each step, where XLA runs it for each element of the second
//   operand.
// - Of a kernel its author's estimate counts, and what cuBLAS and cuDNN do (library_calls.h). Of
//   other custom calls nothing counts.
Arithmetic ArithmeticOf(const Module& module, int32_t instruction);

// Whether it is a custom call of which nobody knows what it computes.
bool IsOpaque(const Module& module, int32_t instruction);

}  // namespace mallocgame::hlo
