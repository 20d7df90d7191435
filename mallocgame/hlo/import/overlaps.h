// Moves residences apart that the compiler lets overlap and a Plan cannot. Private to the folder.
#pragma once

#include "mallocgame/hardware/hardware.h"
#include "mallocgame/plan/plan.h"
#include "mallocgame/program/program.h"

namespace mallocgame::hlo {

// The compiler uses the bytes of a loop-carried buffer for others while it holds nothing: in the
// body between its last read and its next write. In a Plan it keeps them over the whole loop. So a
// residence whose bytes are taken when it begins, or reserved by an instruction, gets the lowest
// offset that is free all the time; if there is none, it stays where it is, and the result is
// false. Times and placements do not change.
bool MoveOverlapping(const Program& program, const Hardware& hardware, Plan& plan);

}  // namespace mallocgame::hlo
