// The same program with its instructions in another order, which computes the same.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "mallocgame/program/program.h"

namespace mallocgame {

// An order of instructions has for each tick of the new time axis the tick of the program whose
// instruction stands there.
//
// InvalidArgument, with the instructions by their names: it is no permutation of the program's
// ticks, it parts what belongs together (a loop with its condition and body, a conditional with its
// branches, a call with its callee), or one stands before another that it depends on. Of a program
// whose dependences nobody knows only its own order is legal.
absl::Status CheckInstructionOrder(const Program& program, absl::Span<const Tick> order);

struct ReorderedProgram {
  std::shared_ptr<const Program> program;
  std::vector<int32_t> buffer_of;  // by buffer of the program before: its number now
  std::vector<int32_t> access_of;  // likewise of accesses
};

// The program that ImportHlo makes of the module with this schedule: buffers, regions and loops are
// numbered in the new order. In the program's own order it is the program. It has the dependences
// too, so that it can be reordered again. The time that instructions wait for links stays.
// InvalidArgument as above.
absl::StatusOr<ReorderedProgram> Reordered(const Program& program, absl::Span<const Tick> order);

// The same for an order that is legal, as those of ScheduleUnits are. It isn't checked.
ReorderedProgram ReorderedLegally(const Program& program, absl::Span<const Tick> order);

}  // namespace mallocgame
