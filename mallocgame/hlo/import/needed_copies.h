// Which copies of a module can be left out, so that both of their ends are one storage. Private to
// the folder.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "mallocgame/hlo/module/module.h"
#include "mallocgame/hlo/module/schedule.h"

namespace mallocgame::hlo {

// An array that holds the same as another from some instruction on. Arrays are numbered as in
// Dataflow.
struct CopyOfArray {
  int32_t source = 0, result = 0;
  std::vector<int32_t> begun_as = {};  // what the instructions that begin it call the result
};

// By copy: whether the program needs it, as one of the ends is changed while the other is still
// read, or both are arguments that weren't given away, constants or results. Copies that aren't
// needed may all be left out together. More than those that are needed may be called so.
absl::StatusOr<std::vector<bool>> NeededCopies(const Module& module, const Schedule& schedule,
                                               absl::Span<const CopyOfArray> copies);

}  // namespace mallocgame::hlo
