#include "mallocgame/program/reserved_bytes.h"

#include <utility>

namespace mallocgame {

ReservedBytes::ReservedBytes(const Program& program) {
  std::vector<int64_t> ticks;
  for (const Instruction& instruction : program.instructions())
    ticks.push_back(instruction.reserved_bytes);
  if (std::all_of(ticks.begin(), ticks.end(), [](int64_t bytes) { return bytes == 0; })) return;
  rows_.push_back(std::move(ticks));
  for (size_t length = 1; 2 * length <= rows_[0].size(); length *= 2) {
    const std::vector<int64_t>& half = rows_.back();
    std::vector<int64_t> row(half.size() - length);
    for (size_t t = 0; t < row.size(); ++t) row[t] = std::max(half[t], half[t + length]);
    rows_.push_back(std::move(row));
  }
}

}  // namespace mallocgame
