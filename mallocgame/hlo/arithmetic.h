// Flops and transcendental operations of one instruction, from its shapes alone (XLA reference
// 2.1). Private to the folder.
#ifndef MALLOCGAME_HLO_ARITHMETIC_H_
#define MALLOCGAME_HLO_ARITHMETIC_H_

#include <cstdint>

#include "mallocgame/hlo/module.h"

namespace mallocgame::hlo {

// Sums and products of non-negative numbers that stop at `most`.
int64_t AddUpTo(int64_t a, int64_t b, int64_t most);
int64_t TimesUpTo(int64_t a, int64_t b, int64_t most);

struct Arithmetic {
  int64_t flops = 0;
  int64_t transcendentals = 0;
  // how often the called computation runs (reduce, map, scatter ...); its work is not in the above
  int64_t applications = 0;
};
Arithmetic ArithmeticOf(const Module& module, int32_t instruction);

}  // namespace mallocgame::hlo

#endif  // MALLOCGAME_HLO_ARITHMETIC_H_
