// Writes a Plan into what the compiler hands out, so that its later phases carry the plan out.
#pragma once

#include "absl/status/statusor.h"
#include "mallocgame/hardware/hardware.h"
#include "mallocgame/hlo/module/phase_module.h"
#include "mallocgame/plan/plan.h"
#include "mallocgame/program/program.h"

namespace mallocgame {

struct WrittenPlan {
  PhaseModule module;
  Plan plan;  // the one that was given, as it is carried out
};

// Writes `plan` of `program` into `unassigned`: the result of the compiler's first phase with
// memory space assignment off, of which ImportHlo made `program`. In the new module every array
// has the memory space that the plan gives it, and the plan's copies are instructions of the
// schedule; the new buffer assignment has the plan's offsets in fast memory. Offsets in main memory
// stay. What is new there gets bytes of its own, and an eviction those that its value had.
// Main memory gets new offsets if a copy in the place of an instruction reads its operand when the
// compiler has given the operand's bytes to another value.
//
// `program` may have its instructions in another order than the module (schedule/
// instruction_order.h). Then the new module has that order, and main memory gets new offsets, as
// the compiler's are for the lives that values have in its own.
//
// The plan is carried out as it is, but for this:
// - An eviction of what nobody reads in main memory, or of what it holds already, is left out.
// - Slices end where tiles do. Evictions, preloads and slices of a replaced `slice` are whole;
//   they begin with their last slice.
// - A preload is done at its first use. A second copy fetches it for the next run, as soon as
//   nothing else needs its bytes.
//
// Nothing of the compiler checks that the result computes the same.
//
// A refusal carries its rule, and the instructions and accesses at fault (base/refusal.h).
// InvalidArgument: a rule of plan/validate.h; "readable", a message is damaged; "other-program";
// "assigned", memory space assignment was on; "schedule". Internal: what was written breaks a rule
// of plan/validate.h. Unimplemented, what of the plan can't be written:
// - "held": a transfer holds the array where it was
// - "no-value": it is copied before it has a value
// - "other-computation": a copy begins in another computation than its value is of
// - "not-there": the value is wanted where the computation hasn't it
// - "bytes-taken": another value has the bytes by then
// - "scratch", "several-callers", "unmovable": scratch at several offsets, computations called from
//   several places, values that nothing can move and the order lets live at one time
absl::StatusOr<WrittenPlan> WritePlan(const Program& program, const Plan& plan,
                                      const Hardware& hardware, const PhaseModule& unassigned);

}  // namespace mallocgame
