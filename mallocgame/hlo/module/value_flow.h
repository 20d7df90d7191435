// Which arrays of a module are values of their own, and which only hand a value on. Private to the
// folder.
#pragma once

#include <cstdint>
#include <vector>

#include "mallocgame/hlo/module/async_chains.h"
#include "mallocgame/hlo/module/module.h"
#include "mallocgame/hlo/module/schedule.h"

namespace mallocgame::hlo {

// Arrays are numbered as in Dataflow: array k of instruction i is first_array + k.
class ValueFlow {
 public:
  // Follows tuples and their elements, bitcasts and the like, and what a loop, or each branch of a
  // conditional, passes through unchanged: such an array of its result hands its operand's on.
  // Where a loop is given one value several times, the first parameter array that holds it stands
  // for the others.
  ValueFlow(const Module& module, const Schedule& schedule);

  // The array that this one hands on; kNone if it is a value of its own.
  int32_t Before(int32_t array) const { return before_[array]; }
  // The value that it is in the end.
  int32_t ValueOf(int32_t array) const;
  int32_t InstructionOf(int32_t array) const { return owner_[array]; }
  // The value that a body's or condition's parameter array, which the loop passes through, has
  // outside of the loop; kNone if it isn't such a one.
  int32_t OutsideOf(int32_t array) const { return outside_[array]; }
  // The array of the only parameter of the computation that its root hands on as its array `k`;
  // kNone if it makes that.
  int32_t PassedBy(int32_t computation, int32_t k) const;

 private:
  void Visit(int32_t i, const AsyncChains& chains);
  void VisitLoop(int32_t i);
  void VisitBranches(int32_t i);

  const Module& module_;
  std::vector<int32_t> owner_, before_, outside_;  // by array
};

// Whether the instruction hands its operand on in another shape, so that each place of the value
// needs such an instruction: bitcast, domain, add-dependency, opt-barrier of an array.
bool Recasts(const Module& module, int32_t i);

}  // namespace mallocgame::hlo
