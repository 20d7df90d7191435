// Another order of instructions as HLO.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "mallocgame/program/program.h"

namespace mallocgame {

// The module that a program was imported from (in any form that ImportHlo reads), with a schedule
// that has its instructions in the program's order, as an HloProto. ImportHlo makes the program of
// it that Reordered (schedule/instruction_order.h) makes. InvalidArgument: the module is damaged,
// or the program was made of another one.
absl::StatusOr<std::string> ReorderModule(const Program& program, absl::string_view module);

}  // namespace mallocgame
