// A toy machine that carries out a plan byte by byte: the independent witness for Validate. It
// knows no rules, only memories, and tells whether every instruction found the bytes that it should
// have.
#ifndef MALLOCGAME_TESTS_SUPPORT_MACHINE_H_
#define MALLOCGAME_TESTS_SUPPORT_MACHINE_H_

#include <cstdint>
#include <string>

#include "mallocgame/hardware/hardware.h"
#include "mallocgame/plan/plan.h"
#include "mallocgame/program/program.h"

namespace mallocgame::testing {

enum class CopyTiming : uint8_t {
  kAtOnce,  // a copy moves its bytes when it begins
  kLate,    // when it ends; until then its destination holds garbage
};

// Runs every loop three times, all branches. Empty, or the first thing that went wrong. The plan
// must be well formed; of a plan beyond its memory, says so.
std::string RunPlan(const Program& program, const Hardware& hardware, const Plan& plan,
                    CopyTiming timing);

}  // namespace mallocgame::testing

#endif  // MALLOCGAME_TESTS_SUPPORT_MACHINE_H_
