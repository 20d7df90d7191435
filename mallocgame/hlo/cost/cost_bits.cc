// Gives the largest arrays bits of their own.
#include "mallocgame/hlo/cost/cost_bits.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace mallocgame::hlo {
namespace {

CostBits Share(std::vector<int64_t> size_bytes) {
  CostBits bits;
  bits.of.resize(size_bytes.size());
  std::iota(bits.of.begin(), bits.of.end(), size_t{0});
  if (size_bytes.size() > kCostBits) {
    std::vector<size_t> largest = bits.of;
    std::stable_sort(largest.begin(), largest.end(),
                     [&](size_t a, size_t b) { return size_bytes[a] > size_bytes[b]; });
    largest.resize(kCostBits - 1);
    std::sort(largest.begin(), largest.end());
    std::fill(bits.of.begin(), bits.of.end(), kCostBits - 1);
    for (size_t bit = 0; bit < largest.size(); ++bit) bits.of[largest[bit]] = bit;
  }
  bits.size_bytes = std::move(size_bytes);
  return bits;
}

}  // namespace

CostBits OperandBits(const Module& module, int32_t instruction) {
  std::vector<int64_t> size_bytes;
  for (const int32_t operand : module.operands(instruction)) {
    int64_t sum = 0;
    for (const Array& array : module.arrays(operand)) sum += array.size_bytes;
    size_bytes.push_back(sum);
  }
  return Share(std::move(size_bytes));
}

CostBits OutputBits(const Module& module, int32_t instruction) {
  std::vector<int64_t> size_bytes;
  for (const Array& array : module.arrays(instruction)) size_bytes.push_back(array.size_bytes);
  return Share(std::move(size_bytes));
}

}  // namespace mallocgame::hlo
