#include "mallocgame/hlo/module/async_chains.h"

#include "mallocgame/hlo/module/hlo.pb.h"

namespace mallocgame::hlo {

int32_t StartOfDone(const Module& module, int32_t done) {
  int32_t start = done;
  while (!module.operands(start).empty() &&
         (start == done || module.opcode(start) == kAsyncUpdate)) {
    start = module.operands(start)[0];
  }
  return start;
}

bool AsyncChains::HasAllAt(const Module& module, int32_t instruction) const {
  const int32_t start = start_[instruction];
  const auto own = std::ssize(module.operands(instruction)) - (instruction == start ? 0 : 1);
  return given_before_[instruction] + own >=
         std::ssize(module.computation(module.called(start)[0]).parameters);
}

AsyncChains::AsyncChains(const Module& module)
    : start_(module.instructions().size(), kNone), given_before_(module.instructions().size(), 0) {
  // Operands come before their users, so the start of a chain comes first.
  for (int32_t i = 0; i < std::ssize(module.instructions()); ++i) {
    const Opcode opcode = module.opcode(i);
    if (opcode == kAsyncStart) {
      start_[i] = i;
    } else if ((opcode == kAsyncUpdate || opcode == kAsyncDone) && !module.operands(i).empty()) {
      const int32_t before = module.operands(i)[0];
      if (start_[before] == kNone) continue;
      const auto own = static_cast<int32_t>(module.operands(before).size());
      start_[i] = start_[before];
      given_before_[i] = given_before_[before] + (start_[before] == before ? own : own - 1);
    }
  }
}

}  // namespace mallocgame::hlo
