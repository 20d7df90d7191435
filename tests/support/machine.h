// A toy machine that carries out a plan byte by byte, as an independent check of Validate. It knows
// no rules, only memories, and tells whether every instruction found the bytes that it should have.
#pragma once

#include <cstdint>
#include <string>

#include "mallocgame/hardware/hardware.h"
#include "mallocgame/plan/plan.h"
#include "mallocgame/program/program.h"

namespace mallocgame::testing {

enum class CopyTiming : uint8_t {
  kAtOnce,  // a copy moves its bytes when it begins
  kLate,    // a copy moves them when it ends; until then its destination holds garbage
};

// Runs every loop three times and all branches. Returns the first thing that went wrong, or an
// empty string; a residence outside fast memory is such a thing. The plan must be well formed.
std::string RunPlan(const Program& program, const Hardware& hardware, const Plan& plan,
                    CopyTiming timing);

}  // namespace mallocgame::testing
