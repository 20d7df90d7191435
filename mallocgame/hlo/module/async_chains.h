// Chains of instructions that run a computation asynchronously: an async-start, any number of
// async-updates, and an async-done. Private to the folder.
#pragma once

#include <cstdint>
#include <vector>

#include "mallocgame/hlo/module/module.h"

namespace mallocgame::hlo {

// What a *-done ends: its operand, but for async-updates. That is a *-start, a send or a recv, or,
// where a loop carries the chain, what hands it on.
int32_t StartOfDone(const Module& module, int32_t done);

class AsyncChains {
 public:
  explicit AsyncChains(const Module& module);

  // The async-start of the chain that an instruction stands in. kNone if it stands in none, or the
  // chain comes from outside of its computation, as that of a loop may.
  int32_t StartOf(int32_t instruction) const { return start_[instruction]; }

  // How many operands of the wrapped computation the chain has been given before an instruction of
  // it. An async-start gives its own, an async-update those behind its first: both may give some
  // only, and leave the others to a later async-update.
  int32_t GivenBefore(int32_t instruction) const { return given_before_[instruction]; }

  // Whether the chain has been given all of them at an instruction of it, so that what is wrapped
  // runs.
  bool HasAllAt(const Module& module, int32_t instruction) const;

 private:
  std::vector<int32_t> start_, given_before_;  // by instruction
};

}  // namespace mallocgame::hlo
