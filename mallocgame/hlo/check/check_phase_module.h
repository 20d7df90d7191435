// The judge of a module that was assigned by hand. Behind its first phase the compiler looks at
// nothing: values that overlap, loops whose leaves lie apart, or another computation than the
// program's are linked without a word. So this check must hold before a module is linked. With what
// writes such modules it shares how a module is read (hlo/module): which results come from which
// operands, and which must lie where an operand does. Which values may share bytes it takes from
// the compiler's own assignment.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "mallocgame/hardware/hardware.h"
#include "mallocgame/hlo/module/phase_module.h"

namespace mallocgame {

// What an assigned module must keep.
enum class PhaseRule : uint8_t {
  kReadable,     // both are modules with a schedule and a buffer assignment of it
  kSchedule,     // operands and control predecessors come first
  kTransfer,     // a *-start has one *-done, and what it fills is used behind that
  kShape,        // what is handed on keeps its shape
  kMemorySpace,  // and lies in the same memory space on both sides
  kBuffer,       // each value has one logical buffer in one allocation, and nothing else has any
  kColor,        // a logical buffer has the memory space of its layout
  kSize,         // and the bytes of its shape, inside its allocation
  kAlignment,    // offsets are multiples of what their memory needs
  kCapacity,     // fast memory ends where the chip's ends
  kLoopLeaf,     // what a loop carries lies at one place: before it, in it and behind it
  kBranch,       // what branches return lies at one place: that of the conditional's result
  kInPlace,      // an update lies where its operand lies
  kSlicePlace,   // slices lie side by side where their concatenation lies
  kPreload,      // preloads go to the offsets that the module names
  kPin,          // a kernel's arrays lie in the memory that it pins them to
  kOverlap,      // values that live at one time share no byte
  kComputation,  // without copies and memory spaces it is the original, with the same data flow
  kSignature,    // parameters, results, donations and configuration are the original's
};

// A stable name, such as "loop-leaf".
absl::string_view PhaseRuleName(PhaseRule rule);

// Says whether `written` may be linked. `original` is what the compiler's first phase gives with
// memory space assignment off.
//
// A value lives from the instruction that makes it to the last that reads it. What an asynchronous
// instruction reads or fills lives until its *-done; what a loop reads from outside lives to the
// loop's end; what it carries is kept while its condition runs. A value may begin where another one
// that still lives does, if `original` has both at one place then. What is read later in the
// written module must be so in the original too.
//
// InvalidArgument: the first rule that is broken, in the order above. The refusal carries its name,
// the instructions at fault, and by how much fast memory is exceeded (base/refusal.h). The message
// begins with "rule NAME: ", and tells what was found and what is allowed.
absl::Status CheckPhaseModule(const PhaseModule& original, const PhaseModule& written,
                              const Hardware& hardware);

}  // namespace mallocgame
