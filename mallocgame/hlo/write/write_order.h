// Another order of instructions becomes the module's schedule. Private to the folder.
#pragma once

#include "absl/status/statusor.h"
#include "mallocgame/program/program.h"

namespace mallocgame::hlo {

class HloModuleProto;

// Gives the module the order in which `program` has its instructions, by their names: all
// computations that the program runs, loop bodies too. Whether it has changed anything.
// InvalidArgument, and nothing changed: the program was made of another module, or the module has
// no schedule.
absl::StatusOr<bool> WriteOrder(const Program& program, HloModuleProto& module);

}  // namespace mallocgame::hlo
