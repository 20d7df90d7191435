// The program of all plans and logs among the seeds. When it changes, those seeds must be made
// again.
#pragma once

#include <memory>

#include "mallocgame/base/rng.h"
#include "mallocgame/hardware/hardware.h"
#include "mallocgame/program/program.h"
#include "tests/support/programs.h"

namespace mallocgame::fuzz {

inline Hardware SampleHardware() { return testing::TestHardware(40, 4); }

// It has parameters, a loop that carries a buffer and uses another, a branch, and an output.
inline std::shared_ptr<const Program> SampleProgram() {
  static const auto& program = *new std::shared_ptr<const Program>([] {
    testing::ProgramBuilder builder("fuzz");
    const BufferId weights = builder.Parameter("weights", 16),
                   state = builder.Parameter("state", 8);
    const BufferId hidden = builder.Result("hidden", 12), output = builder.Result("output", 8);
    builder.MarkOutput(output);
    builder.Add(
        {.name = "first", .reads = {weights}, .writes = {hidden}, .cycles = {60, 44, 50, 30}});
    builder.BeginLoop("loop", 3);
    builder.BeginBody();
    builder.Add(
        {.name = "step", .reads = {weights}, .updates = {state}, .cycles = {40, 25, 33, 20}});
    builder.EndLoop();
    builder.BeginBranch();
    builder.Add({.name = "then", .reads = {hidden}, .cycles = {20, 10}});
    builder.EndBranch();
    builder.Add({.name = "choose", .cycles = {5}});
    builder.Add({.name = "last", .reads = {hidden, state}, .writes = {output}, .cycles = {50}});
    return builder.Build();
  }());
  return program;
}

}  // namespace mallocgame::fuzz
