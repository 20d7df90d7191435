// Which CostArray stands for an operand or an output array, and which bit in a CostRow. Both have
// the same number. Private to the folder.
//
// Each array has a bit of its own while there are at most kCostBits. If there are more, the
// kCostBits - 1 largest have bits of their own, in order (of equal ones the first), and the last
// bit stands for all others. Sizes alone decide, so that instructions of one structure agree on
// what the rows of their pool mean.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "mallocgame/hlo/module/module.h"

namespace mallocgame::hlo {

inline constexpr size_t kCostBits = 64;

struct CostBits {
  std::vector<size_t> of;           // by operand or output array
  std::vector<int64_t> size_bytes;  // likewise; a tuple operand has the sum of its arrays

  bool shared(size_t k) const { return of.size() > kCostBits && of[k] == kCostBits - 1; }
};

CostBits OperandBits(const Module& module, int32_t instruction);
CostBits OutputBits(const Module& module, int32_t instruction);

}  // namespace mallocgame::hlo
