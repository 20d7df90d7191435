// Which arrays kernels pin to a memory, and what the transfers that they begin hold. Private to the
// folder.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "mallocgame/hlo/module/module.h"
#include "mallocgame/hlo/module/schedule.h"
#include "mallocgame/program/program.h"

namespace mallocgame::hlo {

// InvalidArgument if memory space assignment has put arrays into fast memory already, so that what
// remains to be decided is no longer the whole program. Before it, the compiler (libtpu 0.0.51) has
// arrays there only if they share storage with what a kernel pins there, or are its operands.
// `of_array` has a buffer for each array of the module.
absl::Status CheckBeforeAssignment(const Module& module, const Schedule& schedule,
                                   absl::Span<const int32_t> of_array, int64_t fast_memory_space);

// Sets Access::pin from the configuration of kernels, and from the arrays that lie in fast memory
// already: the compiler leaves them there all their lives. Of kernels that hand each other a
// semaphore the first begins a DMA that the last waits for, so Access::held_until, or Pin::kMain
// where that can't be said, keeps their arrays in one place.
// InvalidArgument: a kernel pins an array to two memories, or one that no plan moves to fast
// memory.
absl::Status PinAccesses(const Module& module, const Schedule& schedule,
                         absl::Span<const int32_t> of_array, int64_t fast_memory_space,
                         ProgramData& data);

}  // namespace mallocgame::hlo
