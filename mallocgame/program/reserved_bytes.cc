#include "mallocgame/program/reserved_bytes.h"

#include <utility>

namespace mallocgame {

namespace {

std::vector<int64_t> ByTick(const Program& program) {
  std::vector<int64_t> by_tick;
  by_tick.reserve(program.instructions().size());
  for (const Instruction& instruction : program.instructions())
    by_tick.push_back(instruction.reserved_bytes);
  return by_tick;
}

}  // namespace

ReservedBytes::ReservedBytes(const Program& program) : ReservedBytes(ByTick(program)) {}

ReservedBytes::ReservedBytes(std::vector<int64_t> by_tick) {
  if (std::all_of(by_tick.begin(), by_tick.end(), [](int64_t bytes) { return bytes == 0; })) return;
  rows_.push_back(std::move(by_tick));
  for (size_t length = 1; 2 * length <= rows_[0].size(); length *= 2) {
    const std::vector<int64_t>& half = rows_.back();
    std::vector<int64_t> row(half.size() - length);
    for (size_t t = 0; t < row.size(); ++t) row[t] = std::max(half[t], half[t + length]);
    rows_.push_back(std::move(row));
  }
}

Tick ReservedBytes::FirstAbove(Tick begin, Tick end, int64_t bytes) const {
  if (Most(begin, end) <= bytes) return end;
  for (size_t k = rows_.size(); k-- > 0;) {
    const Tick length = Tick{1} << k;
    if (end - begin > length && rows_[k][begin] <= bytes) begin += length;
  }
  return begin;
}

}  // namespace mallocgame
