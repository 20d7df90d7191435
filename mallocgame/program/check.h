// The invariants of ProgramData, each checked once. Private to the folder: Program::Create is what
// others call.
#ifndef MALLOCGAME_PROGRAM_CHECK_H_
#define MALLOCGAME_PROGRAM_CHECK_H_

#include "absl/status/status.h"
#include "mallocgame/program/program.h"

namespace mallocgame {

// InvalidArgument names the first invariant broken, and where. Time and memory are linear in the
// data, but for a logarithm.
absl::Status CheckProgramData(const ProgramData& data);

}  // namespace mallocgame

#endif  // MALLOCGAME_PROGRAM_CHECK_H_
