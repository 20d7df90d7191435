// Plans that are written into small modules and read back.
#pragma once

#include <string>

#include "mallocgame/hlo/module/phase_module.h"
#include "mallocgame/plan/plan.h"
#include "mallocgame/program/program.h"
#include "tests/hlo/module_text.h"

namespace mallocgame::hlo_test {

// What the first phase gives: every value has bytes of its own in main memory.
PhaseModule Unassigned(ModuleText m);
// The access of a buffer by an instruction, which there must be.
AccessId AccessOf(const Program& program, const std::string& instruction,
                  const std::string& buffer);
// The plan that a module has after writing.
Plan ReadBack(const Program& program, const PhaseModule& before, const PhaseModule& written);
// The same of a plan that is valid and is written.
Plan WriteAndRead(const Program& program, const Plan& plan, const PhaseModule& before);

}  // namespace mallocgame::hlo_test
