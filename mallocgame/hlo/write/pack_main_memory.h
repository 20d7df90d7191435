// Offsets in main memory for another order of instructions. Private to the folder.
#pragma once

#include "absl/status/status.h"
#include "mallocgame/hlo/module/phase_module.h"

namespace mallocgame::hlo {

// Places what shares an allocation of `written` anew in main memory and the memories of
// small arrays and scalars. The compiler's offsets are for the lives that values have in its own
// order, and it looks at none of them. Which arrays have to lie at one place is what ImportHlo goes
// by: all that share storage. Such a place is held from the first that touches it to the last.
// Where
// `unassigned`, the compiler's own, lets a result take the bytes of an operand that ends there, it
// does so again if the operand still ends there. Best fit, the largest first.
//
// `written` is what WritePlan made of `unassigned`. InvalidArgument: a message is damaged.
// Unimplemented: the order lets values live at one time that share bytes of another memory, where
// nothing can be moved.
absl::Status PackMainMemory(const PhaseModule& unassigned, PhaseModule& written,
                            int64_t fast_memory_space);

}  // namespace mallocgame::hlo
