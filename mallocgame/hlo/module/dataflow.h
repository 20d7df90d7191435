// Which arrays of a module share storage: alias analysis by must-alias closure (XLA reference 1.2
// and 1.3). Private to the folder.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "mallocgame/hlo/module/module.h"
#include "mallocgame/hlo/module/schedule.h"

namespace mallocgame::hlo {

class Dataflow {
 public:
  // Unites the arrays of instructions on the time axis that are one storage: tuples and their
  // elements; bitcasts and other instructions that pass values on; what loops, branches, calls and
  // asynchronous pairs hand over; updates in place; donated parameters. InvalidArgument where
  // shapes that must agree do not.
  static absl::StatusOr<Dataflow> Build(const Module& module, const Schedule& schedule);

  // The set of arrays that share storage with `array`, named by its smallest array. Array k of
  // instruction i has the index Module::instruction(i).first_array + k.
  int32_t SetOf(int32_t array) const { return set_[array]; }

 private:
  std::vector<int32_t> set_;
};

}  // namespace mallocgame::hlo
