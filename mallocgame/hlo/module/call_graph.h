// One computation for each call site, as XLA's FlattenCallGraph pass leaves a module
// (xla/hlo/transforms/simplifiers/flatten_call_graph.cc). Private to the folder.
#pragma once

#include "absl/status/statusor.h"
#include "mallocgame/hlo/module/module.h"

namespace mallocgame::hlo {

// Copies computations until each call site of a while, conditional, call or async-start that runs
// has one of its own, with copies of all that it calls in turn. The site that comes first in the
// module keeps the original. The copy of an instruction 'x' is named 'x.clone', or 'x.clone.1' and
// so on where that name is taken. A copy follows its original in the module.
//
// `proto` is what `module` was read from. If the result is true it has changed, and `module` must
// not be used any more. InvalidArgument: the copies would be more than the limits below.
absl::StatusOr<bool> FlattenCallGraph(const Module& module, HloModuleProto& proto);

// Of all copies together. Calls of calls may multiply beyond measure.
inline constexpr int64_t kMaxClonedInstructions = int64_t{1} << 18;
inline constexpr int64_t kMaxClonedBytes = int64_t{1} << 28;

}  // namespace mallocgame::hlo
