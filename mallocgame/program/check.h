// Checks each invariant of ProgramData once. Private to the folder: others call Program::Create.
#pragma once

#include "absl/status/status.h"
#include "mallocgame/program/program.h"

namespace mallocgame {

// InvalidArgument names the first invariant that is broken, and where. Memory is linear in the
// data, time linear but for a logarithm.
absl::Status CheckProgramData(const ProgramData& data);

}  // namespace mallocgame
